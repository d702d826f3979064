//! Who stands still, and what memory does.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use asx_native::Handle;

/// How often to look.
const TICK: Duration = Duration::from_millis(50);
/// Looks without progress after which an idle process is stuck.
const STUCK: u32 = 20;
/// The same for one that uses the processor: it may be slow.
const SLOW: u32 = 200;
/// Looks before memory counts.
const WARM_UP: u32 = 60;
/// What may come on top of the memory used in the warm-up: a part of it, and pages of 4 KiB.
const GROWTH: (u64, u64) = (4, 4096);

/// A thread that looks at the drivers.
pub(crate) struct Watch {
    beats: Arc<[AtomicU64]>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Memory>,
}

/// Where a driver says that it got on.
pub(crate) struct Beat {
    beats: Arc<[AtomicU64]>,
    index: usize,
}

impl Beat {
    pub(crate) fn beat(&self) {
        self.beats[self.index].fetch_add(1, Relaxed);
    }
}

impl Watch {
    pub(crate) fn start(handle: Handle, drivers: usize) -> Watch {
        let beats: Arc<[AtomicU64]> = (0..drivers).map(|_| AtomicU64::new(0)).collect();
        let over = Arc::new(AtomicBool::new(false));
        let (seen, stop) = (beats.clone(), over.clone());
        let thread = thread::spawn(move || look(&handle, &seen, &stop));
        Watch { beats, over, thread }
    }

    pub(crate) fn beat(&self, index: usize) -> Beat {
        Beat { beats: self.beats.clone(), index }
    }

    /// The number of rounds, if memory stayed flat.
    pub(crate) fn finish(self) -> Result<u64, String> {
        self.over.store(true, Relaxed);
        let memory = self.thread.join().map_err(|_| "the watchdog panicked")?;
        memory.judge()?;
        Ok(self.beats.iter().map(|beat| beat.load(Relaxed)).sum())
    }
}

/// Looks until it is over. A driver that stands still ends the process, after a diagnosis.
fn look(handle: &Handle, beats: &[AtomicU64], over: &AtomicBool) -> Memory {
    let mut memory = Memory::default();
    let mut last = vec![(0, 0, processor_time()); beats.len()];
    while !over.load(Relaxed) {
        thread::sleep(TICK);
        memory.sample();
        for (index, (beat, last)) in beats.iter().zip(&mut last).enumerate() {
            let now = beat.load(Relaxed);
            if now != last.0 {
                *last = (now, 0, processor_time());
                continue;
            }
            last.1 += 1;
            let used = processor_time() - last.2;
            // In hundredths of a second, as is the tick: a process that waits to be woken uses
            // next to none, one on a busy machine uses some.
            let idle = used * 20 < u64::from(last.1) * TICK.as_millis() as u64 / 10;
            if last.1 >= SLOW || (idle && last.1 >= STUCK) {
                println!("{}", handle.dump());
                eprintln!("soak: driver {index} has stood still for {:?}", TICK * last.1);
                std::process::exit(1);
            }
        }
    }
    memory
}

/// Resident pages.
#[derive(Default)]
struct Memory {
    looks: u32,
    warm: u64,
    most: u64,
}

impl Memory {
    fn sample(&mut self) {
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        self.looks += 1;
        if self.looks <= WARM_UP {
            self.warm = self.warm.max(pages);
        } else {
            self.most = self.most.max(pages);
        }
    }

    fn judge(&self) -> Result<(), String> {
        println!("soak: pages resident: {} when warm, {} later", self.warm, self.most);
        if self.most <= self.warm + self.warm / GROWTH.0 + GROWTH.1 {
            return Ok(());
        }
        Err(format!("memory grew from {} pages to {}", self.warm, self.most))
    }
}

/// What this process has used, in hundredths of a second.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

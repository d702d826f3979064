//! A watchdog: reports a program that hangs, and ends the process.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use asx::Handle;

/// The exit code of a hang.
pub(crate) const HANGS: i32 = 3;

/// The running program, its start, and the handle for a dump.
struct Running {
    seed: u64,
    since: Instant,
    runtime: Option<Handle>,
}

#[derive(Clone)]
pub(crate) struct Watchdog(Arc<Mutex<Option<Running>>>);

impl Watchdog {
    /// Starts the watchdog thread. A program that runs longer than `patience` hangs.
    pub(crate) fn start(patience: Duration) -> Watchdog {
        let watch = Watchdog(Arc::default());
        let looks = watch.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(patience / 20);
                let hangs = looks
                    .running()
                    .as_ref()
                    .filter(|running| running.since.elapsed() > patience)
                    .map(|running| (running.seed, running.runtime.clone()));
                if let Some((seed, runtime)) = hangs {
                    show(seed, runtime, patience);
                }
            }
        });
        watch
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn begin(&self, seed: u64, runtime: Handle) {
        let runtime = Some(runtime);
        *self.running() = Some(Running { seed, since: Instant::now(), runtime });
    }

    /// Releases the handle, because the runtime is about to be dropped.
    pub(crate) fn release_runtime(&self) {
        let runtime = self.running().as_mut().and_then(|running| running.runtime.take());
        drop(runtime);
    }

    pub(crate) fn end(&self) {
        let ended = self.running().take();
        drop(ended);
    }
}

/// Prints a dump of the hanging program, and ends the process.
fn show(seed: u64, runtime: Option<Handle>, patience: Duration) -> ! {
    eprintln!("asx-stress: program {seed} has not ended after {patience:?}");
    // The dump may hang too.
    thread::spawn(move || {
        match runtime {
            Some(runtime) => eprintln!("{}", runtime.dump()),
            None => eprintln!("asx-stress: it hangs while or after dropping its runtime"),
        }
        let _ = std::io::stderr().flush();
        std::process::exit(HANGS);
    });
    thread::sleep(Duration::from_secs(5));
    eprintln!("asx-stress: the dump hangs too");
    std::process::exit(HANGS)
}

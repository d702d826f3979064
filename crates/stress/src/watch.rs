//! A watchdog: a program that does not end is shown, and ends the process.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use asx::Handle;

/// The exit code of a hang.
pub(crate) const HANGS: i32 = 3;

/// Who runs, since when, and how to look at it.
struct Running {
    seed: u64,
    since: Instant,
    runtime: Option<Handle>,
}

#[derive(Clone)]
pub(crate) struct Watch(Arc<Mutex<Option<Running>>>);

impl Watch {
    /// Starts the thread that looks. No program takes as long as `patience`.
    pub(crate) fn start(patience: Duration) -> Watch {
        let watch = Watch(Arc::default());
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

    /// The runtime is about to be dropped.
    pub(crate) fn let_go(&self) {
        let runtime = self.running().as_mut().and_then(|running| running.runtime.take());
        drop(runtime);
    }

    pub(crate) fn end(&self) {
        let ended = self.running().take();
        drop(ended);
    }
}

/// Shows what hangs, and ends the process.
fn show(seed: u64, runtime: Option<Handle>, patience: Duration) -> ! {
    eprintln!("asx-stress: program {seed} has not ended after {patience:?}");
    // The dump may hang as well.
    thread::spawn(move || {
        match runtime {
            Some(runtime) => eprintln!("{}", runtime.dump()),
            None => eprintln!("asx-stress: it is in the drop of its runtime, or behind it"),
        }
        let _ = std::io::stderr().flush();
        std::process::exit(HANGS);
    });
    thread::sleep(Duration::from_secs(5));
    eprintln!("asx-stress: no dump to be had");
    std::process::exit(HANGS)
}

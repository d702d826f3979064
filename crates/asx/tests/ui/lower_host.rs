// Tasks that are not `Send` rely on their host: implementing one is unsafe.
use asx_kernel::time::Time;
use asx_runtime::{Host, Runnable};

struct Anywhere;

impl Host for Anywhere {
    fn schedule(&self, entry: Runnable) {
        std::thread::spawn(move || entry.run());
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        Some(0)
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

fn main() {}

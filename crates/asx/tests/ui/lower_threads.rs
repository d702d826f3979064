// Values of the lower crates that are not `Send` stay on their thread.
use std::rc::Rc;

use asx_native::stepped::{Setup, Stepped};
use asx_runtime::probe::RegionProbe;

fn steps_elsewhere() {
    let mut run = Stepped::new(Setup::default());
    std::thread::spawn(move || run.step());
}

fn fails_elsewhere(region: RegionProbe) {
    let _ = unsafe { region.spawn_failed(Rc::new(7)) };
}

fn main() {}

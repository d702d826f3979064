// Virtual workers stay on the thread that created them.
use asx_kernel::choose::First;
use asx_lab::workers::{Setup, Workers};

fn main() {
    let mut run = Workers::new(Setup::default(), Box::new(First));
    std::thread::spawn(move || run.step());
}

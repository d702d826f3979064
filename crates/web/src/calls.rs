//! What the runtime asks of the page: five calls, each behind a capability, and reports.

use asx_kernel::pump::HostCall;
use asx_kernel::time::Time;

/// The facilities of a page or worker, as they were handed to the runtime.
///
/// A call may only schedule: whatever it leads to comes back later, from the event loop, through
/// [`Runtime::called`](crate::Runtime::called) and [`Runtime::rang`](crate::Runtime::rang) with the
/// token it was made with. The runtime makes none of these calls without its capability.
pub trait HostCalls: Send + Sync + 'static {
    /// Queues a microtask, posts a message to oneself, or sets a zero timeout.
    fn call(&self, call: HostCall, token: u32);

    /// Continues in a microtask, behind the promise reactions that are queued now and, as far as
    /// the page can tell, those that they queue. By default a plain microtask.
    fn resume(&self, token: u32) {
        self.call(HostCall::Microtask, token);
    }

    /// Makes a call that does nothing but report the end of the current host turn when it comes
    /// back. By default the same as [`call`](HostCalls::call).
    fn watch_turn(&self, call: HostCall, token: u32) {
        self.call(call, token);
    }

    /// Sets the one host timer, in place of the one that was set before.
    fn arm(&self, after_ms: u32, token: u32);

    /// Reads the clock.
    fn now(&self) -> Time;

    /// Draws a random number.
    fn entropy(&self) -> u64;

    /// Shows a line to the page's author: a leaked obligation, for example. The runtime reports
    /// each cause once. By default the line is dropped.
    fn report(&self, _line: &str) {}
}

//! The attributes of asx: use them through the `asx` crate.

use proc_macro::TokenStream;

mod entry;
mod lab_settings;
mod main_fn;
mod settings;
mod test_fn;

/// Runs an async `main` on a runtime.
///
/// The function is `async` and takes the context as `cx: &Cx`, as `cx: Cx`, or not at all. It may
/// return whatever a `main` may. When it returns, everything it started has ended.
///
/// `cx.handle()` looks at the runtime and stops it. A `main` that was told to stop and did not end
/// in the time it was given is ended by force: then a line on the error output names what was, and
/// the process exits with the status 124 (`asx::ENDED_BY_FORCE`).
///
/// ```
/// use asx::prelude::*;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     cx.sleep(1.millis()).await
/// }
/// ```
///
/// Settings, in parentheses and separated by commas:
///
/// * `workers = 4`: how many threads run tasks; as many as there are processors unless set.
/// * `current_thread`: only the main thread does.
/// * `name = "shop"`: what the threads are called.
#[proc_macro_attribute]
pub fn main(settings: TokenStream, function: TokenStream) -> TokenStream {
    main_fn::expand(settings.into(), function.into()).into()
}

/// Runs an async test in the lab: under many schedules, each of which can be run again.
///
/// The function is `async`, takes the context as `cx: &Cx`, as `cx: Cx`, or not at all, and gives
/// `()` or a `Result` whose error is `Debug`. It becomes a `#[test]`; other attributes
/// (`#[should_panic]`, `#[ignore = ".."]`) are kept. The facade's feature `lab` must be on.
///
/// ```
/// # #[cfg(test)]
/// # mod tests {
/// use asx::prelude::*;
///
/// #[asx::test(seeds = 500, cancel = "every await")]
/// async fn what_is_sent_arrives(cx: &Cx) -> Result<(), Cancelled> {
///     let (tx, mut rx) = channel::bounded(1);
///     cx.scope(async |s| {
///         let sent = s.task("feed").spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
///         let got = rx.recv(cx).await;
///         // Either may be cancelled here, but no message is sent and gone.
///         assert!(got.is_ok() || !matches!(sent.await, Ok(true)));
///         Ok(())
///     })
///     .await
/// }
/// # }
/// ```
///
/// A test that takes long says every ten seconds how far it is. One that passes prints a line
/// (`cargo test -- --show-output`): how many runs there were, how many of the cancels and faults
/// were tried, and which limit ended the search. A disturbance that is requested here (`cancel`,
/// `faults`, `late_clocks`, `network`) and was never tried fails the test. With `ASX_REPLAY=token`
/// the one schedule of a report is run; a token of another test, or one that no longer fits, fails
/// the test.
///
/// Settings, in parentheses and separated by commas. For the lab:
///
/// * `seeds = 1000` (or `runs = 1000`): how many runs at most without cancels and faults; 1000
///   unless set. Those with come on top.
/// * `total = 10000`: how many runs at most in all; ten times as many as `seeds` unless set.
/// * `seed = 7`: where random choices come from; 0 unless set.
/// * `strategy = "mixed"`: how schedules are chosen; or `random`, `uniform`, `pos`, `pct(3)`,
///   `guided`, `dfs`, `dpor`, `bounded`.
/// * `steps = 10000`: how many polls a run may take before it counts as endless.
/// * `time = "2s"`: how long to search at most; `ms`, `s` and `m` are known. Ten seconds
///   unless set.
/// * `min_time = "1s"`: how long to search at least while the search is incomplete; one second
///   unless set here or with the environment variable `ASX_LAB_TIME`. Tests that set `seeds`,
///   `total` or `strategy` make just their runs.
/// * `cancel = "every await"`: then each task is cancelled at each of its awaits as well, one
///   cancel a run. Where there was a cancel, an error is as good as a value.
/// * `faults`: then something goes wrong wherever it may, one fault a run: where the program asks
///   `cx.fault("disk full")`, and by wakes for nothing. `late_clocks`: also a clock that is late.
/// * `disturbances = 2`: how many cancels and faults there may be in a run, after each was tried
///   alone; 2 unless set.
/// * `exact_time`: time stands still while anything can run. Unless set, it also passes then, in
///   some of the runs, as on a machine that is busy.
/// * `network`: then everything goes wrong that may in the simulated network on which `asx::net`
///   runs in the lab: segments come late or in pieces, connections break, and so on.
/// * `virtual_workers = 2`: so many virtual workers run it by the law of the scheduler.
/// * `transparent`: tasks share nothing but channels, locks and other things of asx, so that far
///   fewer schedules have to be tried.
///
/// Where else it runs:
///
/// * `native`: on threads, once, and not in the lab: for what the lab can't control, such as
///   other threads.
/// * `workers = 4`: the same with so many threads.
/// * `lab, native` or `lab, workers = 4`: first in the lab, then on threads.
#[proc_macro_attribute]
pub fn test(settings: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand(settings.into(), function.into()).into()
}

/// Says that `#[asx::test]` needs a feature.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn test_without_lab(_: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand_without_lab(function.into()).into()
}

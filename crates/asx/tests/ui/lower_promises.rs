// Functions of the lower crates that rely on a promise of their caller are unsafe.
use asx_kernel::lanes::Lane;
use asx_runtime::probe::{RegionProbe, TaskProbe};
use asx_runtime::{Cx, Dispatch, RunContext, Runnable, Scope};

fn confuses_error_types(cx: &Cx, region: RegionProbe) {
    let _: Scope<[u64; 2]> = TaskProbe::of(cx).region().scope();
    let _ = region.defer(|_cx| async { Err::<(), _>(7_u8) });
    let _ = region.spawn_finalizer(|_cx| async { Err::<(), _>(7_u8) });
    let _ = region.spawn_failed(7_u8);
}

fn polls_on_any_thread(one: Runnable, other: Runnable) {
    let _ = one.begin(RunContext::UNCHOSEN);
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let _ = other.begin(RunContext::from_lane(Lane::Ready).recorded(Some(dispatch)));
}

fn main() {}

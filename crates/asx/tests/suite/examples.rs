//! The examples run, end, and print what their comments say.

#![allow(dead_code, reason = "the examples' own `main`s are not called here")]

use crate::common;

#[path = "../../examples/fan_out.rs"]
mod fan_out;
#[path = "../../examples/hello.rs"]
mod hello;
#[path = "../../examples/lanes.rs"]
mod lanes;
#[path = "../../examples/pipeline.rs"]
mod pipeline;
#[path = "../../examples/shutdown.rs"]
mod shutdown;
#[path = "../../examples/supervision.rs"]
mod supervision;

use asx::prelude::*;
use common::on_each;
use fan_out::FetchError::Missing;

#[test]
fn hello_receives_every_greeting() {
    on_each(|runtime| {
        let mut heard = runtime.block_on(async |cx: Cx| hello::greetings(&cx).await).unwrap();
        let by = |name: &str| heard.iter().filter(|line| line.ends_with(name)).count();
        assert_eq!((by("Ada"), by("Grace")), (3, 3));
        heard.sort();
        assert_eq!(heard[0], "hello 1 from Ada");
    });
}

#[test]
fn pipeline_holds_at_most_its_channels_and_stages() {
    on_each(|runtime| {
        let (total, most) = runtime.block_on(async |cx: Cx| pipeline::pipeline(&cx).await).unwrap();
        assert_eq!(total, 3 * 1000 * 1001 / 2);
        // Two channels of four, and one order in each of the last two stages.
        assert!((1..=10).contains(&most), "{most}");
    });
}

#[test]
fn shutdown_lets_tasks_finish_and_runs_the_finalizer_last() {
    on_each(|runtime| {
        let mut lines = shutdown::day(runtime);
        // On a stalled machine the cleaner may be cancelled before the clerk ends.
        lines[..2].sort();
        let end = ["the books are closed", "the program was stopped: Shutdown"];
        assert_eq!(lines[..2], ["the cleaner puts the broom away", "the clerk finishes the sale"]);
        assert_eq!((&lines[2..4], &*lines[4]), (&end.map(String::from)[..], "left over: 0"));
    });
}

#[test]
fn lanes_are_ordered_and_deadlines_cancel_late_tasks() {
    let runtime = asx::Runtime::builder().current_thread().build().unwrap();
    let (order, late) = runtime.block_on(async |cx: Cx| {
        (lanes::order(&cx).await.unwrap(), lanes::late(&cx).await.unwrap())
    });
    assert_eq!(order, ["cancelled", "due soon", "due later", "urgent", "plain"]);
    assert_eq!(late, "slow: Deadline");
}

#[test]
fn fan_out_fails_fast_or_each_separately() {
    on_each(|runtime| {
        runtime.block_on(async |cx: Cx| {
            assert_eq!(fan_out::all(&cx, &["home", "news"]).await, Ok(vec![4, 4]));
            let failed = fan_out::all(&cx, &["home", "missing", "slow"]).await;
            assert_eq!(failed, Err(Missing("missing")));
            let each = fan_out::each(&cx, &["home", "missing"]).await;
            assert_eq!(each, [Ok(4), Err(Missing("missing"))]);
        });
    });
}

#[test]
fn a_supervised_task_is_restarted_until_it_fails_too_often() {
    on_each(|runtime| {
        let lines = runtime.block_on(async |cx: Cx| supervision::counters(&cx).await);
        let expected = [
            "steady: life 1",
            "steady: life 2",
            "steady: life 3",
            "steady ended well",
            "hopeless: life 1",
            "hopeless: life 2",
            "hopeless failed for good in life 2",
        ];
        assert_eq!(lines, expected);
    });
}

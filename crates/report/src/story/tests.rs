//! Stories of small traces.

use super::*;
use crate::json::Json;
use asx_trace::Reader;
use std::fmt::Write;

/// Returns the story of events given as `kind task=.. field=..`, one per line.
fn story(lines: &str) -> Story {
    story_with("", lines)
}

/// Like [`story`], with other records before the events.
fn story_with(before: &str, lines: &str) -> Story {
    let mut text = String::from(
        "{\"record\":\"header\",\"version\":2,\"contract\":\"asx-semantics-1\",\
         \"program\":\"p\",\"host\":\"h\",\"seed\":0,\
         \"workers\":2,\"complete\":true,\"meta\":{}}\n",
    );
    text.push_str(before);
    for (seq, line) in lines.trim().lines().enumerate() {
        let (kind, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let given: Vec<_> =
            rest.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let _ =
            write!(text, "{{\"record\":\"event\",\"seq\":{seq},\"time\":0,\"event\":\"{kind}\"");
        for name in ["task", "region", "timer", "channel"] {
            let value =
                given.iter().find(|(key, _)| *key == name).map_or("null", |(_, value)| value);
            let _ = write!(text, ",\"{name}\":{value}");
        }
        for (key, value) in given.iter().skip_while(|(key, _)| is_subject(key)) {
            let is_word = value.starts_with(|c: char| c.is_alphabetic());
            let plain = matches!(*value, "null" | "true" | "false");
            let mut json = Json::default();
            json.text(value);
            let value = if is_word && !plain { json.finish() } else { (*value).to_owned() };
            let _ = write!(text, ",\"{key}\":{value}");
        }
        text.push_str("}\n");
    }
    let run = Run::read(Reader::open(text.as_bytes()).expect("a trace"), 1000).expect("short");
    assert_eq!(run.events.len(), lines.trim().lines().count(), "{:?}", run.verdict.violations);
    Story::of(&run)
}

fn is_subject(key: &str) -> bool {
    matches!(key, "task" | "region" | "timer" | "channel")
}

const DECISION: &str = "decision_seq=1 decision_hash=\"0000000000000000\" cancel_streak=0 limit=16 \
                        fallback=false";

fn decision(task: u64, worker: u64) -> String {
    format!("scheduler_step_decision task={task} region=1 worker={worker} lane=ready {DECISION}\n")
}

fn links(story: &Story, kind: LinkKind) -> Vec<(usize, usize)> {
    let wanted = story.links.iter().filter(|link| link.kind == kind);
    wanted.map(|link| (link.from, link.to)).collect()
}

#[test]
fn states_are_contiguous_and_the_last_is_short() {
    let story = story(
        "region_opened region=1 parent=null
         task_spawned task=1 region=1 priority=1 finalizer=true
         task_moved task=1 region=1 from=Created to=Running
         task_spawned task=2 region=1 priority=1 finalizer=false
         task_moved task=1 region=1 from=Running to=Completed
         task_ended task=1 region=1 outcome=Err",
    );
    let spans = |life: &Life| -> Vec<_> {
        life.spans.iter().map(|span| (span.state, span.from, span.to)).collect()
    };
    let tasks = &story.tasks.items;
    assert_eq!(spans(&tasks[0]), [("Created", 1, 2), ("Running", 2, 4), ("Completed", 4, 5)]);
    assert_eq!((tasks[0].outcome, tasks[0].finalizer), (Some(Severity::Err), true));
    assert_eq!(spans(&tasks[1]), [("Created", 3, 6)], "to the end");
    assert_eq!(tasks[1].region, Some(0));
    assert_eq!(spans(&story.regions.items[0]), [("Open", 0, 6)]);
}

#[test]
fn the_first_step_reveals_the_state_before_the_trace() {
    let story = story(
        "soft_stop
         task_moved task=9 region=4 from=Running to=CancelRequested",
    );
    let spans = &story.tasks.items[0].spans;
    assert_eq!((spans[0].state, spans[0].from, spans[0].to), ("Running", 0, 1));
    assert_eq!((spans[1].state, spans[1].from, spans[1].to), ("CancelRequested", 1, 2));
}

#[test]
fn a_poll_lasts_to_the_last_event_of_its_task() {
    let lines = decision(1, 0)
        + "task_moved task=1 region=1 from=Created to=Running\n"
        + &decision(2, 1)
        + "timer_armed task=1 timer=1 deadline=5\n"
        + "timer_fired task=1 timer=1 deadline=5\n"
        + "timer_armed task=1 timer=2 deadline=5\n"
        + &decision(3, 1)
        + "timer_armed task=2 timer=3 deadline=5\n"
        + &decision(1, 1)
        + &decision(4, 0)
        + "timer_armed task=1 timer=4 deadline=5\n";
    let polls = story(&lines).polls;
    let seen: Vec<_> = polls.iter().map(|poll| (poll.task, poll.from, poll.to)).collect();
    let expected = [
        // A fired timer is not an action of the task: its poll has ended by then.
        (Some(1), 0, 4),
        // The worker made another decision before this event.
        (Some(2), 2, 3),
        (Some(3), 6, 7),
        // The task's previous worker continues, which does not end this poll.
        (Some(1), 8, 11),
        (Some(4), 9, 10),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn messages_are_matched_in_order_by_channel() {
    let story = story(
        "sent task=1 channel=1 permit=null
         sent task=1 channel=2 permit=null
         sent task=1 channel=1 permit=null
         sent task=1 channel=1 permit=null
         evicted task=1 channel=1
         received task=2 channel=1
         received task=2 channel=2
         receiver_gone task=2 channel=1 dropped=1
         received task=3 channel=3
         sent task=1 channel=3 permit=null",
    );
    // The first was evicted, the third dropped with the receiver, the last recorded late.
    assert_eq!(links(&story, LinkKind::Message), [(2, 5), (1, 6), (9, 8)]);
}

#[test]
fn a_wake_links_to_the_first_cause_before_a_decision_or_a_cancel() {
    let lines = "task_spawned task=1 region=1 priority=1 finalizer=false\n".to_owned()
        + &decision(1, 0)
        + "timer_fired task=1 timer=1 deadline=0\n"
        + "timer_fired task=1 timer=2 deadline=0\n"
        + &decision(1, 0)
        + &decision(1, 0)
        + "timer_fired task=1 timer=3 deadline=0\n"
        + "task_moved task=1 region=1 from=Running to=CancelRequested\n"
        + "task_moved task=1 region=1 from=CancelRequested to=CancelRequested\n"
        + &decision(1, 0)
        + "send_waiting task=1 channel=1\n"
        + "received task=2 channel=1\n"
        + &decision(1, 0);
    let expected = [(0, 1), (2, 4), (7, 9), (11, 12)];
    assert_eq!(links(&story(&lines), LinkKind::Wake), expected);
}

#[test]
fn a_cancel_links_from_a_region_to_its_contents() {
    let witness = |task: u64, region: u64, phase: &str, kind: &str| {
        format!(
            "cancel_witness task={task} region={region} epoch=1 phase={phase} kind={kind} polls=1 \
             strengthened=false\n"
        )
    };
    let lines = "region_opened region=1 parent=null\n".to_owned()
        + "region_opened region=2 parent=1\n"
        + "region_cancelled region=1 kind=User strengthened=false\n"
        + &witness(1, 1, "Requested", "ParentCancelled")
        + "region_cancelled region=2 kind=ParentCancelled strengthened=false\n"
        + &witness(2, 2, "Requested", "ParentCancelled")
        + &witness(3, 2, "Requested", "User")
        + &witness(2, 2, "Cancelling", "ParentCancelled");
    let story = story(&lines);
    assert_eq!(links(&story, LinkKind::Cancel), [(2, 3), (2, 4), (4, 5)]);
    assert_eq!(story.regions.items[1].region, Some(0));
}

#[test]
fn timers_and_obligations_end_once_and_channel_levels_are_counted() {
    let story = story(
        "timer_armed task=1 timer=1 deadline=5
         timer_armed region=1 timer=2 deadline=5
         obligation_reserved region=1 obligation=4
         timer_fired task=1 timer=1 deadline=5
         timer_cancelled task=1 timer=1
         obligation_resolved region=1 obligation=4 to=Leaked
         channel_opened channel=1 capacity=2
         send_reserved channel=1 permit=1
         sent channel=1 permit=1
         send_waiting channel=1
         received channel=1
         received channel=1",
    );
    let timers = &story.timers.items;
    assert_eq!((timers[0].task, timers[0].end), (Some(0), Some((3, "fired"))));
    assert_eq!((timers[1].task, timers[1].region, timers[1].end), (None, Some(0), None));
    assert_eq!(story.obligations.items[0].end, Some((5, "Leaked")));
    let channel = &story.channels.items[0];
    assert_eq!(channel.capacity, Some(2));
    let levels: Vec<_> =
        channel.levels.iter().map(|level| (level.queued, level.reserved, level.waiting)).collect();
    assert_eq!(levels, [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 0, 1)]);
}

#[test]
fn sockets_last_from_open_to_close_and_waits_end_with_their_operation() {
    let story = story(
        "socket_opened socket=1 how=listen of=null
         socket_opened socket=2 how=connect of=null
         io_waiting socket=2 way=write
         io_done socket=2 op=connect bytes=0
         io_waiting socket=1 way=read
         socket_opened socket=3 how=accept of=1
         io_waiting socket=3 way=read
         io_left socket=3 way=read
         io_waiting socket=3 way=read
         io_failed socket=3 op=read error=connection_reset
         socket_ended socket=2 way=write
         socket_closed socket=2
         io_waiting socket=1 way=read
         io_failed socket=4 op=listen error=addr_in_use",
    );
    let spans = |at: usize| {
        let spans = story.sockets.items[at].spans.iter();
        spans.map(|span| (span.state, span.from, span.to)).collect::<Vec<_>>()
    };
    assert_eq!(spans(0), [("Open", 0, 14)]);
    assert_eq!(spans(1), [("Connecting", 1, 3), ("Open", 3, 10), ("Closing", 10, 11)]);
    assert_eq!(spans(2), [("Open", 5, 14)]);
    assert_eq!(spans(3), []);
    let waits: Vec<_> = story.waits.iter().map(|wait| (wait.number, wait.from, wait.end)).collect();
    let expected = [
        (2, 2, Some((3, "done"))),
        (1, 4, Some((5, "done"))),
        (3, 6, Some((7, "left"))),
        (3, 8, Some((9, "failed"))),
        (1, 12, None),
    ];
    assert_eq!(waits, expected);
}

#[test]
fn a_read_links_to_the_write_of_its_first_byte() {
    let names = "{\"record\":\"label\",\"class\":\"socket\",\"number\":1,\"text\":\"a -> b\"}\n\
                 {\"record\":\"label\",\"class\":\"socket\",\"number\":2,\"text\":\"b -> a\"}\n";
    let story = story_with(
        names,
        "io_done socket=1 op=write bytes=4
         io_done socket=1 op=write bytes=4
         io_done socket=2 op=read bytes=3
         io_done socket=2 op=read bytes=2
         io_done socket=2 op=read bytes=3
         io_done socket=2 op=read bytes=0
         io_done socket=2 op=read bytes=1
         io_done socket=1 op=write bytes=1
         io_done socket=1 op=read bytes=1",
    );
    // The last byte was read before its write was recorded; nothing was written back.
    assert_eq!(links(&story, LinkKind::Message), [(0, 2), (0, 3), (1, 4)]);
}

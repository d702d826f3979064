//! A monitored run diverges from its trace at the first event that differs.

use crate::common;

use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::status::{Coded, Status};
use asx_trace::{Codec, End, ErrorKind, Mismatch, Monitor, MonitorError, Place, Reader, Record};
use common::{example_run, header, records, write};

fn digest(events: &[Event]) -> u64 {
    let mut digest = Digest::new();
    events.iter().for_each(|event| event.absorb(&mut digest));
    digest.value()
}

/// Compares a run of these events with a trace. Returns the number of compared events and
/// decisions.
fn compare(bytes: &[u8], run: &[Event], total: u64) -> Result<(u64, u64), MonitorError> {
    let mut monitor = Monitor::new(Reader::open(bytes).map_err(MonitorError::Unread)?);
    run.iter().try_for_each(|event| monitor.check_event(event))?;
    let compared = monitor.compared();
    assert_eq!(monitor.finish(total)?, total);
    Ok(compared)
}

fn mismatch(held: Result<(u64, u64), MonitorError>) -> Mismatch {
    match held {
        Err(MonitorError::Mismatch(mismatch)) => *mismatch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_identical_run_matches() {
    let run = example_run();
    for codec in [Codec::Json, Codec::Binary] {
        let bytes = write(codec, &header(), &records());
        assert_eq!(compare(&bytes, &run, digest(&run)), Ok((run.len() as u64, 2)));
    }
}

#[test]
fn every_different_event_is_reported_with_both_sides() {
    let recorded = example_run();
    let bytes = write(Codec::Json, &header(), &records());
    for at in 0..recorded.len() {
        let mut run = recorded.clone();
        run[at].kind = EventKind::GraceExpired {};
        run.truncate(at + 1);
        let found = mismatch(compare(&bytes, &run, 0));
        assert_eq!((found.seq, found.status()), (at as u64, Status::ReplayMismatch));
        assert_eq!((found.recorded, found.got), (Some(recorded[at]), Some(run[at])));
        assert_eq!(found.digests, [digest(&recorded[..=at]), digest(&run)]);
        // The line of the event in the file.
        let Place::Line { line, .. } = found.place else { panic!("{found}") };
        let text = std::str::from_utf8(&bytes).unwrap().lines().nth(line as usize - 1).unwrap();
        assert!(text.contains(&format!("\"record\":\"event\",\"seq\":{at},")), "{text}");
        let words = found.to_string();
        assert!(words.starts_with(&format!("REPLAY_MISMATCH: event {at} (line {line}")), "{words}");
        assert!(words.contains(&recorded[at].to_string()) && words.contains("grace_expired"));
    }
}

#[test]
fn a_shorter_or_longer_run_differs_at_the_end() {
    let mut run = example_run();
    let bytes = write(Codec::Binary, &header(), &records());
    let last = run.pop().unwrap();
    let found = mismatch(compare(&bytes, &run, digest(&run)));
    assert_eq!((found.recorded, found.got), (Some(last), None));
    let more = Event { seq: last.seq + 1, ..last };
    run.extend([last, more]);
    let found = mismatch(compare(&bytes, &run, digest(&run)));
    assert_eq!((found.recorded, found.got, found.seq), (None, Some(more), more.seq));
}

#[test]
fn overwritten_events_are_compared_by_their_digest() {
    let run = example_run();
    let (total, lost) = (digest(&run), 7);
    let mut records: Vec<Record> = run[lost..].iter().copied().map(Record::from).collect();
    let (recorded, lost) = (run.len() as u64, lost as u64);
    records.push(End { recorded, lost, digest: total, choices: 0 }.into());
    let bytes = write(Codec::Json, &header(), &records);
    assert_eq!(compare(&bytes, &run, total).map(|(events, _)| events), Ok(recorded - lost));
    let found = mismatch(compare(&bytes, &run, total ^ 1));
    assert_eq!((found.recorded, found.got, found.digests), (None, None, [total, total ^ 1]));
}

#[test]
fn a_damaged_trace_is_reported_with_its_line() {
    let run = example_run();
    let text = String::from_utf8(write(Codec::Json, &header(), &records())).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines[20] = "{\"record\":\"event\",";
    let Err(MonitorError::Unread(error)) = compare(lines.join("\n").as_bytes(), &run, 0) else {
        panic!("the damaged line was read")
    };
    assert!(matches!(error.place, Place::Line { line: 21, .. }), "{error}");
    assert_eq!(error.status(), Status::TraceMalformed);
    let cut: String = text.lines().take(10).map(|line| format!("{line}\n")).collect();
    let Err(MonitorError::Unread(error)) = compare(cut.as_bytes(), &run, 0) else {
        panic!("no error")
    };
    assert_eq!(
        (error.kind.clone(), error.status()),
        (ErrorKind::Truncated, Status::TraceTruncated)
    );
}

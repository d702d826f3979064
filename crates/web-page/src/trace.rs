//! What a runtime recorded, as a trace file and as the report page of it.

use asx_kernel::ids::TaskId;
use asx_kernel::journal::Event;
use asx_kernel::status::Status;
use asx_report::{PAGE_EVENTS, Run, html};
use asx_trace::{Class, Codec, End, Header, Label, Reader, Writer};
use asx_web::Runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What tasks are called, by number: of the last ones, as the journal has the last events.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeMap<u64, String>>>);

/// More than that many tasks are in no journal of a page.
const MOST_NAMES: usize = 50_000;

impl Names {
    pub(crate) fn add(&self, task: TaskId, name: &str) {
        let mut names = self.lock();
        names.insert(task.ordinal(), name.to_owned());
        if names.len() > MOST_NAMES {
            names.pop_first();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of those that events speak of.
    fn labels(&self, events: &[Event]) -> Vec<Label> {
        let tasks: BTreeSet<u64> = events.iter().filter_map(|event| event.subject.task).collect();
        let label = |(&number, text): (&u64, &String)| {
            let text = text.clone().into();
            tasks.contains(&number).then_some(Label { class: Class::Task, number, text })
        };
        self.lock().iter().filter_map(label).collect()
    }
}

/// The trace of what is retained, one JSON object per line.
pub(crate) fn lines(runtime: &Runtime, program: &str, names: &Names) -> Result<Vec<u8>, String> {
    let recorded = runtime.recorded().ok_or("nothing is recorded")?;
    let header = Header {
        workers: 1,
        complete: recorded.events.first().is_none_or(|event| event.seq == 0),
        ..Header::new(program, "web")
    };
    let written = Writer::new(Vec::new(), Codec::Json, &header).and_then(|mut writer| {
        for event in &recorded.events {
            writer.write(&(*event).into())?;
        }
        for label in names.labels(&recorded.events) {
            writer.write(&label.into())?;
        }
        let (recorded, lost, digest) = (recorded.recorded, recorded.lost, recorded.digest);
        writer.write(&End { recorded, lost, digest, choices: 0 }.into())?;
        writer.finish()
    });
    written.map_err(|error| format!("{}: {error:?}", Status::TraceMalformed.name()))
}

/// The report of a trace.
pub(crate) fn report(trace: &[u8]) -> Result<String, String> {
    let reader = Reader::open(trace).map_err(|error| error.to_string())?;
    let run = Run::read(reader, PAGE_EVENTS).map_err(|error| error.to_string())?;
    Ok(html(&run))
}

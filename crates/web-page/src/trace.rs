//! What a runtime recorded, as a trace file and as the report page of it.

use asx_kernel::status::Status;
use asx_report::{PAGE_EVENTS, Run, html};
use asx_trace::{Codec, End, Header, Reader, Writer};
use asx_web::Runtime;

/// The trace of what is retained, one JSON object per line.
pub(crate) fn lines(runtime: &Runtime, program: &str) -> Result<Vec<u8>, String> {
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

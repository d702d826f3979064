//! `asx trace convert`: the same records in another codec.

use super::{Done, To, file};
use asx_trace::Writer;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn convert(
    input: &Path,
    output: &Path,
    to: Option<To>,
    json: bool,
    out: &mut impl Write,
) -> Done {
    let codec = file::codec(output, to)?;
    let reader = file::open(input)?;
    let from = reader.codec();
    let header = reader.header().clone();
    let (draft, sink) = file::Draft::new(output, input)?;
    let unwritable = |error| file::unusable(output, &error);
    let mut writer = Writer::new(sink, codec, &header).map_err(unwritable)?;
    let mut records: u64 = 0;
    for record in reader {
        let record = record.map_err(|error| file::unusable(input, &error))?;
        writer.write(&record).map_err(unwritable)?;
        records += 1;
    }
    writer.finish().map_err(unwritable)?;
    draft.keep()?;
    if json {
        let object = serde_json::json!({
            "from": from.name(), "to": codec.name(), "records": records,
            "file": output.display().to_string(),
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(
            out,
            "{}: {records} records, {} to {}",
            output.display(),
            from.name(),
            codec.name()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `asx trace export`: a trace for the viewers of others.

use super::{Axis, Done, report};
use asx_report::perfetto;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// More events than this are more than viewers open, and than fit into memory well.
const MOST: usize = 5_000_000;

pub(super) fn export(
    input: &Path,
    output: &Path,
    axis: Axis,
    json: bool,
    out: &mut impl Write,
) -> Done {
    let axis = match axis {
        Axis::Order => asx_report::Axis::Order,
        Axis::Time => asx_report::Axis::Time,
    };
    let run = report::read(input, MOST)?;
    let bytes = report::write(output, input, || perfetto(&run, axis))?;
    report::tell(&run, output, bytes, json, out)?;
    Ok(ExitCode::SUCCESS)
}

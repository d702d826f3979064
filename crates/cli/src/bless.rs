//! `asx run --bless`: writes what came out as the fingerprint that must come out.

use crate::conform::problems;
use asx_conformance::{Fixture, Report};
use std::io::{self, Write};
use std::process::ExitCode;
use toml_edit::{Array, DocumentMut, Item, Table, value};

pub(crate) fn bless(
    fixture: &Fixture,
    report: &Report,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    if let Some(reason) = &report.skipped {
        complain!("asx: skipped, so there is no fingerprint: {reason}");
        return Ok(ExitCode::from(2));
    }
    if !report.skipped_lines.is_empty() {
        let host = report.host;
        complain!("asx: {host} skips lines, so its fingerprint is another: use --host model");
        return Ok(ExitCode::from(2));
    }
    if report.runs.iter().any(|run| !run.failures.is_empty() && !run.only_fingerprint) {
        for line in problems(report, None) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "not blessed: other expectations fail")?;
        return Ok(ExitCode::FAILURE);
    }
    let prints: Vec<String> =
        report.runs.iter().map(|run| format!("{:016x}", run.fingerprint)).collect();
    let Some(text) = rewrite(&fixture.text, &prints) else {
        complain!("asx: {}: cannot be rewritten", fixture.file);
        return Ok(ExitCode::from(2));
    };
    if text == fixture.text {
        writeln!(out, "{}: unchanged", fixture.file)?;
    } else {
        if let Err(error) = std::fs::write(&fixture.file, text) {
            complain!("asx: {}: {error}", fixture.file);
            return Ok(ExitCode::from(2));
        }
        writeln!(out, "{}: fingerprint {}", fixture.file, prints.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file with the fingerprints in it: one if all seeds agree, else one per seed.
fn rewrite(text: &str, prints: &[String]) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let expect = document.entry("expect").or_insert_with(|| Item::Table(Table::new()));
    let expect = expect.as_table_like_mut()?;
    let first = prints.first()?;
    if prints.iter().all(|print| print == first) {
        expect.remove("fingerprints");
        set(expect, "fingerprint", first.as_str().into());
    } else {
        expect.remove("fingerprint");
        set(expect, "fingerprints", prints.iter().map(String::as_str).collect::<Array>().into());
    }
    Some(document.to_string())
}

/// Changes a value and keeps the spaces and the comment around it.
fn set(table: &mut dyn toml_edit::TableLike, key: &str, new: toml_edit::Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let around = old.decor().clone();
            *old = new;
            *old.decor_mut() = around;
        }
        None => {
            table.insert(key, value(new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn only_the_fingerprint_changes() {
        let text = "a = 1 # why\n[expect]\nfingerprint  =  \"0\" # old\nnever = []\n";
        let one = rewrite(text, &["1".into(), "1".into()]).unwrap();
        assert_eq!(one, "a = 1 # why\n[expect]\nfingerprint  =  \"1\" # old\nnever = []\n");
        let two = rewrite(&one, &["1".into(), "2".into()]).unwrap();
        assert_eq!(two, "a = 1 # why\n[expect]\nnever = []\nfingerprints = [\"1\", \"2\"]\n");
        assert_eq!(
            rewrite("a = 1\n", &["3".into()]).unwrap(),
            "a = 1\n\n[expect]\nfingerprint = \"3\"\n"
        );
        assert_eq!(rewrite("expect = 1", &["3".into()]), None);
    }
}

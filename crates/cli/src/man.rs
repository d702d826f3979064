//! `asx man`: the man pages, made from the same table as the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap_mangen::Man;

use crate::output::counted;

/// Writes a page for the program and one for each command.
pub(crate) fn man(
    command: &clap::Command,
    folder: &Path,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, command.get_name(), &mut pages)?;
    let write = || {
        fs::create_dir_all(folder)?;
        pages.iter().try_for_each(|(name, page)| fs::write(folder.join(name), page))
    };
    if let Err(error) = write() {
        complain!("asx: {}: {error}", folder.display());
        return Ok(ExitCode::from(2));
    }
    writeln!(out, "{}: {}", folder.display(), counted(pages.len(), "page"))?;
    Ok(ExitCode::SUCCESS)
}

/// Renders the page of a command and those of its subcommands. Their names are joined by hyphens.
fn render(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    let mut page = Vec::new();
    let titled = command.clone().display_name(name.to_owned());
    Man::new(titled).title(name.to_uppercase()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        render(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

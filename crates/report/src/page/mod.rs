//! The HTML report: one self-contained page that loads no other file and no network resource.
//!
//! The template has placeholders for the style sheet, the program and the data. The data is JSON in
//! a script element that is not executed. Except for the title, all texts of the trace are in the
//! data only, and the program inserts them as text nodes, so no name can become markup.

mod data;

use crate::run::Run;
use crate::story::Story;

/// The maximal number of events of a usable page.
pub const PAGE_EVENTS: usize = 500_000;

const TEMPLATE: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/style.css");

/// The parts of the program, in the order of their dependencies.
const PROGRAM: [&str; 8] = [
    include_str!("../../page/data.js"),
    include_str!("../../page/rows.js"),
    include_str!("../../page/view.js"),
    include_str!("../../page/draw.js"),
    include_str!("../../page/panel.js"),
    include_str!("../../page/cause.js"),
    include_str!("../../page/input.js"),
    include_str!("../../page/main.js"),
];

/// Returns the page of a run.
pub fn html(run: &Run) -> String {
    let data = data::data(run, &Story::of(run));
    let program = PROGRAM.concat();
    let title = escape(&run.header.program);
    let mut page = String::with_capacity(data.len() + program.len() + 40_000);
    // A single pass: inserted text is not searched for placeholders.
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let (place, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(match place {
            "title" => &title,
            "style" => STYLE,
            "program" => &program,
            "data" => &data,
            _ => "",
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Escapes a text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if c.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

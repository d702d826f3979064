//! One page with everything in it: no file and no network beside it.
//!
//! The template has a place for the style, the program and the data. The data is JSON in a script
//! element that is never run; every text of the trace is in there and nowhere else, but for the
//! title. The program writes texts only as text, so no name can become markup.

mod data;

use crate::run::Run;
use crate::story::Story;

/// More events than this make a page too slow to be of use.
pub const PAGE_EVENTS: usize = 500_000;

const TEMPLATE: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/style.css");

/// The program, in the order in which its parts need each other.
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

/// The page of a run.
pub fn html(run: &Run) -> String {
    let data = data::data(run, &Story::of(run));
    let program = PROGRAM.concat();
    let title = escape(&run.header.program);
    let mut page = String::with_capacity(data.len() + program.len() + 40_000);
    // One pass: what is put in is never looked at for places again.
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

/// A text as HTML.
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

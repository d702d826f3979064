//! Random calls, each of which may answer only what the header's comment lists: a program made from
//! the header, as the abuse suite is. There arguments are wrong; here the moment is.

use super::abuse::{Function, NEVER_INSIDE, Param, functions, takes_runtime};
use super::build::sources;
use crate::Result;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What every function may answer to a caller that does nothing forbidden here, or is a rule for
/// all of them.
const ELSEWHERE: [&str; 1] = ["ASX_E_AFFINITY_VIOLATION"];

/// Writes the program.
pub(super) fn generate(to: &Path) -> Result {
    let header = fs::read_to_string(sources().join("include/asx.h")).map_err(|e| e.to_string())?;
    let statuses = statuses(&header);
    let all = functions(&header);
    let called: Vec<&Function> = all.iter().filter(|function| is_called(function)).collect();
    let mut names = Vec::new();
    let mut lists = String::new();
    let mut calls = String::new();
    for (at, function) in called.iter().enumerate() {
        let mut listed: Vec<&str> = vec!["ASX_OK"];
        let answers = answers(function, &all, &statuses);
        let rest = answers.iter().map(String::as_str);
        listed.extend(rest.filter(|name| *name != "ASX_OK" && !ELSEWHERE.contains(name)));
        names.push(format!("\"{}\"", function.name));
        let _ = writeln!(lists, "    {{ {}, -1 }},", listed.join(", "));
        let _ = writeln!(calls, "    case {at}:\n        status = {};", call(function));
        for made in function.params.iter().filter_map(|param| made(function, param)) {
            let _ = writeln!(
                calls,
                "        if (status == ASX_OK)\n            keep_{made}(made_{made});"
            );
        }
        calls.push_str("        break;\n");
    }
    let template = fs::read_to_string(sources().join("tests/c/answers.c.in"));
    let text = template
        .map_err(|error| error.to_string())?
        .replace("@FUNCTIONS@", &called.len().to_string())
        .replace("@NAMES@", &names.join(",\n    "))
        .replace("@LISTS@", lists.trim_end())
        .replace("@CALLS@", calls.trim_end());
    fs::write(to, text).map_err(|error| error.to_string())
}

/// Whether it belongs into a run: it has a runtime, and leaves one.
fn is_called(function: &Function) -> bool {
    takes_runtime(function) && !ENDS.contains(&&*function.name) && function.name != NEVER_INSIDE
}

/// After these the caller has no runtime; without a transfer there is none to accept.
const ENDS: [&str; 3] = ["asx_runtime_destroy", "asx_runtime_transfer", "asx_runtime_accept"];

/// The names of all statuses.
fn statuses(header: &str) -> BTreeSet<String> {
    let part = header.split("/* Statuses. */").nth(1).unwrap_or_default();
    let part = part.split("/* The states of a region. */").next().unwrap_or_default();
    let defined = part.lines().filter_map(|line| line.strip_prefix("#define "));
    defined.filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

/// What a comment, or the one it refers to, says the function answers.
fn answers(function: &Function, all: &[Function], of: &BTreeSet<String>) -> BTreeSet<String> {
    let said = function.docs.split("Returns:").nth(1).unwrap_or_default();
    let words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut found: BTreeSet<String> =
        words.filter(|word| of.contains(*word)).map(str::to_owned).collect();
    for rest in said.split(" as asx_").skip(1) {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
        let other = all.iter().find(|other| other.name == format!("asx_{}", &rest[..end]));
        found.extend(other.into_iter().flat_map(|other| answers(other, all, of)));
    }
    found
}

/// The type of the handle that a parameter gets, if it is one to be filled in.
fn made<'a>(function: &Function, param: &'a Param) -> Option<&'a str> {
    let made = param.type_of.strip_prefix("asx_")?.strip_suffix(" *")?;
    let handles = [
        "region_id",
        "task_id",
        "obligation_id",
        "send_permit",
        "timer_handle",
        "witness_id",
        "channel_sender",
        "channel_receiver",
    ];
    let filled = param.name == "out" || function.name == "asx_channel_create";
    (filled && handles.contains(&made)).then_some(made)
}

fn call(function: &Function) -> String {
    let arguments: Vec<_> = function.params.iter().map(|param| argument(function, param)).collect();
    format!("{}({})", function.name, arguments.join(", "))
}

/// An expression for a value that is mostly sensible.
fn argument(function: &Function, param: &Param) -> String {
    if let Some(made) = made(function, param) {
        return format!("&made_{made}");
    }
    let Param { type_of, name } = param;
    let value = match (type_of.as_str(), name.as_str()) {
        ("asx_runtime *", _) => "rt",
        ("const asx_region_id *", _) => "maybe_region()",
        ("const asx_task_id *", _) => "maybe_task()",
        ("const asx_witness_info *", _) => "sized_witness_info()",
        ("const asx_region_options *", _) => "any_region_options()",
        ("const asx_task_options *", _) => "any_task_options()",
        ("asx_body", _) => "any_body()",
        ("asx_when", _) => "any(2) ? asx_after(any(8)) : asx_at(any_time())",
        ("const char *", "message") => "any(2) ? \"text\" : NULL",
        ("const char *", _) => "__FILE__",
        ("char *", _) => "text",
        ("const void *" | "void *", _) => "element",
        ("asx_event *" | "const asx_event *", _) => "events",
        ("asx_cx *", _) => "some_cx()",
        ("asx_channel_sender *", _) => "some_channel_sender()",
        ("asx_channel_receiver *", _) => "some_channel_receiver()",
        ("asx_send_permit *", _) => "some_send_permit()",
        ("asx_channel_id", _) => "any_channel_sender().channel",
        ("asx_task_entry *", _) => "entries",
        ("size_t", "room") => "any(2) ? ROOM : (size_t)any(8)",
        ("size_t", "element_size") => "sizeof element",
        ("size_t", _) => "(size_t)any(4)",
        ("uint64_t", "from") => "any(2) ? recorded_now() : any(4)",
        ("uint64_t", "recorded") => "any(2) ? digest_now() : any(4)",
        ("uint64_t", "now") => "any_time()",
        ("uint64_t", "max_steps") => "any(6)",
        ("uint64_t", "soft_ns") => "40 + any(400)",
        ("uint64_t", "force_ns" | "span_ns" | "grace_ns") => "any(2) ? ASX_NONE : any(20)",
        ("uint64_t", _) => "any(4)",
        ("uint32_t", _) => "(uint32_t)any(3)",
        ("int32_t", "kind") => "(int32_t)any(12)",
        ("int32_t", "status") => "any(2) ? -1 : ASX_E_DISCONNECTED",
        ("int32_t", _) => "(int32_t)any(6)",
        (pointer, _) if pointer.ends_with('*') => {
            let to = pointer.trim_end_matches('*').trim();
            return match to.strip_prefix("asx_") {
                Some(sized) => format!("sized_{sized}()"),
                None => format!("&number_{to}"),
            };
        }
        (by_value, _) => return format!("any_{}()", by_value.trim_start_matches("asx_")),
    };
    value.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "/* Statuses. */\n#define ASX_OK 0\n#define ASX_E_FULL 102\n\
        /* The states of a region. */\n#define ASX_NONE 7\n\
        /* Puts. ASX_E_FULL is no answer here.\n * - Returns: ASX_OK; with ASX_NONE too.\n */\n\
        asx_status asx_put(asx_runtime *rt, asx_task_id task, asx_timer_handle *out);\n\
        /* Gets.\n * - Returns: as asx_put; ASX_E_FULL.\n */\n\
        asx_status asx_get(asx_runtime *rt);\n";

    #[test]
    fn what_a_comment_lists_is_what_may_be_answered() {
        let all = functions(HEADER);
        let statuses = statuses(HEADER);
        let [put, get] = &all[..] else { panic!("two functions") };
        let listed = |function| answers(function, &all, &statuses).into_iter().collect::<Vec<_>>();
        assert_eq!(listed(put), ["ASX_OK"]);
        assert_eq!(listed(get), ["ASX_E_FULL", "ASX_OK"]);
        assert_eq!(call(put), "asx_put(rt, any_task_id(), &made_timer_handle)");
    }
}

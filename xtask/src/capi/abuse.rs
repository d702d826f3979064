//! The abuse suite: a program made from the header that calls every function with every kind of
//! bad argument, and wants the right status and an unchanged digest.
//!
//! For each parameter the header's type, name and comment say what can be wrong with it; the other
//! arguments are good ones. What asx_last_error says must be that parameter, by name and place.
//! Then every function is called where it may not be: from a wrong thread, from inside a drop
//! callback, and from inside the program's own allocator.

use super::build::sources;
use crate::Result;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The fewest cases that are worth the name.
const FEWEST: usize = 500;

/// Places where nothing may be called: a thread, a drop callback, and the allocator's functions,
/// one of them twice.
const PLACES: usize = 5;

/// A function as the header declares it.
pub(super) struct Function {
    pub(super) name: String,
    returns: String,
    pub(super) params: Vec<Param>,
    pub(super) docs: String,
}

pub(super) struct Param {
    pub(super) type_of: String,
    pub(super) name: String,
}

struct Case {
    what: String,
    call: String,
    status: &'static str,
    /// What is said of it afterwards: the function, and the argument's name and place.
    told: String,
}

/// Writes the program; how many cases it has.
pub(super) fn generate(to: &Path) -> Result<usize> {
    let header = fs::read_to_string(sources().join("include/asx.h")).map_err(|e| e.to_string())?;
    let functions = functions(&header);
    let cases: Vec<Case> =
        functions.iter().flat_map(|function| cases(function, &functions)).collect();
    let calls: Vec<&Function> = functions.iter().filter(|f| is_owned(f)).collect();
    let count = cases.len() + PLACES * calls.len();
    if count < FEWEST {
        return Err(format!("only {count} cases of abuse"));
    }
    let template = fs::read_to_string(sources().join("tests/c/abuse.c.in"));
    let template = template.map_err(|error| error.to_string())?;
    let mut bad = String::new();
    for Case { what, call, status, told } in &cases {
        let _ = writeln!(bad, "    BAD(\"{what}\", {call}, {status}, {told});");
    }
    let mut all = String::new();
    for function in &calls {
        let name = &function.name;
        let call = call(function, None);
        let (wanted, told) = match name.as_str() {
            // To ask what has gone wrong is allowed in hooks.
            LAST_ERROR => ("wanted == ASX_E_REENTRANT ? ASX_OK : wanted", UNTOLD.to_owned()),
            _ => ("wanted", format!("\"{name}\", NULL, 0")),
        };
        let _ = writeln!(all, "    BAD(\"{name} where it may not\", {call}, {wanted}, {told});");
    }
    let text = template.replace("@BAD@", bad.trim_end()).replace("@ALL@", all.trim_end());
    fs::write(to, text.replace("@COUNT@", &count.to_string()))
        .map_err(|error| error.to_string())?;
    Ok(count)
}

/// Not to be called inside of anything: there is nothing it could answer.
pub(super) const NEVER_INSIDE: &str = "asx_runtime_recover";

/// Whether only the owner's thread may call it, and not from a hook.
fn is_owned(function: &Function) -> bool {
    takes_runtime(function) && !ANYWHERE.contains(&&*function.name) && function.name != NEVER_INSIDE
}

/// First arguments that are the runtime, or name it.
const RUNTIMES: [&str; 5] = [
    "asx_runtime *",
    "asx_cx *",
    "asx_channel_sender *",
    "asx_channel_receiver *",
    "asx_send_permit *",
];

/// Whether the function is one of a runtime, and answers a status.
pub(super) fn takes_runtime(function: &Function) -> bool {
    let first = function.params.first().is_some_and(|p| RUNTIMES.contains(&&*p.type_of));
    first && function.returns == "asx_status"
}

/// What every thread may call at any time.
const ANYWHERE: [&str; 2] = ["asx_external_wake", "asx_thread_number"];

/// It tells of failures, its own not among them.
const LAST_ERROR: &str = "asx_last_error";

/// Nothing is told of a call.
const UNTOLD: &str = "NULL, NULL, 0";

/// What asx_last_error says after a refusal because of one argument.
fn told(function: &Function, at: usize, is_pointer: bool, status: &str) -> String {
    let kept = is_owned(function) && function.name != LAST_ERROR;
    let name = &function.name;
    match status {
        // Without a runtime there is nowhere to keep it.
        "ASX_E_INVALID_ARGUMENT" if at == 0 && is_pointer => UNTOLD.to_owned(),
        _ if !kept || status == "ASX_OK" => UNTOLD.to_owned(),
        "ASX_E_RESOURCE_EXHAUSTED" if name == "asx_region_alloc" => {
            format!("\"{name}\", \"{}\", {}", function.params[at].name, at + 1)
        }
        "ASX_E_INVALID_ARGUMENT" | "ASX_E_STALE_HANDLE" => {
            format!("\"{name}\", \"{}\", {}", function.params[at].name, at + 1)
        }
        _ => format!("\"{name}\", NULL, 0"),
    }
}

/// Every function the header declares.
pub(super) fn functions(header: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut docs = String::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("/*") {
            docs.clear();
        }
        if line.starts_with("/*") || line.starts_with(" *") {
            docs.push_str(line.trim_start_matches(['/', '*', ' ']));
            docs.push(' ');
            continue;
        }
        let inside = line.starts_with([' ', '#', '}', '{']);
        let declares = !inside && !line.starts_with("typedef ") && !line.starts_with("static ");
        if !declares || !line.contains("asx_") || !line.contains('(') {
            continue;
        }
        let mut whole = line.to_owned();
        while !whole.ends_with(';') {
            let Some(next) = lines.next() else { break };
            whole.push_str(next.trim_start());
        }
        found.extend(function(&whole, &docs));
    }
    found
}

fn function(line: &str, docs: &str) -> Option<Function> {
    let (head, rest) = line.split_once('(')?;
    let at = head.rfind("asx_")?;
    let params = rest.strip_suffix(");")?;
    let param = |text: &str| {
        let text = text.trim();
        let at = text.rfind([' ', '*'])? + 1;
        Some(Param { type_of: plain(text[..at].trim()), name: text[at..].to_owned() })
    };
    let params = params.split(',').filter(|text| *text != "void").filter_map(param).collect();
    let returns = head[..at].trim().to_owned();
    Some(Function { name: head[at..].to_owned(), returns, params, docs: docs.to_owned() })
}

/// A type with the names of numbers replaced by what they stand for.
fn plain(type_of: &str) -> String {
    let numbers = [
        ("asx_time", "uint64_t"),
        ("asx_cancel_kind", "int32_t"),
        ("asx_cancel_phase", "int32_t"),
        ("asx_channel_state", "int32_t"),
    ];
    let words = type_of.split(' ').map(|word| {
        numbers.iter().find(|(name, _)| *name == word).map_or(word, |(_, number)| *number)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A call with good arguments, but for the one that is given.
fn call(function: &Function, bad: Option<(usize, &str)>) -> String {
    let argument = |(at, param): (usize, &Param)| match bad {
        Some((place, value)) if place == at => value.to_owned(),
        _ => good(param),
    };
    let arguments: Vec<_> = function.params.iter().enumerate().map(argument).collect();
    format!("{}({})", function.name, arguments.join(", "))
}

fn good(param: &Param) -> String {
    let Param { type_of, name } = param;
    let value = match (type_of.as_str(), name.as_str()) {
        ("asx_runtime *", _) => "rt",
        // No task waits for itself.
        ("asx_task_id", "target") => "good_target",
        ("asx_runtime **", _) => "&created",
        ("const asx_runtime_config *", _) => "&config",
        ("asx_runtime_config *", _) => "&config",
        ("size_t", "struct_size") => "sizeof config",
        ("const char *", _) => "\"text\"",
        ("char *", _) => "text",
        ("const void *" | "void *", "value" | "old") => "element",
        ("void *", "out") => "element",
        ("const asx_event *", _) => "events",
        ("asx_timer_wheel *", _) => "wheel",
        ("asx_timer_wheel **", _) => "&made_wheel",
        ("void *", _) => "NULL",
        ("size_t", "room") => "ROOM",
        ("size_t", _) => "1",
        ("asx_event *", _) => "events",
        ("asx_task_entry *", _) => "entries",
        ("asx_when", _) => "asx_after(1)",
        ("int32_t", "status") => "-1",
        ("int32_t" | "uint32_t" | "uint64_t" | "asx_status", _) => "0",
        ("asx_alloc_fn", _) => "gives",
        ("asx_free_fn", _) => "takes",
        (pointer, _) if pointer.ends_with('*') => {
            let to = pointer.trim_end_matches('*').trim().trim_start_matches("const ");
            return format!("&good_{}", to.trim_start_matches("asx_"));
        }
        (by_value, _) => return format!("good_{}", by_value.trim_start_matches("asx_")),
    };
    value.to_owned()
}

const HANDLES: [&str; 5] =
    ["asx_region_id", "asx_task_id", "asx_obligation_id", "asx_channel_id", "asx_witness_id"];
/// Structs that lead with their size.
const SIZED: [&str; 19] = [
    "asx_error_info",
    "asx_runtime_config",
    "asx_region_options",
    "asx_task_options",
    "asx_region_info",
    "asx_task_info",
    "asx_cancel_reason",
    "asx_channel_info",
    "asx_timer_info",
    "asx_queues_info",
    "asx_journal_info",
    "asx_diagnosis",
    "asx_progress",
    "asx_stats",
    "asx_ghost",
    "asx_witness_info",
    "asx_transfer",
    "asx_replay_info",
    "asx_timer_wheel_config",
];
const ENUMS: [&str; 5] = ["kind", "state", "mode", "which", "profile"];

/// What can be wrong with a function's arguments.
fn cases(function: &Function, all: &[Function]) -> Vec<Case> {
    let mut cases = Vec::new();
    if function.returns != "asx_status" {
        return cases;
    }
    for (at, param) in function.params.iter().enumerate() {
        for (what, value, status) in wrongs(function, param, all) {
            let what = format!("{}: {} {what}", function.name, param.name);
            let status = expected(&function.name, &param.name, status);
            let is_pointer = value == "NULL" || value.ends_with("misaligned");
            let told = told(function, at, is_pointer, status);
            cases.push(Case { what, call: call(function, Some((at, &value))), status, told });
        }
    }
    cases
}

/// Where the law has another answer for a stale handle than STALE_HANDLE.
fn expected(function: &str, param: &str, status: &'static str) -> &'static str {
    match (function, param, status) {
        // Whoever is not being polled, whatever the reason.
        ("asx_task_set_error", _, "ASX_E_STALE_HANDLE") => "ASX_E_INVALID_TRANSITION",
        // Nobody waits on a channel that is gone.
        ("asx_channel_abandon", "channel", "ASX_E_STALE_HANDLE") => "ASX_OK",
        (_, _, status) => status,
    }
}

type Wrong = (&'static str, String, &'static str);

fn wrongs(function: &Function, param: &Param, all: &[Function]) -> Vec<Wrong> {
    const BAD: &str = "ASX_E_INVALID_ARGUMENT";
    let Param { type_of, name } = param;
    let pointee = type_of.trim_end_matches('*').trim().trim_start_matches("const ");
    let mut wrongs: Vec<Wrong> = Vec::new();
    if HANDLES.contains(&type_of.as_str()) {
        let good = good(param);
        let short = pointee.trim_start_matches("asx_");
        wrongs.push(("is zero", format!("({pointee}){{ 0, 0 }}"), BAD));
        wrongs.push(("has all bits", format!("({pointee}){{ ~UINT64_C(0), ~UINT64_C(0) }}"), BAD));
        wrongs.push(("is of another type", format!("other_{short}({good})"), BAD));
        wrongs.push(("has a tag that is none", format!("tagged_{short}({good})"), BAD));
        wrongs.push(("has two states", format!("both_{short}({good})"), BAD));
        if !ANYWHERE.contains(&&*function.name) {
            wrongs.push(("has a state it never had", format!("later_{short}({good})"), BAD));
        }
        wrongs.push(("is of the future", format!("future_{short}({good})"), "ASX_E_STALE_HANDLE"));
        wrongs.push(("has a forged slot", format!("forged_{short}({good})"), "ASX_E_STALE_HANDLE"));
        wrongs.push(("has no tenant", format!("nobody_{short}({good})"), "ASX_E_STALE_HANDLE"));
    }
    if type_of.ends_with('*') {
        let required = !optional(function, name, all) && *name != "hook";
        if required {
            wrongs.push(("is NULL", String::from("NULL"), BAD));
        }
        let aligned = !matches!(pointee, "char" | "void" | "asx_runtime" | "asx_timer_wheel");
        if aligned && !type_of.ends_with("**") {
            wrongs.push(("is misaligned", format!("({type_of})misaligned"), BAD));
        }
    }
    if type_of.ends_with('*')
        && SIZED.contains(&pointee)
        && function.name != "asx_runtime_config_init"
    {
        for (what, size) in [
            ("has no size", "0"),
            ("has an odd size", "13"),
            ("ends inside a field", "20"),
            ("is larger than anything", "UINT32_MAX"),
        ] {
            wrongs.push((what, format!("({pointee} *)sized({size})"), BAD));
        }
    }
    let own = name == &function.params[0].name;
    if let Some(short) = behind(type_of, name).filter(|short| own || *short == "cx") {
        wrongs.push(("has no handle", format!("&zero_{short}"), BAD));
        wrongs.push(("is of the future", format!("&future_{short}"), "ASX_E_STALE_HANDLE"));
        wrongs.push(("has a forged slot", format!("&forged_{short}"), "ASX_E_STALE_HANDLE"));
        if short == "cx" && !own {
            wrongs.push(("is of another runtime", String::from("&foreign_cx"), BAD));
        }
    }
    if HANDLES.contains(&pointee) && type_of.starts_with("const ") {
        wrongs.push(("is of another type", String::from("(const void *)&good_wrong"), BAD));
    }
    match (type_of.as_str(), name.as_str()) {
        ("int32_t", name) if ENUMS.contains(&name) => {
            for value in ["-1", "99", "INT32_MAX", "INT32_MIN"] {
                wrongs.push(("is none of its values", value.to_owned(), BAD));
            }
        }
        ("int32_t", "status") => {
            wrongs.push(("is no status", String::from("99"), BAD));
            wrongs.push(("is no error", String::from("ASX_OK"), BAD));
        }
        ("const char *", "message") => {
            wrongs.push(("is not UTF-8", String::from("\"\\xff\\xfe\""), BAD));
            wrongs.push(("does not end", String::from("endless"), BAD));
        }
        ("size_t", name) => wrongs.extend(wrong_sizes(&function.name, name)),
        ("asx_alloc_fn" | "asx_free_fn", _) => {
            wrongs.push(("is NULL", String::from("NULL"), BAD));
        }
        ("asx_body", _) => {
            wrongs.push(("cannot be polled", String::from("asx_poll_with(NULL, NULL)"), BAD));
        }
        ("asx_when", _) => {
            for value in ["(asx_when){ 1, 9, 0 }", "(asx_when){ 1, ASX_WHEN_AT, 1 }"] {
                wrongs.push(("is none of its values", value.to_owned(), BAD));
            }
        }
        _ => {}
    }
    wrongs
}

/// A struct that names a runtime and something in there, if the parameter is one to be read.
fn behind(type_of: &str, name: &str) -> Option<&'static str> {
    match (type_of, name) {
        ("asx_cx *", _) => Some("cx"),
        ("asx_channel_sender *", "sender") => Some("sender"),
        ("asx_channel_receiver *", "receiver") => Some("receiver"),
        ("asx_send_permit *", "permit") => Some("permit"),
        _ => None,
    }
}

/// What can be wrong with a number of bytes or of things.
fn wrong_sizes(function: &str, name: &str) -> Vec<Wrong> {
    const BAD: &str = "ASX_E_INVALID_ARGUMENT";
    let mut wrongs: Vec<Wrong> = Vec::new();
    match (function, name) {
        ("asx_region_alloc", "size") => {
            wrongs.push(("is zero", String::from("0"), BAD));
            for giant in ["SIZE_MAX", "SIZE_MAX / 2"] {
                wrongs.push(("is giant", giant.to_owned(), "ASX_E_RESOURCE_EXHAUSTED"));
            }
        }
        (_, "align") => {
            for value in ["0", "3", "ASX_ALIGN_MOST * 2", "SIZE_MAX"] {
                wrongs.push(("is none", value.to_owned(), BAD));
            }
        }
        (_, "room") => wrongs.push(("overflows", String::from("SIZE_MAX"), BAD)),
        (_, "element_size") => wrongs.push(("overflows", String::from("SIZE_MAX"), BAD)),
        (_, "capacity") => {
            wrongs.push(("is zero", String::from("0"), BAD));
            wrongs.push(("is giant", String::from("SIZE_MAX"), "ASX_E_RESOURCE_EXHAUSTED"));
        }
        (_, "struct_size") => {
            for value in ["0", "12", "20", "SIZE_MAX"] {
                wrongs.push(("never was", value.to_owned(), BAD));
            }
        }
        _ => {}
    }
    wrongs
}

/// Whether the comment, or the one it refers to, lets a pointer be NULL.
fn optional(function: &Function, name: &str, all: &[Function]) -> bool {
    let says = |docs: &str| docs.contains(&format!("`{name}` is NULL or"));
    let referred = function.docs.split("as asx_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_')?;
        all.iter().find(|other| other.name == format!("asx_{}", &rest[..end]))
    });
    says(&function.docs) || referred.into_iter().any(|other| says(&other.docs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read() {
        let header = "/* Wakes.\n * - Parameters: `first` is NULL or writable.\n */\n\
            asx_status asx_task_wake(asx_runtime *rt, asx_task_id task, int32_t *first);\n";
        let functions = functions(header);
        let [function] = &functions[..] else { panic!("one function") };
        let types: Vec<_> = function.params.iter().map(|p| p.type_of.as_str()).collect();
        assert_eq!(types, ["asx_runtime *", "asx_task_id", "int32_t *"]);
        assert!(optional(function, "first", &functions));
        assert_eq!(call(function, None), "asx_task_wake(rt, good_task_id, &good_int32_t)");
        assert!(cases(function, &functions).len() >= 9);
    }
}

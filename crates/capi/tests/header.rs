//! `include/asx.h` is made from the sources: this test makes it and compares.
//!
//! With `ASX_BLESS=1` it is written instead. The sources are read as rustfmt leaves them: a
//! documentation comment, then a constant, a type, a struct or a function. Functions are those of
//! `export!` blocks and those marked `no_mangle`.

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Where types come from, in the order in which C must see them.
const TYPES: [&str; 14] = [
    "abi", "memory", "config", "ghost", "status", "error", "runtime", "storage", "task", "channel",
    "journal", "replay", "witness", "wheel",
];
/// Where functions come from, with the words above them.
const FUNCTIONS: [(&str, &str); 17] = [
    ("status", "Names and the version: no runtime is needed."),
    ("config", "Configuration."),
    ("runtime", "The runtime."),
    ("last_error", "What went wrong."),
    ("recover", "After a callback that did not return."),
    ("transfer", "Handing a runtime over."),
    ("region", "Regions."),
    ("storage", "Memory of regions."),
    ("cx", "Inside a poll."),
    ("task", "Tasks."),
    ("obligation", "Obligations."),
    ("channel", "Channels and permits."),
    ("timer", "Timers of regions."),
    ("wheel", "Timer wheels: no runtime is needed."),
    ("journal", "The journal."),
    ("replay", "Comparing a run with a recorded one."),
    ("witness", "Witnesses of a cancel."),
];

#[test]
fn the_header_is_what_the_sources_say() {
    let made = header();
    let path = folder().join("include/asx.h");
    if std::env::var_os("ASX_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(there.lines()).position(|(made, there)| made != there);
    assert!(
        made == there,
        "include/asx.h is not what the sources say (line {:?}): run `cargo xtask capi header`",
        differs.map(|at| at + 1)
    );
}

#[test]
fn every_function_documents_its_parameters_and_results() {
    let functions: Vec<Item> = FUNCTIONS.iter().flat_map(|(module, _)| items(module)).collect();
    let mut count = 0;
    for Item { docs, what } in functions {
        let What::Function { name, args, returns } = what else { continue };
        let text = docs.join(" ");
        assert!(returns == "()" || text.contains("- Returns: "), "{name}: no `Returns`");
        for line in docs.iter().filter_map(|line| line.strip_prefix("- ")) {
            let label = line.split(": ").next().unwrap();
            let known = ["Parameters", "Thread", "Ownership", "Returns"].contains(&label);
            assert!(known, "{name}: `{label}` is no section");
        }
        // Those that others refer to are checked there.
        let refers = text.contains("- Parameters: as asx_");
        for (arg, _) in args.iter().skip(1).filter(|(_, of)| of.starts_with('*') && !refers) {
            // Contexts, wheels and receivers are explained at the top of the header.
            let known = arg == "cx" || text.contains(&format!("`{arg}`"));
            assert!(known || text.contains(&format!("`*{arg}`")), "{name}: nothing about `{arg}`");
        }
        count += 1;
    }
    assert!(count >= 80, "{count}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

#[derive(Debug)]
struct Item {
    docs: Vec<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Constant { name: String, value: String },
    Alias { name: String, of: String },
    Struct { name: String, fields: Vec<(Vec<String>, String, String)> },
    Function { name: String, args: Vec<(String, String)>, returns: String },
}

/// What a module declares, in order.
fn items(module: &str) -> Vec<Item> {
    let text = std::fs::read_to_string(folder().join(format!("src/{module}.rs"))).unwrap();
    let mut items = Vec::new();
    let mut docs: Vec<String> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with("#[cfg(all(test") {
            break;
        }
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.strip_prefix(' ').unwrap_or(doc).to_owned());
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        if let Some(what) = item(line, &mut lines) {
            let end = docs.iter().position(|line| line == "# Safety").unwrap_or(docs.len());
            docs.truncate(end);
            while docs.last().is_some_and(String::is_empty) {
                docs.pop();
            }
            items.push(Item { docs: docs.clone(), what });
        }
        docs.clear();
    }
    items
}

fn item<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<What> {
    let mut until = |line: &str, end: &str| {
        let mut whole = line.to_owned();
        while !whole.contains(end) {
            whole.push(' ');
            whole.push_str(lines.next().expect("an item ends").trim());
        }
        whole
    };
    if let Some(rest) = line.strip_prefix("pub const ASX_") {
        let (name, value) = rest.split_once(" = ").unwrap();
        let (name, type_of) = name.split_once(": ").unwrap();
        let value = constant(value.trim_end_matches(';'), type_of);
        return Some(What::Constant { name: format!("ASX_{name}"), value });
    }
    if line.starts_with("pub type Asx") {
        let whole = until(line, ";");
        let (name, of) = whole.strip_prefix("pub type ").unwrap().split_once(" =").unwrap();
        return Some(What::Alias {
            name: c_name(name),
            of: of.trim_matches([' ', ';']).to_owned(),
        });
    }
    if line.starts_with("pub struct Asx") && !is_opaque(line) {
        let name = line.split([' ', '{']).nth(2).unwrap();
        let mut fields = Vec::new();
        let mut docs = Vec::new();
        for line in lines.by_ref().map(str::trim).take_while(|line| *line != "}") {
            match line.strip_prefix("/// ") {
                Some(doc) => docs.push(doc.to_owned()),
                None => {
                    let field = line.strip_prefix("pub ").unwrap().trim_end_matches(',');
                    let (name, type_of) = field.split_once(": ").unwrap();
                    fields.push((std::mem::take(&mut docs), name.into(), type_of.into()));
                }
            }
        }
        return Some(What::Struct { name: c_name(name), fields });
    }
    let exported = line.starts_with("fn asx_");
    let written = line.contains("extern \"C\" fn asx_");
    (exported || written).then(|| function(&until(line, "{"), exported))
}

/// Whether C sees no more of a type than its name.
fn is_opaque(line: &str) -> bool {
    line.starts_with("pub struct AsxRuntime {") || line.starts_with("pub struct AsxTimerWheel {")
}

fn function(text: &str, exported: bool) -> What {
    let text = &text[text.find("asx_").unwrap()..];
    let (name, rest) = text.split_once('(').unwrap();
    let (args, rest) = rest.rsplit_once(')').unwrap();
    let mut found = Vec::new();
    for arg in args.split(',').map(str::trim).filter(|arg| !arg.is_empty()) {
        match arg.split_once(": ") {
            Some((name, type_of)) => found.push((name.to_owned(), own_type(type_of).to_owned())),
            None => found.push((arg.to_owned(), "*mut AsxRuntime".to_owned())),
        }
    }
    let returns = match rest.split_once("-> ") {
        _ if exported => "AsxStatus",
        Some((_, returns)) => returns.trim_end_matches([' ', '{']),
        None => "()",
    };
    What::Function { name: name.to_owned(), args: found, returns: returns.to_owned() }
}

/// The type of an argument: `export!` lets the first one end with ` as rt`.
fn own_type(type_of: &str) -> &str {
    type_of.trim_end_matches(" as rt")
}

fn constant(value: &str, type_of: &str) -> String {
    match (value, type_of) {
        ("u64::MAX", _) => "UINT64_MAX".to_owned(),
        (value, "usize") => match value.split_once(" << ") {
            Some((base, shift)) => format!("((size_t){base} << {shift})"),
            None => value.to_owned(),
        },
        (value, "u32") => format!("{}u", value.replace('_', "")),
        (value, _) if value.starts_with('-') => format!("({value})"),
        (value, _) => value.to_owned(),
    }
}

/// `AsxTaskInfo` is `asx_task_info`.
fn c_name(name: &str) -> String {
    let mut out = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// A declaration of `name` with a type of Rust's.
fn declare(type_of: &str, name: &str) -> String {
    let type_of = type_of.trim();
    if let Some(inner) = type_of.strip_prefix("Option<") {
        return declare(inner.trim_end_matches('>'), name);
    }
    if let Some(array) = type_of.strip_prefix('[') {
        let (of, count) = array.trim_end_matches(']').split_once("; ").unwrap();
        return declare(of, &format!("{name}[{count}]"));
    }
    if let Some(to) = type_of.strip_prefix("*mut ") {
        return declare(to, &format!("*{name}"));
    }
    if let Some(to) = type_of.strip_prefix("*const ") {
        return format!("const {}", declare(to, &format!("*{name}")));
    }
    let last = type_of.rsplit("::").next().unwrap();
    let plain = match last {
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "i32" => "int32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "bool" => "bool",
        "c_void" | "()" => "void",
        "c_char" => "char",
        other => &c_name(other),
    };
    format!("{plain} {name}").trim_end().to_owned()
}

fn comment(out: &mut String, indent: &str, docs: &[String]) {
    if let [line] = docs {
        let _ = writeln!(out, "{indent}/* {line} */");
        return;
    }
    for (at, line) in docs.iter().enumerate() {
        let begin = if at == 0 { "/*" } else { " *" };
        let _ = writeln!(out, "{}", format!("{indent}{begin} {line}").trim_end());
    }
    let _ = writeln!(out, "{indent} */");
}

fn arguments(args: &[(String, String)]) -> String {
    let list: Vec<_> = args.iter().map(|(name, of)| declare(of, name)).collect();
    if list.is_empty() { "void".to_owned() } else { list.join(", ") }
}

fn write_item(out: &mut String, Item { docs, what }: &Item) {
    comment(out, "", docs);
    let _ = match what {
        What::Constant { name, value } => writeln!(out, "#define {name} {value}"),
        What::Alias { name, of } => match of.strip_prefix("unsafe extern \"C\" fn(") {
            Some(rest) => {
                let (args, returns) = rest.rsplit_once(')').unwrap();
                let returns = returns.trim().strip_prefix("-> ").unwrap_or("()");
                let args = args.split(", ").filter_map(|arg| arg.trim().split_once(": "));
                let args: Vec<_> = args.map(|(n, t)| (n.to_owned(), t.to_owned())).collect();
                writeln!(
                    out,
                    "typedef {}({});",
                    declare(returns, &format!("(*{name})")),
                    arguments(&args)
                )
            }
            None => writeln!(out, "typedef {};", declare(of, name)),
        },
        What::Struct { name, fields } => {
            let _ = writeln!(out, "typedef struct {name} {{");
            for (docs, field, of) in fields {
                comment(out, "    ", docs);
                let _ = writeln!(out, "    {};", declare(of, field));
            }
            writeln!(out, "}} {name};")
        }
        What::Function { name, args, returns } => {
            let one = format!("{};", declare(returns, &format!("{name}({})", arguments(args))));
            if one.len() <= 100 {
                writeln!(out, "{one}")
            } else {
                let list: Vec<_> = args.iter().map(|(n, of)| declare(of, n)).collect();
                writeln!(
                    out,
                    "{};",
                    declare(returns, &format!("{name}(\n    {})", list.join(",\n    ")))
                )
            }
        }
    };
    out.push('\n');
}

/// `ASX_OK`, or `ASX_E_NAME`.
fn status_name(status: Status) -> String {
    match status {
        Status::Ok => "ASX_OK".to_owned(),
        status => format!("ASX_E_{}", status.name()),
    }
}

/// `ASX_PREFIX_NAME` for each value of an enum of the kernel's.
fn names(out: &mut String, about: &str, prefix: &str, values: &[(&str, i32)]) {
    let _ = writeln!(out, "/* {about} */");
    for (name, number) in values {
        let name = match *name {
            "ParentCancelled" => "PARENT".to_owned(),
            "ResourceUnavailable" => "RESOURCE".to_owned(),
            name => c_name(name).to_uppercase(),
        };
        let _ = writeln!(out, "#define ASX_{prefix}{name} {number}");
    }
    out.push('\n');
}

fn header() -> String {
    let mut out = String::from(include_str!("header/top.h"));
    out.push('\n');
    let _ = writeln!(out, "/* Statuses. */");
    for status in Status::ALL {
        let _ = writeln!(out, "/* {} */", status.text());
        let _ = writeln!(out, "#define {} {}", status_name(*status), status.number());
    }
    out.push('\n');
    macro_rules! all {
        ($type:ident) => {
            &$type::ALL.map(|value| (value.name(), value as i32))
        };
    }
    names(&mut out, "The states of a region.", "REGION_", all!(RegionState));
    names(&mut out, "The states of a task.", "TASK_", all!(TaskState));
    names(&mut out, "The states of an obligation.", "OBLIGATION_", all!(ObligationState));
    names(&mut out, "The outcomes of tasks and regions, by severity.", "OUTCOME_", all!(Severity));
    names(
        &mut out,
        "The kinds of cancel: why a task or region is cancelled.",
        "CANCEL_",
        all!(Kind),
    );
    names(&mut out, "The phases of a cancel.", "CANCEL_", all!(Phase));
    names(&mut out, "The lanes of the run queue.", "LANE_", all!(Lane));
    for module in TYPES {
        for item in items(module) {
            if !matches!(item.what, What::Function { .. }) {
                write_item(&mut out, &item);
            }
        }
    }
    for (module, about) in FUNCTIONS {
        let _ = writeln!(out, "/* ---- {about} ---- */\n");
        for item in items(module) {
            if matches!(item.what, What::Function { .. }) {
                write_item(&mut out, &item);
            }
        }
    }
    out.push_str(include_str!("header/end.h"));
    out
}

//! Layers inside a crate: modules that import in one direction only.

use super::imports::Imports;
use super::{Findings, Tree};

/// A crate in layers.
struct Layers {
    /// The root file of the crate.
    root: &'static str,
    /// Top modules, lowest first. None of them reaches a later one by imports, directly or not.
    modules: &'static [&'static str],
    /// Methods that return parts of a higher layer, and the modules that may not call them. A
    /// method call has no path, so it is no import.
    calls: &'static [(&'static str, &'static [&'static str])],
}

const LAYERS: &[Layers] = &[Layers {
    root: "crates/task/src/lib.rs",
    modules: &["raw", "core", "region", "runtime"],
    calls: &[("region", &["raw", "core"]), ("core", &["raw"])],
}];

/// No module of a layer uses a higher layer.
pub(super) fn layers(tree: &Tree, findings: &mut Findings) {
    for layers in LAYERS {
        check(layers, tree, findings);
    }
}

fn check(layers: &Layers, tree: &Tree, findings: &mut Findings) {
    let Some(root) = tree.get(layers.root) else { return };
    let folder = layers.root.trim_end_matches("lib.rs");
    let graph = match Imports::read(tree, root, folder) {
        Ok(imports) => imports.between_top_modules(),
        Err(error) => return findings.add(root, 1, error),
    };
    for (at, layer) in layers.modules.iter().enumerate() {
        let name = (*layer).to_owned();
        let reached = graph.reached(&name);
        for higher in &layers.modules[at + 1..] {
            if reached.iter().any(|module| module.as_str() == *higher) {
                findings.add(root, 1, format!("`{layer}` imports `{higher}`, a layer above it"));
            }
        }
    }
    for (method, modules) in layers.calls {
        for module in *modules {
            check_calls(tree, &format!("{folder}{module}/"), method, findings);
        }
    }
}

/// No file below `folder` calls the method `method`, except in tests.
fn check_calls(tree: &Tree, folder: &str, method: &str, findings: &mut Findings) {
    let tests = super::architecture::test_files(tree, folder);
    for (file, source) in tree.sources().filter(|(file, _)| file.path.starts_with(folder)) {
        if tests.iter().any(|base| super::architecture::is_of(&file.path, base)) {
            continue;
        }
        let tokens = source.tokens();
        for four in tokens.windows(4) {
            let text = [four[0].text, four[1].text, four[2].text, four[3].text];
            let line = source.line(four[1].at);
            if text == [".", method, "(", ")"] && !source.is_test(line) {
                findings.add(file, line, format!("`{method}()` returns a part of a layer above"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    const ROOT: (&str, &str) =
        ("crates/task/src/lib.rs", "mod raw;\nmod core;\nmod region;\nmod runtime;\nmod dump;\n");

    #[test]
    fn an_import_of_a_higher_layer_is_found() {
        let files = [
            ROOT,
            ("crates/task/src/raw/mod.rs", "pub struct Header;\n"),
            ("crates/task/src/core/mod.rs", "use crate::raw::Header;\nuse crate::dump::Dump;\n"),
            ("crates/task/src/region.rs", "use crate::core::Core;\n"),
            ("crates/task/src/runtime.rs", ""),
            ("crates/task/src/dump.rs", "use crate::region::Region;\n"),
        ];
        let what = "`core` imports `region`, a layer above it";
        assert_eq!(findings(layers, &files), [format!("crates/task/src/lib.rs:1: {what}")]);
    }

    #[test]
    fn a_call_into_a_higher_layer_is_found_outside_of_tests() {
        let raw = "fn f() {\n    task.region();\n    task.region;\n    Region::region();\n}\n\
                   #[cfg(test)]\nmod tests {\n    fn g() {\n        task.region()\n    }\n}\n";
        let files = [ROOT, ("crates/task/src/raw/mod.rs", raw)];
        let what = "`region()` returns a part of a layer above";
        assert_eq!(findings(layers, &files), [format!("crates/task/src/raw/mod.rs:2: {what}")]);
    }
}

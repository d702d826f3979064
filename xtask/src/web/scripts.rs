//! The scripts of a build: the glue, and the snippets that it imports.

use super::chain::{self, files};
use crate::Result;
use crate::shell::{command, output};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the scripts of a folder and of the folders in it.
pub(super) fn all(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files(folder)? {
        if path.is_dir() {
            found.extend(all(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "js") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Makes the scripts of a folder small, for pages without a bundler, and free of constructs that
/// bundlers warn about.
pub(super) fn finish(folder: &Path) -> Result {
    for path in all(folder)? {
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        chain::write(&path, &merge_imports(&lean(&text)))?;
    }
    Ok(())
}

/// Writes a script that exports a WebAssembly file as `wasm`, in base64.
pub(super) fn embed(wasm: &Path, script: &Path) -> Result {
    let encode = "process.stdout.write(require('fs').readFileSync(process.argv[1], 'base64'))";
    let text = output(command("node", &["-e", encode]).arg(wasm))?;
    chain::write(script, &format!("export const wasm = \"{text}\";\n"))
}

/// Removes comments on separate lines, and indentation. The scripts have no strings of several
/// lines, which this would change.
fn lean(script: &str) -> String {
    let mut lean = String::new();
    let mut in_comment = false;
    for line in script.lines().map(str::trim) {
        let comment = in_comment || line.starts_with("/*");
        in_comment = comment && !line.ends_with("*/");
        if !(comment || line.is_empty() || line.starts_with("//")) {
            lean.push_str(line);
            lean.push('\n');
        }
    }
    lean
}

/// Keeps one import of each module in a lean script.
///
/// The glue imports a module once for each function that needs no wrapper, and lists all of these
/// imports under the same key of the import object.
fn merge_imports(script: &str) -> String {
    let mut modules = Vec::new();
    let mut repeated = Vec::new();
    let mut merged = String::new();
    for line in script.lines() {
        if repeated.iter().any(|key| key == line) {
            continue;
        }
        if let Some((name, module)) = namespace_import(line) {
            if modules.contains(&module) {
                repeated.push(format!("\"{module}\": {name},"));
                continue;
            }
            modules.push(module);
        }
        merged.push_str(line);
        merged.push('\n');
    }
    merged
}

/// Returns the name and the module of `import * as name from "module"`.
fn namespace_import(line: &str) -> Option<(&str, &str)> {
    let (name, module) = line.strip_prefix("import * as ")?.split_once(" from \"")?;
    Some((name, module.trim_end_matches(';').strip_suffix('"')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lean_script_has_the_same_code() {
        let script = "/* a */\n/**\n * b\n */\nlet a = 1; // c\n\n  // d\n  f(`/* */ ${a}`);\n";
        assert_eq!(lean(script), "let a = 1; // c\nf(`/* */ ${a}`);\n");
    }

    #[test]
    fn modules_are_imported_once() {
        let script = "import { f } from './a.js';\nimport * as import1 from \"./a.js\"\n\
                      import * as import2 from \"./b.js\";\nimport * as import3 from \"./a.js\"\n\
                      return {\n\"./a.js\": import1,\n\"./b.js\": import2,\n\
                      \"./a.js\": import3,\n};\n";
        let merged = "import { f } from './a.js';\nimport * as import1 from \"./a.js\"\n\
                      import * as import2 from \"./b.js\";\n\
                      return {\n\"./a.js\": import1,\n\"./b.js\": import2,\n};\n";
        assert_eq!(merge_imports(script), merged);
    }
}

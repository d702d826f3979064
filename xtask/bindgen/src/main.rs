//! Generates the JavaScript for a WebAssembly file:
//! `asx-bindgen IN.wasm OUT_DIR NAME [--package]`.
//!
//! Equivalent to the `wasm-bindgen` command with `--target web`, which is not available everywhere.
//! `--package` is for the npm package. It corresponds to `--experimental-reset-state-function`, to
//! replace an instance that has trapped, and `--omit-default-module-path`: the package passes the
//! address of the module itself.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (input, folder, name, package) = match args.as_slice() {
        [input, folder, name] => (input, folder, name, false),
        [input, folder, name, flag] if flag == "--package" => (input, folder, name, true),
        _ => {
            eprintln!("usage: asx-bindgen IN.wasm OUT_DIR NAME [--package]");
            return ExitCode::from(2);
        }
    };
    match generate(input, folder, name, package) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("asx-bindgen: {input}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn generate(input: &str, folder: &str, name: &str, package: bool) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    let bindgen = bindgen.web(true).map_err(|error| format!("{error:#}"))?;
    bindgen.input_path(input).out_name(name).typescript(true).omit_default_module_path(package);
    bindgen.reset_state_function(package);
    bindgen.generate(folder).map_err(|error| format!("{error:#}"))
}

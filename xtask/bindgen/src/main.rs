//! Writes the JavaScript beside a WebAssembly file: `asx-bindgen IN.wasm OUT_DIR NAME`.
//!
//! The same as the `wasm-bindgen` command with `--target web`, which cannot be had everywhere.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, folder, name] = args.as_slice() else {
        eprintln!("usage: asx-bindgen IN.wasm OUT_DIR NAME");
        return ExitCode::from(2);
    };
    match generate(input, folder, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("asx-bindgen: {input}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn generate(input: &str, folder: &str, name: &str) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    let bindgen = bindgen.web(true).map_err(|error| format!("{error:#}"))?;
    bindgen.input_path(input).out_name(name).typescript(true).omit_default_module_path(false);
    bindgen.generate(folder).map_err(|error| format!("{error:#}"))
}

//! Generates the JavaScript for a WebAssembly file:
//! `asx-bindgen IN.wasm OUT_DIR NAME [--renewable]`.
//!
//! Equivalent to the `wasm-bindgen` command with `--target web`, which is not available everywhere.
//! `--renewable` corresponds to its `--experimental-reset-state-function`.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (input, folder, name, renewable) = match args.as_slice() {
        [input, folder, name] => (input, folder, name, false),
        [input, folder, name, flag] if flag == "--renewable" => (input, folder, name, true),
        _ => {
            eprintln!("usage: asx-bindgen IN.wasm OUT_DIR NAME [--renewable]");
            return ExitCode::from(2);
        }
    };
    match generate(input, folder, name, renewable) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("asx-bindgen: {input}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn generate(input: &str, folder: &str, name: &str, renewable: bool) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    let bindgen = bindgen.web(true).map_err(|error| format!("{error:#}"))?;
    bindgen.input_path(input).out_name(name).typescript(true).omit_default_module_path(false);
    bindgen.reset_state_function(renewable);
    bindgen.generate(folder).map_err(|error| format!("{error:#}"))
}

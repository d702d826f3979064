//! The smallest page: `cargo xtask web` builds it and says how large it is.

#[cfg(target_arch = "wasm32")]
mod page {
    use asx_runtime::Cx;
    use std::time::Duration;
    use wasm_bindgen::prelude::*;

    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = console)]
        fn log(text: &str);
    }

    /// Says hello, and the rest a little later.
    #[wasm_bindgen(start)]
    pub(crate) fn main() {
        let started = asx_web::start(async |cx: Cx| {
            log("hello");
            if cx.sleep(Duration::from_millis(10)).await.is_ok() {
                log("world");
            }
        });
        if started.is_err() {
            log("something else runs here");
        }
    }
}

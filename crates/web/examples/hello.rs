//! The smallest page: `cargo xtask web` builds it and says how large it is.

#[cfg(target_arch = "wasm32")]
mod page {
    use asx_runtime::{Cancelled, Cx, Scope};
    use std::time::Duration;
    use wasm_bindgen::prelude::*;

    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = console)]
        fn log(text: &str);
    }

    /// Says hello twice, from a task of its own the second time.
    #[wasm_bindgen(start)]
    pub(crate) fn main() {
        let started = asx_web::start(async |cx: Cx| {
            log("hello");
            let said: Result<(), Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    let _ = s.spawn(async |cx: Cx| {
                        cx.sleep(Duration::from_millis(10)).await?;
                        log("world");
                        Ok(())
                    });
                    Ok(())
                })
                .await;
            if let Err(cancelled) = said {
                log(&cancelled.to_string());
            }
        });
        if let Err(error) = started {
            log(&error.to_string());
        }
    }
}

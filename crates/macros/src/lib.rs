//! The attributes of asx: use them through the `asx` crate.

use proc_macro::TokenStream;

mod entry;
mod main_fn;
mod settings;

/// Runs an async `main` on a runtime.
///
/// The function is `async` and takes the context as `cx: &Cx`, as `cx: Cx`, or not at all. It may
/// return whatever a `main` may. When it returns, everything it started has ended.
///
/// ```
/// use asx::prelude::*;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     cx.sleep(1.millis()).await
/// }
/// ```
///
/// Settings, in parentheses and separated by commas:
///
/// * `workers = 4`: how many threads run tasks; as many as there are processors unless set.
/// * `current_thread`: only the main thread does.
/// * `name = "shop"`: what the threads are called.
#[proc_macro_attribute]
pub fn main(settings: TokenStream, function: TokenStream) -> TokenStream {
    main_fn::expand(settings.into(), function.into()).into()
}

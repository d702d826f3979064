//! What JavaScript says about a task it starts.

use crate::{invalid, millis};
use asx_web::Start;
use asx_web::js::AbortSignal;
use js_sys::Reflect;
use wasm_bindgen::prelude::*;

/// How a task is to be started, and what aborts it.
pub(crate) struct Options {
    pub(crate) start: Start,
    pub(crate) signal: Option<AbortSignal>,
}

impl Options {
    /// A name, and nothing else.
    pub(crate) fn named(name: &str) -> Options {
        Options { start: Start { name: name.into(), ..Start::default() }, signal: None }
    }

    /// Reads nothing, a name, or an object; a value that makes no sense is an error.
    pub(crate) fn read(given: &JsValue, unnamed: &str) -> Result<Options, JsValue> {
        if given.is_undefined() || given.is_null() {
            return Ok(Options::named(unnamed));
        }
        if let Some(name) = given.as_string() {
            return Ok(Options::named(&name));
        }
        if !given.is_object() {
            return Err(invalid("options: not a name or an object"));
        }
        let name = field(given, "name", "a text", |value| value.as_string())?;
        let is_priority = |it: &f64| it.fract() == 0.0 && (0.0..=255.0).contains(it);
        let priority = field(given, "priority", "a whole number from 0 to 255", |value| {
            value.as_f64().filter(is_priority).map(|number| number as u8)
        })?;
        let is_time = |it: &f64| it.is_finite() && *it >= 0.0;
        let within = field(given, "deadlineMs", "a number of milliseconds from 0", |value| {
            value.as_f64().filter(is_time).map(millis)
        })?;
        let signal = field(given, "signal", "an AbortSignal", |value| value.dyn_into().ok())?;
        let name = name.as_deref().unwrap_or(unnamed).into();
        Ok(Options { start: Start { name, priority, within }, signal })
    }
}

/// A field, if it is there.
fn field<T>(
    of: &JsValue,
    name: &str,
    wanted: &str,
    read: impl FnOnce(JsValue) -> Option<T>,
) -> Result<Option<T>, JsValue> {
    let value = Reflect::get(of, &name.into())?;
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    match read(value) {
        Some(read) => Ok(Some(read)),
        None => Err(invalid(&format!("{name}: not {wanted}"))),
    }
}

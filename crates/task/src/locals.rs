//! Values that tasks inherit, as nodes and regions keep them.

use std::any::Any;
use std::sync::Arc;

/// One value.
#[derive(Clone)]
pub(crate) struct Given {
    key: usize,
    value: Arc<dyn Any + Send + Sync>,
}

impl Given {
    pub(crate) fn new(key: usize, value: Arc<dyn Any + Send + Sync>) -> Given {
        Given { key, value }
    }

    pub(crate) fn get(&self, key: usize) -> Option<Arc<dyn Any + Send + Sync>> {
        (self.key == key).then(|| self.value.clone())
    }
}

/// The values a region was opened with, the innermost first.
pub(crate) struct Locals {
    given: Given,
    outer: Option<Arc<Locals>>,
}

impl Locals {
    pub(crate) fn new(given: Given, outer: Option<Arc<Locals>>) -> Locals {
        Locals { given, outer }
    }

    /// The innermost value of a key.
    pub(crate) fn find(
        locals: Option<&Arc<Locals>>,
        key: usize,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut all = std::iter::successors(locals, |locals| locals.outer.as_ref());
        all.find_map(|locals| locals.given.get(key))
    }
}

/// Scopes inside each other may each add a value, so the list may be long: it is dropped in a loop,
/// not by a call for each.
impl Drop for Locals {
    fn drop(&mut self) {
        let mut next = self.outer.take();
        while let Some(mut locals) = next.and_then(Arc::into_inner) {
            next = locals.outer.take();
        }
    }
}

#[cfg(not(any(loom, target_family = "wasm")))]
impl Locals {
    /// Hands out the values that nobody else has, each on its own, to be dropped: a panic in one
    /// of them keeps none of the others.
    pub(crate) fn discard(locals: Option<Arc<Locals>>, drop: impl Fn(Locals)) {
        let mut next = locals;
        while let Some(mut locals) = next.and_then(Arc::into_inner) {
            next = locals.outer.take();
            drop(locals);
        }
    }
}

//! Values that belong to a part of the tree: set around a body, seen by it and by everything that
//! is started inside.
//!
//! Within one task a value is a [node](crate::runtime::node) of the chain of cancel scopes. A
//! region keeps the values that were visible where it was opened ([`Locals`]), and its tasks begin
//! with them: they cost a region one pointer, and a task nothing.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::Cx;
use crate::locals::{Given, Locals};
use crate::proceed::Charged;
use crate::runtime::node::{self, Kind, Node};

/// The key of a value that tasks inherit: a static.
///
/// ```
/// use asx::{Cx, Local};
///
/// static USER: Local<String> = Local::new();
///
/// async fn serve(cx: &Cx) {
///     cx.with_local(&USER, String::from("ann"), async |cx| greet(cx).await).await;
/// }
///
/// async fn greet(cx: &Cx) {
///     let user = cx.local(&USER);
///     println!("hello {}", user.as_deref().map_or("stranger", String::as_str));
/// }
/// ```
///
/// A constant has no place of its own, so it is no key:
///
/// ```compile_fail,E0716
/// # use asx::{Cx, Local};
/// const USER: Local<String> = Local::new();
///
/// fn user(cx: &Cx) -> bool {
///     cx.local(&USER).is_some()
/// }
/// ```
pub struct Local<T> {
    /// Gives every key an address of its own; as it could change, a `const` is no key.
    _place: AtomicU8,
    value: PhantomData<fn() -> T>,
}

impl<T> Local<T> {
    /// A key.
    #[expect(clippy::new_without_default, reason = "only a static is of use")]
    pub const fn new() -> Local<T> {
        Local { _place: AtomicU8::new(0), value: PhantomData }
    }

    fn key(&'static self) -> usize {
        ptr::from_ref(self).addr()
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

impl Cx {
    /// Runs `body` with a value that it sees as [`local`](Cx::local), and everything in the scopes
    /// it opens too. Scopes that were open before see nothing of it.
    ///
    /// The value is also there in destructors, if the body is dropped half-way: because its task is
    /// ended by force or panics, or by a combinator that drops what it no longer needs. Only where
    /// the future is dropped outside of its task there is no task that has it.
    pub fn with_local<'a, V, F, B, T>(
        &'a self,
        key: &'static Local<T>,
        value: V,
        body: F,
    ) -> impl Future<Output = B::Output> + use<'a, V, F, B, T>
    where
        V: Into<Arc<T>>,
        F: FnOnce(&'a Cx) -> B,
        B: Future,
        T: Send + Sync + 'static,
    {
        let value: Arc<T> = value.into();
        let node = Node::new(Kind::Local(Given::new(key.key(), value)));
        Charged::new(WithLocal { node, body: Some(body(self)) })
    }

    /// The value of the innermost [`with_local`](Cx::with_local) around the caller, or around the
    /// scope its task was started in.
    pub fn local<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<Arc<T>> {
        let near = node::find(self.task(), |node| given(node)?.get(key.key()));
        let value = match near {
            Ok(Some(value)) => value,
            _ => Locals::find(self.task().region().locals.as_ref(), key.key())?,
        };
        value.downcast().ok()
    }

    /// Everything that is seen here, for a region that is about to be opened.
    pub(crate) fn locals(&self) -> Option<Arc<Locals>> {
        let mut near = Vec::new();
        let _ = node::find(self.task(), |node| {
            near.extend(given(node).cloned());
            None::<()>
        });
        let around = self.task().region().locals.clone();
        near.into_iter()
            .rev()
            .fold(around, |outer, given| Some(Arc::new(Locals::new(given, outer))))
    }
}

pin_project! {
    /// A body that sees a value: it is polled, and dropped, inside the node of it.
    struct WithLocal<B> {
        node: Node,
        // `None` only once it is being dropped.
        #[pin]
        body: Option<B>,
    }

    impl<B> PinnedDrop for WithLocal<B> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            node::enter(this.node, || this.body.set(None));
        }
    }
}

impl<B: Future> Future for WithLocal<B> {
    type Output = B::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let this = self.project();
        match this.body.as_pin_mut() {
            Some(body) => node::enter(this.node, || body.poll(cx)),
            None => Poll::Pending,
        }
    }
}

fn given(node: &Node) -> Option<&Given> {
    match &node.kind {
        Kind::Local(given) => Some(given),
        _ => None,
    }
}

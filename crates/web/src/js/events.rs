//! Events as a stream with a bound.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Poll, Waker};

use asx_runtime::{Cancelled, Cx, Operation};
use wasm_bindgen::prelude::*;

use super::sys::EventTarget;

/// What happens to an event when as many wait as may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It is lost, and counted.
    #[default]
    DropNewest,
    /// The oldest that waits is lost, and counted.
    DropOldest,
}

/// The events of one kind of a target, until it is dropped. A page cannot be asked to wait, so what
/// is not taken in time is lost, by rule, and counted.
pub struct Events {
    target: EventTarget,
    kind: String,
    listener: Closure<dyn Fn(JsValue)>,
    queue: Rc<RefCell<Queue>>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<JsValue>,
    waker: Option<Waker>,
    lost: u64,
}

impl Events {
    /// Listens; at most `capacity` events wait (at least one).
    pub fn new(target: &EventTarget, kind: &str, capacity: usize, overflow: Overflow) -> Events {
        let queue: Rc<RefCell<Queue>> = Rc::default();
        let to = queue.clone();
        let capacity = capacity.max(1);
        let listener = Closure::<dyn Fn(JsValue)>::new(move |event| {
            let waker = {
                let mut queue = to.borrow_mut();
                let is_full = queue.events.len() >= capacity;
                queue.lost += u64::from(is_full);
                if is_full && overflow == Overflow::DropOldest {
                    queue.events.pop_front();
                }
                if queue.events.len() < capacity {
                    queue.events.push_back(event);
                }
                queue.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        });
        target.add_event_listener(kind, listener.as_ref().unchecked_ref());
        Events { target: target.clone(), kind: kind.to_owned(), listener, queue }
    }

    /// The next event. Cancel-checked, and cancel-safe: an event is taken when this is done.
    pub async fn next(&mut self, cx: &Cx) -> Result<JsValue, Cancelled> {
        Operation::run(cx, |context| {
            if let Some(event) = self.queue.borrow_mut().events.pop_front() {
                return Poll::Ready(event);
            }
            // Cloned and dropped outside the borrow.
            let waker = context.waker().clone();
            let old = self.queue.borrow_mut().waker.replace(waker);
            drop(old);
            Poll::Pending
        })
        .await
    }

    /// How many were lost because nobody took them.
    pub fn lost(&self) -> u64 {
        self.queue.borrow().lost
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.target.remove_event_listener(&self.kind, self.listener.as_ref().unchecked_ref());
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Events({}, {} lost)", self.kind, self.lost())
    }
}

//! Tasks with JavaScript bodies.
//!
//! The package keeps the body, the value, the promise and the abort signal of a task, under a slot
//! number. This file has the small task that stands for it in the runtime. That task starts the
//! body, waits until the body is settled and its child tasks have ended, and reports the end. On a
//! cancel it aborts the signal and continues to wait.
//!
//! ```text
//! spawn(slot) -> begin(slot) ... settled(slot) -> what was started inside ends -> end(slot, -)
//!                      cancel(slot) -> abort(slot, why) ... settled(slot) ... -> end(slot, why)
//! ```

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::status::{Coded, Status};
use asx_runtime::hosted::{HostRegion, HostTask};
use asx_runtime::{Cancelled, Cx, Operation, Policy, Scope};
use asx_web::js::error_of;
use asx_web::{Capability, Handle, Start};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// The functions of the package. None of them throws.
    pub type Hooks;
    /// Starts the body of a task.
    #[wasm_bindgen(method)]
    fn begin(this: &Hooks, slot: u32);
    /// A task has observed its cancel.
    #[wasm_bindgen(method)]
    fn abort(this: &Hooks, slot: u32, why: &JsValue);
    /// A task has ended: with the result of its body, or for this reason. The slot may be reused.
    #[wasm_bindgen(method)]
    fn end(this: &Hooks, slot: u32, stopped: &JsValue);
    /// Runnable tasks cannot run, because this capability is denied.
    #[wasm_bindgen(method)]
    pub fn stalled(this: &Hooks, why: &str);
    /// A shutdown is complete.
    #[wasm_bindgen(method)]
    pub fn closed(this: &Hooks);
}

/// The error of a task whose body was rejected. The package keeps the value.
#[derive(Debug)]
pub struct Rejected;

/// The live tasks, by slot.
pub(crate) struct Tasks {
    hooks: Hooks,
    page: Handle,
    /// In chunks: a growing vector would need twice its memory while it is copied.
    slots: RefCell<Vec<Box<[Slot; CHUNK]>>>,
    /// The names of unnamed tasks.
    unnamed: [Arc<str>; 4],
}

const CHUNK: usize = 256;

/// The runtime's side of a live task.
#[derive(Default)]
struct Slot {
    task: Option<HostTask>,
    waker: Option<Waker>,
    /// The region of its child tasks, if it has started any.
    inside: Option<Box<Inside>>,
    settled: Option<Settled>,
}

struct Inside {
    region: HostRegion,
    scope: Scope<Rejected>,
}

/// How the body of a task was settled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Fulfilled,
    Rejected,
}

/// The kind of a task.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// A JavaScript function.
    Function,
    /// A sleep.
    Sleep(std::time::Duration),
    /// A yield.
    Yield,
}

impl Tasks {
    pub(crate) fn new(hooks: Hooks, page: Handle) -> Tasks {
        let unnamed = ["main", "task", "sleep", "yield"].map(Arc::from);
        Tasks { hooks, page, slots: RefCell::default(), unnamed }
    }

    /// The functions of the package. Each runs page code or settles promises with later reactions,
    /// so the drain ends after the step that calls one.
    pub(crate) fn hooks(&self) -> &Hooks {
        self.page.yield_to_page();
        &self.hooks
    }

    /// Whether the page denies a capability that waits need.
    fn denies_any(&self) -> bool {
        let granted = self.page.granted();
        let mut needed = [Capability::Clock, Capability::Timer, Capability::Post].into_iter();
        !needed.all(|capability| granted.has(capability))
    }

    /// Whether a wait ended because the page denies a capability that it needs.
    fn denies(&self, why: &Cancelled) -> bool {
        why.kind() == Kind::ResourceUnavailable && self.denies_any()
    }

    /// Returns how a yield ends. It fails only if the hand-off was denied; any other cancel lets it
    /// complete.
    fn yielded(&self, cx: &Cx) -> Result<Settled, Cancelled> {
        if self.denies_any()
            && let Err(why) = cx.checkpoint()
            && self.denies(&why)
        {
            return Err(why);
        }
        Ok(Settled::Fulfilled)
    }

    /// The name of an unnamed task.
    pub(crate) fn unnamed(&self, body: Body, is_child: bool) -> Arc<str> {
        let [main, task, sleep, yields] = &self.unnamed;
        match body {
            Body::Function if is_child => task,
            Body::Function => main,
            Body::Sleep(_) => sleep,
            Body::Yield => yields,
        }
        .clone()
    }

    /// Returns the scope for the children of a task. Opens its region for the first child.
    pub(crate) fn inside(&self, parent: u32) -> Result<Scope<Rejected>, Status> {
        let (task, settled, opened) = self.with(parent, |slot| {
            let opened = slot.inside.as_ref().map(|inside| inside.scope.clone());
            (slot.task.clone(), slot.settled.is_some(), opened)
        });
        let task = task.ok_or(Status::RegionClosed)?;
        if settled {
            return Err(Status::RegionNotOpen);
        }
        if let Some(scope) = opened {
            return Ok(scope);
        }
        let opened = task.region().open_scope(Policy::CollectAll, Budget::INFINITE);
        let (region, scope) = opened?;
        let inside = Box::new(Inside { region, scope: scope.clone() });
        self.with(parent, |slot| slot.inside = Some(inside));
        Ok(scope)
    }

    /// The region of [`inside`](Tasks::inside).
    pub(crate) fn region_inside(&self, parent: u32) -> Result<u64, Status> {
        let region = self.with(parent, |slot| slot.inside.as_ref().map(|it| it.region.id()));
        region.ok_or(Status::RegionClosed)
    }

    /// Starts a task in a scope. Returns its id.
    pub(crate) fn spawn(
        self: &Rc<Self>,
        scope: &Scope<Rejected>,
        at: u32,
        how: Start,
        body: Body,
    ) -> Result<u64, Status> {
        let mut plan = scope.task(how.name);
        if let Some(priority) = how.priority {
            plan = plan.priority(priority);
        }
        if let Some(limit) = how.within {
            plan = plan.within(limit);
        }
        let tasks = self.clone();
        let task = plan.try_spawn_local(move |cx| run(cx, Told { tasks, at }, body));
        let task = task.map_err(|refused| refused.status())?;
        let task = HostTask::of_task(&task);
        let id = task.id();
        self.with(at, |slot| *slot = Slot { task: Some(task), ..Slot::default() });
        Ok(id)
    }

    /// The body of a task is settled.
    pub(crate) fn settled(&self, at: u32, fulfilled: bool) {
        let how = if fulfilled { Settled::Fulfilled } else { Settled::Rejected };
        let waker = self.with(at, |slot| {
            slot.settled = Some(how);
            slot.waker.take()
        });
        // Outside the borrow.
        waker.into_iter().for_each(Waker::wake);
    }

    /// Cancels a task.
    pub(crate) fn cancel(&self, at: u32, kind: Kind, why: Option<Arc<str>>) -> Result<(), Status> {
        let task = self.with(at, |slot| slot.task.clone());
        task.map_or(Ok(()), |task| task.cancel(kind, why).map(drop))
    }

    fn with<R>(&self, at: u32, f: impl FnOnce(&mut Slot) -> R) -> R {
        let slots = &mut *self.slots.borrow_mut();
        let chunk = at as usize / CHUNK;
        let at = at as usize % CHUNK;
        while slots.len() <= chunk {
            slots.push(Box::new(std::array::from_fn(|_| Slot::default())));
        }
        f(&mut slots[chunk][at])
    }
}

/// The future of a task.
async fn run(cx: Cx, mut told: Told, body: Body) -> Result<(), Rejected> {
    let ended = match body {
        Body::Function => function(&cx, &told).await,
        Body::Sleep(time) => cx.sleep(time).await.map(|()| Settled::Fulfilled),
        Body::Yield => {
            cx.yield_now().await;
            told.tasks.yielded(&cx)
        }
    };
    match &ended {
        Err(why) if !matches!(body, Body::Function) && told.tasks.denies(why) => {
            let why = why.reason().message.as_deref().unwrap_or_default();
            told.end(&crate::error(Status::CapabilityDenied, why));
        }
        ended => told.tell(ended.as_ref().err()),
    }
    if matches!(ended, Ok(Settled::Rejected)) { Err(Rejected) } else { Ok(()) }
}

/// Runs the body, and waits until its child tasks have ended.
async fn function(cx: &Cx, told: &Told) -> Result<Settled, Cancelled> {
    let tasks = &told.tasks;
    let at = told.at;
    let mut operation = Operation::new(cx);
    let mut begun = false;
    let mut cancelled = None;
    let settled = poll_fn(|context| {
        if cancelled.is_none()
            && let Err(why) = ready!(operation.poll_proceed(context))
        {
            if !begun {
                return Poll::Ready(Err(why));
            }
            // Waits until the promise is settled: structured concurrency.
            tasks.hooks().abort(at, &error_of(&why));
            cancelled = Some(why);
        }
        if !begun {
            begun = true;
            tasks.hooks().begin(at);
        }
        match (tasks.wait(at, context.waker()), &cancelled) {
            (None, _) => operation.pending(context),
            // The value is dropped after a cancel.
            (Some(_), Some(why)) => Poll::Ready(Err(why.clone())),
            (Some(settled), None) => Poll::Ready(Ok(settled)),
        }
    })
    .await;
    match tasks.with(at, |slot| slot.inside.take()) {
        None => settled,
        // Boxed: rarely used, and otherwise part of the size of every task.
        Some(inside) => Box::pin(drained(cx, told, *inside, settled)).await,
    }
}

/// Waits until everything that a task started has ended.
async fn drained(
    cx: &Cx,
    told: &Told,
    inside: Inside,
    settled: Result<Settled, Cancelled>,
) -> Result<Settled, Cancelled> {
    let mut operation = Operation::new(cx);
    let mut settled = settled;
    inside.region.end();
    let region = CloseOnDrop(inside.region);
    poll_fn(|context| {
        if region.0.poll_closed(context.waker()) {
            return Poll::Ready(());
        }
        if settled.is_ok()
            && let Err(why) = ready!(operation.poll_proceed(context))
        {
            told.tasks.hooks().abort(told.at, &error_of(&why));
            settled = Err(why);
        }
        operation.pending(context)
    })
    .await;
    settled
}

/// Closes a region when its owner is aborted.
struct CloseOnDrop(HostRegion);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // No effect on a closed region.
        self.0.close(Kind::ParentCancelled, None, None);
    }
}

impl Tasks {
    /// Returns how the body was settled. If it is pending, stores the waker.
    fn wait(&self, at: u32, waker: &Waker) -> Option<Settled> {
        // Cloned and dropped outside the borrow.
        let waker = waker.clone();
        let (settled, _old) = self.with(at, |slot| match slot.settled {
            Some(settled) => (Some(settled), None),
            None => (None, slot.waker.replace(waker)),
        });
        settled
    }
}

/// Reports the end of a task to the package, also when the task is aborted and drops this.
struct Told {
    tasks: Rc<Tasks>,
    at: u32,
}

impl Told {
    fn tell(&mut self, cancelled: Option<&Cancelled>) {
        self.end(&cancelled.map_or(JsValue::UNDEFINED, error_of));
    }

    fn end(&mut self, stopped: &JsValue) {
        let at = std::mem::replace(&mut self.at, u32::MAX);
        if at == u32::MAX {
            return;
        }
        let slot = self.tasks.with(at, std::mem::take);
        if let Some(inside) = &slot.inside {
            inside.region.close(Kind::ParentCancelled, None, None);
        }
        drop(slot);
        self.tasks.hooks().end(at, stopped);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if self.at == u32::MAX {
            return;
        }
        let why = self.tasks.with(self.at, |slot| slot.task.as_ref().and_then(HostTask::reason));
        let forced = || js_sys::Error::new("the task was ended by force").into();
        self.end(&why.map_or_else(forced, |why| error_of(&why.into())));
    }
}

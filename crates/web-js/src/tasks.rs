//! Tasks whose bodies are functions of JavaScript.
//!
//! Such a body, its value, its promise and its abort signal are the package's, which knows them by
//! a number: the slot. Here is the task that stands for it in the runtime, and that is small. It
//! has the body begin, waits until that is settled and what it started has ended, and says so; when
//! it is asked to stop it has the signal abort, and goes on waiting.
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
    /// What the package has called. None of it throws.
    pub type Hooks;
    /// The body of a task begins.
    #[wasm_bindgen(method)]
    fn begin(this: &Hooks, slot: u32);
    /// A task was asked to stop.
    #[wasm_bindgen(method)]
    fn abort(this: &Hooks, slot: u32, why: &JsValue);
    /// A task is over: as its body is, or for this reason. The slot may be used again.
    #[wasm_bindgen(method)]
    fn end(this: &Hooks, slot: u32, stopped: &JsValue);
    /// Runnable tasks cannot run, because this capability is denied.
    #[wasm_bindgen(method)]
    pub fn stalled(this: &Hooks, why: &str);
    /// Everything is over, after a shutdown.
    #[wasm_bindgen(method)]
    pub fn closed(this: &Hooks);
}

/// A task whose body was rejected. With what, only the package knows.
#[derive(Debug)]
pub struct Rejected;

/// The live tasks, by slot.
pub(crate) struct Tasks {
    hooks: Hooks,
    page: Handle,
    /// In chunks: a list that is moved to grow would need room for itself twice.
    slots: RefCell<Vec<Box<[Slot; CHUNK]>>>,
    /// The names of those that have no name of their own, made once.
    unnamed: [Arc<str>; 4],
}

const CHUNK: usize = 256;

/// What a task is in the runtime while it lives.
#[derive(Default)]
struct Slot {
    task: Option<HostTask>,
    waker: Option<Waker>,
    /// What it starts goes in here, if it has started anything.
    inside: Option<Box<Inside>>,
    settled: Option<Settled>,
}

struct Inside {
    region: HostRegion,
    scope: Scope<Rejected>,
}

/// How the body of a task came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Fulfilled,
    Rejected,
}

/// What a task does.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// It runs a function.
    Function,
    /// It waits.
    Sleep(std::time::Duration),
    /// It lets others go first.
    Yield,
}

impl Tasks {
    pub(crate) fn new(hooks: Hooks, page: Handle) -> Tasks {
        let unnamed = ["main", "task", "sleep", "yield"].map(Arc::from);
        Tasks { hooks, page, slots: RefCell::default(), unnamed }
    }

    /// The package's functions. Each runs page code or settles promises whose reactions run later,
    /// so the drain ends after the step that calls one.
    pub(crate) fn hooks(&self) -> &Hooks {
        self.page.yield_to_page();
        &self.hooks
    }

    /// Whether the page denies something that waits need.
    fn denies_any(&self) -> bool {
        let granted = self.page.granted();
        let mut needed = [Capability::Clock, Capability::Timer, Capability::Post].into_iter();
        !needed.all(|capability| granted.has(capability))
    }

    /// Whether a wait ended because the page denies what it needs.
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

    /// How a task is called that has no name of its own.
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

    /// Where the tasks that a task starts go: a region of their own, opened for the first of them.
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

    /// Starts a task in a scope: its number.
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
        // Never inside the borrow.
        waker.into_iter().for_each(Waker::wake);
    }

    /// Asks a task to stop.
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

/// A task from its first poll to its last.
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

/// Runs the body; what it started has ended when this has.
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
            // It goes on until its promise is settled: nothing is left behind.
            tasks.hooks().abort(at, &error_of(&why));
            cancelled = Some(why);
        }
        if !begun {
            begun = true;
            tasks.hooks().begin(at);
        }
        match (tasks.wait(at, context.waker()), &cancelled) {
            (None, _) => operation.pending(context),
            // What came all the same is given up, as the reason says.
            (Some(_), Some(why)) => Poll::Ready(Err(why.clone())),
            (Some(settled), None) => Poll::Ready(Ok(settled)),
        }
    })
    .await;
    match tasks.with(at, |slot| slot.inside.take()) {
        None => settled,
        // In a box of its own: few tasks come here, and all would have the room for it.
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

/// A region whose owner is ended by force closes behind it.
struct CloseOnDrop(HostRegion);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // Without effect on a region that is closed.
        self.0.close(Kind::ParentCancelled, None, None);
    }
}

impl Tasks {
    /// How the body has ended; if it has not, the waker is woken when it has.
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

/// Tells the package of the end of a task in any case: one that is ended by force drops this.
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

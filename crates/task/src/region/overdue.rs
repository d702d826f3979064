//! Cleanup that takes too long.
//!
//! Polls bound cleanup that runs, and not what waits. So cleanup has a time as well: that of a
//! region, or one that was stated with the cancel of a task. It begins when a task sees its cancel,
//! with a finalizer, and when a shield has hidden the cancel of its task for too long. When it is
//! over, that is reported, and the task is ended by force: at once if nobody polls it, else at the
//! end of its poll. A task that waits for what is inside it is spared; that is bounded itself.
//!
//! To note a time for each task would cost every cancelled task a look at the clock. So whoever
//! begins to clean up has its region looked at soon, an eighth of the time later, if nothing else
//! has. What is found cleaning up then has its whole time from that look on, and is looked at again
//! when that is over; nearly always there is nothing any more.

use std::sync::Arc;
use std::time::Duration;

use asx_kernel::time::Time;

use super::Region;
use crate::prim::atomic::Ordering;
use crate::raw::audit::Owner;
use crate::raw::{Header, TaskRef};
use crate::region::grace::waits_for_inside;

/// How often is looked in the time that cleanup may take.
const LOOKS: u32 = 8;

/// No two looks are closer than this.
const SHORTEST: Duration = Duration::from_millis(1);

/// Who cleans up in a region, as far as it was noticed.
#[derive(Default)]
pub(crate) struct Cleaning {
    /// Sorted by number.
    tasks: Vec<Entry>,
    /// When is looked next.
    look: Option<Time>,
}

#[derive(Clone, Copy)]
struct Entry {
    task: u64,
    end: Time,
    /// The time was stated with the cancel of this task.
    stated: bool,
    /// It takes the place of polls.
    any_polls: bool,
    /// That it is over was reported.
    reported: bool,
}

impl Cleaning {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.look.is_none()
    }

    /// Whether an alarm is to be armed for a look at that time: there is none before it.
    fn needs_look(&mut self, when: Time) -> bool {
        let needs = self.look.is_none_or(|look| when < look);
        if needs {
            self.look = Some(when);
        }
        needs
    }

    fn find(&self, task: u64) -> Option<&Entry> {
        let at = self.tasks.binary_search_by_key(&task, |entry| entry.task).ok()?;
        self.tasks.get(at)
    }

    /// Notes a task: a time that was stated rather than another, and then the earlier one.
    fn add(&mut self, new: Entry) {
        match self.tasks.binary_search_by_key(&new.task, |entry| entry.task) {
            Err(at) => self.tasks.insert(at, new),
            Ok(at) => {
                let old = &mut self.tasks[at];
                let counts =
                    (new.stated && !old.stated) || (new.stated == old.stated && new.end < old.end);
                if counts && !old.reported {
                    *old = new;
                }
            }
        }
    }
}

/// Whether a task cleans up, for all that its word says.
fn cleans_up(task: &Header) -> bool {
    let word = task.word.load();
    task.is_finalizer() || word.state().acknowledged() || word.is_cleaning()
}

impl Region {
    /// Cleanup begins in here.
    #[inline]
    pub(crate) fn watch_cleanup(self: &Arc<Self>) {
        if self.cleanup_time.load(Ordering::Relaxed) < u64::MAX
            && !self.watched.load(Ordering::Relaxed)
        {
            self.watch_soon();
        }
    }

    #[cold]
    #[inline(never)]
    fn watch_soon(self: &Arc<Self>) {
        if !self.watched.swap(true, Ordering::AcqRel) {
            self.look_by(self.core.host.now() + self.between_looks());
        }
    }

    /// Has it looked at then, or before.
    fn look_by(self: &Arc<Self>, when: Time) {
        if self.lock().graces.cleaning.needs_look(when) {
            self.look_at(when);
        }
    }

    fn between_looks(&self) -> Duration {
        self.cleanup_time().map_or(SHORTEST * 10, |time| (time / LOOKS).max(SHORTEST))
    }

    /// A shield has hidden the cancel of this task for too long: what is inside has as much time
    /// again, though it may never look.
    pub(crate) fn shield_is_open(self: &Arc<Self>, task: &TaskRef) {
        let Some(time) = self.cleanup_time() else { return };
        let task = task.id();
        let end = self.core.host.now() + time;
        self.lock().graces.cleaning.add(Entry {
            task,
            end,
            stated: false,
            any_polls: false,
            reported: false,
        });
        self.watch_cleanup();
    }

    /// A task of this region, which is about to be cancelled, has so much time to end, and for
    /// `any_polls` may be polled as often as it likes until then.
    pub(crate) fn state_time(self: &Arc<Self>, task: &TaskRef, time: Duration, any_polls: bool) {
        let end = self.core.host.now() + time;
        let entry = Entry { task: task.id(), end, stated: true, any_polls, reported: false };
        self.lock().graces.cleaning.add(entry);
        self.look_by(end);
    }

    /// What is left of the time that was stated with the cancel of a task.
    pub(crate) fn time_for(&self, task: u64) -> Option<Duration> {
        let inner = self.lock();
        let entry = inner.graces.cleaning.find(task).filter(|entry| entry.stated)?;
        let end = entry.end;
        drop(inner);
        Some(end - self.core.host.now())
    }

    /// Whether a time was stated with the cancel of a task that takes the place of polls. When it
    /// is over force ends the task.
    pub(crate) fn allows_any_polls(&self, task: u64) -> bool {
        self.lock().graces.cleaning.find(task).is_some_and(|entry| entry.any_polls)
    }

    /// Whether it was reported that the cleanup of a task took too long.
    pub(crate) fn is_reported(&self, task: u64) -> bool {
        self.lock().graces.cleaning.find(task).is_some_and(|entry| entry.reported)
    }

    /// Looks who cleans up in here, and ends what takes too long.
    #[cold]
    pub(crate) fn end_overdue(self: &Arc<Self>) {
        // Who begins from now on has it looked at again.
        self.watched.store(false, Ordering::Release);
        let now = self.core.host.now();
        let time = self.cleanup_time();
        let mut over = Vec::new();
        let mut next = None::<Time>;
        let soon = now + self.between_looks();
        {
            let mut inner = self.lock();
            let has_children = inner.word.open_children() > 0;
            let cleaning = &mut inner.graces.cleaning;
            cleaning.look = cleaning.look.filter(|look| now < *look);
            let look = cleaning.look;
            let old = std::mem::take(cleaning);
            let mut new = Vec::new();
            inner.each_task(|task| {
                // SAFETY: the region keeps its tasks alive, and its lock is held.
                let header = unsafe { task.as_ref() };
                let fresh = || {
                    let end = now + time.filter(|_| cleans_up(header))?;
                    Some(Entry {
                        task: header.id(),
                        end,
                        stated: false,
                        any_polls: false,
                        reported: false,
                    })
                };
                let Some(mut entry) = old.find(header.id()).copied().or_else(fresh) else { return };
                if !entry.reported {
                    let is_over = entry.end <= now;
                    let waits = has_children && waits_for_inside(header);
                    // A time that was stated for all counts instead; what is left then ends with
                    // it. Asked last: in a deep tree that is a long way up.
                    entry.reported = is_over && !waits && !self.has_stated_time();
                    if entry.reported {
                        // SAFETY: as above.
                        over.push(unsafe { TaskRef::borrowed(task, Owner::Call) });
                    } else {
                        let look = if is_over { soon } else { entry.end };
                        next = Some(next.map_or(look, |next| next.min(look)));
                    }
                }
                new.push(entry);
            });
            new.sort_unstable_by_key(|entry| entry.task);
            inner.graces.cleaning = Cleaning { tasks: new, look };
        }
        if let Some(next) = next {
            self.look_by(next);
        }
        for task in over {
            self.core.time_overrun(&task);
            self.force_task(&task);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::{pending, poll_fn};
    use std::marker::PhantomData;
    use std::task::Poll;

    use asx_kernel::cancel::Kind;

    use super::*;
    use crate::region::grace::tests::Eager;
    use crate::spawn::{Plan, make};
    use crate::{Cancelled, Cx, Scope, Task};

    const MS: Duration = Duration::from_millis(1);

    /// A task that has seen its cancel waits for something that never comes.
    fn stuck(region: &Arc<Region>) -> Task<(), Cancelled> {
        let body = async |cx: Cx| {
            cx.cancelled().await;
            pending().await
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(region, Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run());
        task
    }

    /// When a task of a region has ended that is cancelled now, in milliseconds from now.
    fn end_of(host: &Eager, task: &Task<(), Cancelled>) -> u32 {
        host.pass(Duration::ZERO);
        let ends = |_: &u32| {
            host.pass(MS);
            task.is_finished()
        };
        (1..10_000).find(ends).expect("an end")
    }

    #[test]
    fn cleanup_has_its_whole_time_and_an_eighth_more_at_most() {
        for time in [1, 8, 80, 800] {
            let (host, core) = Eager::new();
            let root = core.root();
            root.set_cleanup_time(Some(time * MS));
            // The second one begins in the middle of the time of the first one.
            let first = stuck(&root);
            let second = stuck(&root);
            first.cancel(Kind::User);
            host.pass(time / 2 * MS);
            second.cancel(Kind::User);
            let end = end_of(&host, &second);
            assert!(first.is_finished());
            assert!((time..=time + time / 8 + 2).contains(&end), "{time}: {end}");
            assert_eq!((core.health().overruns, core.alarms.len()), (2, 0));
            root.close_as(Kind::User);
            assert!(root.outcome().is_some());
        }
    }

    #[test]
    fn each_finalizer_has_the_time_anew() {
        let (host, core) = Eager::new();
        let root = core.root();
        root.set_cleanup_time(Some(80 * MS));
        let scope: Scope<Cancelled> = Scope::over(root.clone(), PhantomData);
        (0..3).for_each(|_| scope.defer(|_| pending::<()>()).unwrap());
        root.end();
        let mut passed = 0;
        while root.outcome().is_none() {
            host.pass(MS);
            passed += 1;
        }
        assert!((240..=280).contains(&passed), "{passed}");
        assert_eq!((core.health().overruns, core.alarms.len()), (3, 0));
    }

    /// Of the region's time and one that is stated, the latter counts, whichever is longer; of two
    /// that are stated the earlier one.
    #[test]
    fn a_stated_time_counts_rather_than_that_of_the_region() {
        for (region, stated, end) in [(80, 20, 20), (80, 200, 200), (0, 30, 30)] {
            let (host, core) = Eager::new();
            let root = core.root();
            root.set_cleanup_time((region > 0).then(|| region * MS));
            let task = stuck(&root);
            task.cancel(crate::Why::from("enough").cleanup_time(stated * MS));
            task.cancel(crate::Why::from("enough").cleanup_time(2 * stated * MS));
            assert!((end..=end + 1).contains(&end_of(&host, &task)));
            assert_eq!(core.health().overruns, 1);
        }
    }

    /// A time that was stated for the whole region is waited for, and so is one around it.
    #[test]
    fn a_grace_counts_rather_than_the_time_of_the_region() {
        let (host, core) = Eager::new();
        let root = core.root();
        root.set_cleanup_time(Some(8 * MS));
        let task = stuck(&root);
        root.stop_within(Duration::ZERO, 100 * MS, Kind::User);
        assert!((100..=101).contains(&end_of(&host, &task)));
        assert_eq!((core.health().overruns, core.alarms.len()), (1, 0));
    }

    /// Who ends in time leaves nothing behind that is looked at for ever.
    #[test]
    fn looks_end_when_nobody_cleans_up() {
        let (host, core) = Eager::new();
        let root = core.root();
        root.set_cleanup_time(Some(80 * MS));
        let mut polls = 0;
        let body = |cx: Cx| {
            poll_fn(move |context| {
                polls += 1;
                let _ = cx.checkpoint();
                context.waker().wake_by_ref();
                if polls < 20 { Poll::Pending } else { Poll::Ready(Ok::<(), Cancelled>(())) }
            })
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&root, Plan::default(), body) };
        task.cancel(Kind::User);
        entry.unwrap().unwrap().run();
        assert_eq!(core.alarms.len(), 1);
        host.pass(MS);
        assert!(task.is_finished());
        host.pass(10 * MS);
        assert_eq!((core.health().overruns, core.alarms.len()), (0, 0));
        let task = stuck(&root);
        task.cancel(Kind::User);
        assert!((80..=91).contains(&end_of(&host, &task)), "and begin again");
    }
}

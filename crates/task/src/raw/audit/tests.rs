//! The audit finds what it is for: each forgery is made in a process of its own, which must end
//! with the report of it.

use std::mem::{ManuallyDrop, forget};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use asx_kernel::budget::Budget;

use super::account::Account;
use super::{Owner, RegionRefOwner};
use crate::raw::owner::OwnerRef;
use crate::raw::poll_context::PollContext;
use crate::raw::{Header, Runnable, TaskAttrs, TaskRef};
use crate::region::region_ref;
use crate::region::{Policy, Region};
use crate::spawn::{Plan, make};
use crate::test_util::{loose_region, scheduled};
use crate::{Cancelled, Cx, Task};

type Made = (Runnable, Task<(), Cancelled>, NonNull<Header>);

/// A task that ends when it is first polled, its entry, and where it is.
fn made(region: &Arc<Region>) -> Made {
    let name = Some(Arc::from("forged"));
    let attrs = Some(Box::new(TaskAttrs { name, ..TaskAttrs::default() }));
    let body = |_: Cx| std::future::ready(Ok::<(), Cancelled>(()));
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(region, Plan { attrs, ..Plan::default() }, body) };
    let at = task.to_ref().as_ptr();
    (entry.unwrap().unwrap(), task, at)
}

/// Where a task was that has ended and is gone.
fn gone(region: &Arc<Region>) -> NonNull<Header> {
    let (entry, task, at) = made(region);
    assert!(entry.run() && task.is_finished());
    at
}

/// Each forgery, and a part of what is reported.
const FORGERIES: [(&str, fn(), &str); 12] = [
    ("entry", entry_that_is_not_counted, "owners, of which"),
    ("waker", waker_dropped_twice, "1 of kind waker are given up, of which it has 0"),
    ("list", member_not_taken_off, "it is freed while it is on the list of its region"),
    ("unlisted", member_not_given_back, "these tasks are left"),
    ("write", write_to_a_freed_cell, "written to after it was freed"),
    ("use", use_of_a_freed_cell, "used after it was freed"),
    ("free", free_with_an_owner, "it is freed, and its word counts"),
    ("reserve", reserve_that_is_not_the_polls, "in reserve"),
    ("region_ref", region_ref_that_is_not_counted, "references to region"),
    ("region", use_of_a_freed_region, "region 1: used after it was freed"),
    ("region_write", write_to_a_freed_region, "region 1: written to after it was freed"),
    ("close", close_with_a_member, "it is closed, and has tasks"),
];

/// An entry was made, and the word does not know.
fn entry_that_is_not_counted() {
    let region = loose_region();
    let (_entry, _task, at) = made(&region);
    // SAFETY: none, which is the point: no reference was counted.
    forget(unsafe { Runnable::new(at) });
}

fn waker_dropped_twice() {
    let region = loose_region();
    let (_entry, task, at) = made(&region);
    let waker = Waker::clone(&task.to_ref().lend_waker());
    // SAFETY: none, which is the point: there is one reference, and two are dropped.
    drop(unsafe { TaskRef::from_raw(at, Owner::Waker) });
    drop(waker);
}

/// The list's reference goes, and the task stays on the list.
fn member_not_taken_off() {
    let region = loose_region();
    let (entry, task, at) = made(&region);
    drop((entry, task));
    // SAFETY: none, which is the point: the task is on the list.
    drop(unsafe { TaskRef::from_raw(at, Owner::List) });
}

/// A task has ended, and the list's reference stays.
fn member_not_given_back() {
    let region = loose_region();
    let (_entry, _task, _at) = made(&region);
    region.core.registry.check_end(Duration::from_millis(10));
}

fn write_to_a_freed_cell() {
    let region = loose_region();
    let at = gone(&region);
    // SAFETY: none, which is the point: the cell is gone. The audit has its memory.
    unsafe { at.cast::<u8>().add(9).write(0) };
    drop(region);
}

fn use_of_a_freed_cell() {
    let region = loose_region();
    let at = gone(&region);
    // SAFETY: none, which is the point.
    let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(at, Owner::Call) });
    task.id();
}

/// Somebody gives up a reference without a word.
fn free_with_an_owner() {
    let region = loose_region();
    let (entry, task, at) = made(&region);
    let task_ref = task.to_ref();
    // Entry, list, handle: none is taken off the books.
    (0..3).for_each(|_| assert!(!task_ref.word.drop_reference()));
    // SAFETY: as above.
    unsafe { at.as_ref() }.books.close(&task_ref.word);
    forget((entry, task));
}

/// A poll that loses one of its references.
fn reserve_that_is_not_the_polls() {
    let region = loose_region();
    let (entry, _task, _at) = made(&region);
    let word = &entry.header().word;
    assert!(word.begin_unsigned(true, false).is_some());
    (0..5).for_each(|_| word.add_reference());
    let turn = PollContext::new(entry.into_task(), 1, 5);
    let task = turn.task();
    task.books.end_poll(&task.word, turn.left_in_reserve() - 1);
}

fn region_ref_that_is_not_counted() {
    let region = loose_region();
    let region_ref = OwnerRef::of(&region);
    // SAFETY: none, which is the point: there is one.
    unsafe { region_ref::remove(Arc::as_ptr(&region), RegionRefOwner::Reserve, 1) };
    drop(region_ref);
}

fn freed_region() -> *const Region {
    let region = loose_region();
    let at = Arc::as_ptr(&region);
    drop(region);
    super::check();
    at
}

fn use_of_a_freed_region() {
    // SAFETY: none, which is the point; the audit keeps the memory.
    unsafe { (*freed_region()).check_alive() };
}

fn write_to_a_freed_region() {
    let region = freed_region();
    // SAFETY: as above.
    unsafe { region.cast_mut().cast::<u8>().add(100).write(1) };
    super::check();
}

/// A region closes, and somebody is on its list.
fn close_with_a_member() {
    let region = loose_region();
    let (_entry, _task, _at) = made(&region);
    region.lock().word.task_done();
    region.end();
}

const FORGERY: &str = "ASX_AUDIT_FORGERY";

/// The process that is made for a forgery, if this is one; else all of them, one by one.
#[test]
fn each_forgery_is_reported() {
    if let Ok(name) = std::env::var(FORGERY) {
        let forgery = FORGERIES.iter().find(|forgery| forgery.0 == name).expect("a forgery");
        (forgery.1)();
        return;
    }
    let own = std::env::current_exe().unwrap();
    for (name, _, report) in FORGERIES {
        let mut child = Command::new(&own);
        child.args(["--exact", "raw::audit::tests::each_forgery_is_reported", "--nocapture"]);
        let output = child.env(FORGERY, name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} went unnoticed");
        let line = said.lines().find(|line| line.contains("asx audit: ")).unwrap_or_default();
        assert!(said.contains(report) && !line.is_empty(), "{name}: {said}");
        println!("{name}: {line}");
    }
}

/// Tasks that come, run, are cancelled and go leave balanced books, and graves that stay as they
/// are.
#[test]
fn what_is_done_right_is_not_reported() {
    let region = loose_region();
    for _ in 0..100 {
        let child = region.open_child(Policy::FailFast, Budget::INFINITE, None).unwrap();
        gone(&child);
        let (entry, task, _) = made(&child);
        let waker = Waker::clone(&task.to_ref().lend_waker());
        task.cancel("what else");
        drop(scheduled(&task.to_ref()).expect("a second entry"));
        assert!(entry.run());
        waker.wake();
        child.end();
    }
    region.core.registry.check_end(Duration::ZERO);
    drop(region);
    super::check();
}

#[test]
fn an_account_has_no_more_than_is_counted_and_gives_up_no_more_than_it_has() {
    let account = Account::new(&["a", "b"]);
    let counted = |count| move || Some(count);
    assert_eq!(account.enter(0, 2, 9, counted(2)), Ok(()));
    assert!(account.enter(1, 1, 9, counted(2)).unwrap_err().contains("3 owners, of which 2"));
    assert_eq!(account.strike(1, 1, counted(3)), Ok(()));
    assert!(account.strike(1, 1, counted(3)).unwrap_err().contains("of which it has 0"));
    assert_eq!(account.shift(0, 1), Ok(()));
    assert_eq!(account.to_string(), "owners: a 1, b 1");
    assert!(account.enter(0, 1, 1, counted(3)).unwrap_err().contains("2 owners of kind a"));
    // A saturated count is not compared.
    assert_eq!(account.strike(0, 2, || None), Ok(()));
    assert_eq!((account.of(0), account.sum()), (0, 1));
}

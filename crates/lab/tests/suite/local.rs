//! Tasks that stay on one thread: at operation grain none of them comes between the operations of
//! another's poll, since none can on threads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use asx::channel::unbounded::UnboundedSender;
use asx::channel::{unbounded, watch};
use asx::lab::{Grain, How, check};
use asx::{Cancelled, Cx, Scope};

/// Keeps what is not `Send` borrowed around an operation that does not wait.
fn push(list: &RefCell<Vec<u32>>, tx: &UnboundedSender<u32>, number: u32) {
    let mut list = list.borrow_mut();
    // Whether anybody receives does not matter.
    tx.send(number).ok();
    list.push(number);
}

/// Passes in all orders, of which there are few enough to be all run, and in random ones.
fn proves<B: Future<Output = ()>>(program: impl Fn(Cx) -> B + Copy) {
    let report = check(program).run();
    let proof = report.proof.unwrap_or_else(|| panic!("{report}"));
    assert_eq!((proof.grain, report.failure.is_none()), (Grain::Operation, true), "{report}");
    for how in [How::Random, How::Pct(3), How::Dfs, How::Bounded] {
        let report = check(program).how(how).run();
        assert!(report.failure.is_none(), "{report}");
    }
    let report = check(program).cancel_at_every_await().faults().run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn local_tasks_of_one_spawner_do_not_come_between_each_others_operations() {
    proves(async |cx: Cx| {
        let list = Rc::new(RefCell::new(Vec::new()));
        let (tx, rx) = unbounded();
        cx.scope(async |s| {
            for number in 0..2 {
                let list = list.clone();
                let tx = tx.clone();
                s.spawn_local(async move |_cx: Cx| {
                    push(&list, &tx, number);
                    Ok::<_, Cancelled>(())
                });
            }
            Ok(())
        })
        .await
        .ok();
        assert!(list.borrow().len() <= 2 && rx.len() == list.borrow().len());
    });
}

#[test]
fn a_local_task_does_not_come_between_operations_of_the_program_that_spawned_it() {
    proves(async |cx: Cx| {
        let list = Rc::new(RefCell::new(Vec::new()));
        let (tx, _rx) = unbounded();
        cx.scope(async |s| {
            let (child, sender) = (list.clone(), tx.clone());
            s.spawn_local(async move |_cx: Cx| {
                push(&child, &sender, 1);
                Ok::<_, Cancelled>(())
            });
            push(&list, &tx, 2);
            Ok(())
        })
        .await
        .ok();
    });
}

/// A task that may move to another thread is on that of its local tasks until its poll is over.
#[test]
fn local_tasks_wait_for_the_poll_that_spawned_them() {
    proves(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let scope = s.clone();
            s.spawn(move |_cx: Cx| async move {
                let (tx, _rx) = unbounded();
                let list = Rc::new(RefCell::new(Vec::new()));
                let (child, sender) = (list.clone(), tx.clone());
                scope.spawn_local(async move |_cx: Cx| {
                    push(&child, &sender, 1);
                    Ok(())
                });
                push(&list, &tx, 2);
                Ok(())
            });
            Ok(())
        })
        .await
        .ok();
    });
}

/// Two who add one to what they have read, each a local task: of two tasks, which may be on two
/// threads, or of the program.
async fn lost_update<const TWO_THREADS: bool>(cx: Cx) {
    let (set, seen) = watch(0);
    let set = Arc::new(set);
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let set = set.clone();
            let add = async move |_cx: Cx| {
                let value = *set.borrow();
                set.send(value + 1).unwrap();
                Ok(())
            };
            if TWO_THREADS {
                let scope = s.clone();
                s.spawn(move |_cx: Cx| async move {
                    scope.spawn_local(add);
                    Ok(())
                });
            } else {
                s.spawn_local(add);
            }
        }
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(*seen.borrow(), 2, "an update is lost");
}

#[test]
fn local_tasks_of_two_tasks_come_between_each_others_operations() {
    for how in [How::Mixed, How::Dpor, How::Random] {
        let checked = check(lost_update::<true>).how(how);
        let report = checked.run();
        let found = report.failure.as_ref().unwrap_or_else(|| panic!("missed: {report}"));
        assert!(checked.replay(&found.token).unwrap().failure.is_some(), "{found}");
    }
    let report = check(lost_update::<false>).run();
    assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
}

/// Between their polls they do: a value that is read before a wait and written after it.
#[test]
fn local_tasks_come_between_each_others_polls() {
    let program = async |cx: Cx| {
        let number = Rc::new(RefCell::new(0));
        cx.scope(async |s| {
            for _ in 0..2 {
                let number = number.clone();
                s.spawn_local(async move |cx: Cx| {
                    let before = *number.borrow();
                    cx.yield_now().await;
                    *number.borrow_mut() = before + 1;
                    Ok::<_, Cancelled>(())
                });
            }
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(*number.borrow(), 2, "an update is lost");
    };
    for how in [How::Mixed, How::Dpor, How::Random] {
        assert!(check(program).how(how).grain(Grain::Operation).run().failure.is_some());
    }
}

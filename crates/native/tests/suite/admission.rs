//! Scopes that refuse new work while they are open.

use asx_runtime::channel::{self, ChannelError, ChannelExt as _};
use asx_runtime::{AdmissionError, Cancelled, Cx, Policy, Scope, SpawnError, TaskError};

use crate::common::on_each;

const SHUT: SpawnError = SpawnError::Refused(AdmissionError::GateShut);

#[test]
fn closed_gate_refuses_new_work_only() {
    on_each(|rt| {
        let outcome = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<Cancelled>| {
                let (shut, mut is_shut) = channel::oneshot();
                let inside = s.spawn(async move |cx: Cx| {
                    is_shut.recv(&cx).await.unwrap();
                    // A scope of a task in this scope belongs to it too.
                    Ok(cx.try_scope(async |_: Scope<Cancelled>| Ok(())).await.is_ok())
                });
                s.close_admission();
                shut.send(()).unwrap();
                let task = s.task("late").try_spawn(async |_cx: Cx| Ok(()));
                assert_eq!(task.err(), Some(SHUT));
                let refused = s.spawn(async |_cx: Cx| Ok(())).await;
                assert!(matches!(refused, Err(TaskError::Cancelled(_))));
                assert_eq!(
                    cx.channel::<u32>(1).err(),
                    Some(ChannelError::Refused(AdmissionError::GateShut))
                );
                s.defer(async |_cx: Cx| {}).unwrap();
                assert!(!inside.await.unwrap());
                s.open_admission();
                let again = s.task("again").try_spawn(async |_cx: Cx| Ok(7));
                assert_eq!(again.unwrap().await.ok(), Some(7));
                // A closed gate does not keep the scope from closing.
                s.close_admission();
                Ok(())
            })
            .await
        });
        assert!(outcome.is_ok(), "{outcome:?}");
    });
}

#[test]
fn closing_scope_reports_closing_for_any_gate() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let scope = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
                s.close_admission();
                s.cancel("enough");
                s.open_admission();
                let late = s.task("late").try_spawn(async |_cx: Cx| Ok(()));
                assert_eq!(late.err(), Some(SpawnError::Refused(AdmissionError::Closing)));
                Ok(())
            });
            let _ = scope.await;
        });
    });
}

#[test]
fn children_beyond_the_limit_are_refused_until_one_has_ended() {
    on_each(|rt| {
        let outcome = rt.block_on(async |cx: Cx| {
            let builder = cx.scope_with(Policy::CollectAll).max_children(2);
            builder
                .run(async |s: Scope<Cancelled>| {
                    let waits = || {
                        s.task("waits").try_spawn(async |cx: Cx| {
                            cx.cancelled().await;
                            Ok(())
                        })
                    };
                    let first = waits().unwrap();
                    let second = waits().unwrap();
                    let limit = SpawnError::Refused(AdmissionError::LimitReached);
                    assert_eq!(waits().err(), Some(limit));
                    // A nested scope takes a place too.
                    let inner = cx.try_scope(async |_: Scope<Cancelled>| Ok(())).await;
                    assert!(matches!(inner, Err(TaskError::Cancelled(_))), "{inner:?}");
                    first.cancel("room");
                    let _ = first.await;
                    // It leaves the scope shortly after its outcome is available.
                    let third = loop {
                        match waits() {
                            Ok(task) => break task,
                            Err(error) => assert_eq!(error, limit),
                        }
                        cx.yield_now().await;
                    };
                    second.cancel("the end");
                    third.cancel("the end");
                    Ok(())
                })
                .await
        });
        assert!(outcome.is_ok(), "{outcome:?}");
    });
}

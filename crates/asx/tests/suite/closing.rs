//! Channels of scopes that are closed to senders: the journal follows the model of traces.

use asx::journal::EventKind;
use asx::prelude::*;
use asx_trace::refine;

#[test]
fn the_journal_of_a_closed_and_drained_channel_follows_the_model() {
    for workers in [1, 2, 4] {
        let runtime = asx::Runtime::builder().workers(workers).journal(100_000).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            for round in 0..20 {
                let closed: Result<(), Cancelled> = cx
                    .scope(async |s: Scope<Cancelled>| {
                        let (tx, mut rx) = cx.channel(2).expect("the scope is open");
                        let mut tasks = Vec::new();
                        for sender in 0..3 {
                            let tx = tx.clone();
                            tasks.push(s.spawn(async move |cx: Cx| {
                                while tx.send(&cx, sender).await.is_ok() {}
                                assert!(tx.is_closed() && tx.closed(&cx).await.is_ok());
                                Ok(())
                            }));
                        }
                        let several = tx.clone();
                        tasks.push(s.spawn(async move |cx: Cx| {
                            while let Ok(permits) = several.reserve_many(&cx, 2).await {
                                permits.take(1).for_each(|permit| permit.send(9));
                            }
                            Ok(())
                        }));
                        drop(tx);
                        for _ in 0..round {
                            rx.recv(&cx).await.expect("there are senders");
                        }
                        rx.close();
                        while rx.recv(&cx).await.is_ok() {}
                        // The receiver lives until all senders have observed the close.
                        for task in tasks {
                            assert!(task.await.is_ok());
                        }
                        Ok(())
                    })
                    .await;
                assert!(closed.is_ok());
            }
        });
        let journal = runtime.journal().unwrap();
        assert!(journal.events.iter().any(|event| matches!(event.kind, EventKind::SendLeft {})));
        refine::check(&journal.events).unwrap_or_else(|wrong| panic!("{workers}: {wrong}"));
    }
}

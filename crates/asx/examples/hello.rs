//! Two greeters and one listener; everything has ended when `main` returns.
//!
//! `cargo run -p asx --example hello`

use asx::prelude::*;

#[asx::main(workers = 2)]
async fn main(cx: &Cx) -> Result<(), Cancelled> {
    for hello in greetings(cx).await? {
        println!("{hello}");
    }
    Ok(())
}

/// Returns the greetings that the listener receives.
pub(crate) async fn greetings(cx: &Cx) -> Result<Vec<String>, Cancelled> {
    let (tx, mut rx) = channel::bounded(4);
    cx.scope(async |s| {
        for name in ["Ada", "Grace"] {
            let tx = tx.clone();
            s.task(name).spawn(async move |cx: Cx| {
                for round in 1..=3 {
                    cx.sleep(10.millis()).await?;
                    let Ok(permit) = tx.reserve(&cx).await else { break };
                    permit.send(format!("hello {round} from {name}"));
                }
                Ok(())
            });
        }
        drop(tx); // the loop below ends when all senders are dropped
        let mut heard = Vec::new();
        while let Ok(hello) = rx.recv(cx).await {
            heard.push(hello);
        }
        Ok(heard)
    })
    .await
}

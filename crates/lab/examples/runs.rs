//! How many runs a second: `cargo run --release -p asx-lab --example runs`.

use std::time::Instant;

use asx_lab::{How, check};
use asx_runtime::{Cancelled, Cx, Scope, channel};

async fn pipeline(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        for n in 0..3 {
            let tx = tx.clone();
            drop(s.spawn(async move |cx: Cx| {
                let sent = tx.send(&cx, n).await.is_ok();
                assert!(sent);
                Ok(())
            }));
        }
        drop(tx);
        let mut sum = 0;
        while let Some(n) = rx.next(&cx).await? {
            sum += n;
        }
        assert_eq!(sum, 3);
        Ok(())
    })
    .await
}

fn main() {
    for how in [How::Random, How::Pos, How::Pct(3), How::Uniform, How::Dfs, How::Dpor] {
        let start = Instant::now();
        let report = check(pipeline).how(how).runs(300_000).run();
        let rate = report.runs as f64 / start.elapsed().as_secs_f64();
        println!("{how:?}: {report}, {rate:.0} runs a second");
    }
}

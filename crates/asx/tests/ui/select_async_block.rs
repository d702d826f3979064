use asx::prelude::*;

async fn wait(cx: &Cx) {
    select! {
        _ = async { cx.yield_now().await } => {}
        _ = cx.sleep(1.secs()) => {}
    }
}

fn main() {}

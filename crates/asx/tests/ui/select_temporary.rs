use asx::prelude::*;
use std::pin::pin;

async fn pinned_inside(cx: &Cx) {
    select! {
        _ = pin!(async { cx.yield_now().await }) => {}
        _ = cx.sleep(1.secs()) => {}
    }
}

fn main() {}

use asx::prelude::*;

async fn none() {
    select! {}
}

async fn no_else(cx: &Cx, yes: bool) {
    select! {
        _ = cx.sleep(1.secs()), if yes => {}
    }
}

async fn needless_else(cx: &Cx) {
    select! {
        _ = cx.sleep(1.secs()) => {}
        else => {}
    }
}

async fn no_handler(cx: &Cx) {
    select! {
        _ = cx.sleep(1.secs()),
    }
}

fn main() {}

use asx::prelude::*;
use std::rc::Rc;

async fn run(scope: Scope<Cancelled>) {
    let shared = Rc::new(1);
    let _task = scope.spawn(async move |cx: Cx| {
        cx.yield_now().await;
        Ok(*shared)
    });
}

fn main() {}

// Forbidden behaviour FB-202: use from another thread without transfer.

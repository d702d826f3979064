#![deny(unused_must_use)]

use asx::prelude::*;

async fn run(scope: Scope<Cancelled>) {
    // The scope owns the task, so its handle need not be used.
    scope.spawn(async |_cx: Cx| Ok(()));
}

async fn races(cx: &Cx) {
    race(cx, async |_| 1, async |_| 2);
}

fn main() {}

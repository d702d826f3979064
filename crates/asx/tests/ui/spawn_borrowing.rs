use asx::prelude::*;

async fn run(cx: &Cx) -> Result<(), Cancelled> {
    let text = String::from("local");
    cx.scope(async |s| {
        let _task = s.spawn(async |_cx: Cx| Ok(text.len()));
        Ok(())
    })
    .await
}

fn main() {}

// Forbidden behaviour FB-200: a borrow held across a yield boundary.

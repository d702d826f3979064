use asx::prelude::*;

async fn run(cx: &Cx) -> Result<(), Cancelled> {
    group(cx, async |g| {
        let text = String::from("gone before the children");
        g.add(async |_| text.len());
        Ok(())
    })
    .await
}

fn main() {}

// Forbidden behaviour FB-014: a child keeps no borrow of memory that its scope has given up.

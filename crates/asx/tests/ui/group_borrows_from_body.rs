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

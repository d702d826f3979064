//! Two closures are two types.

use asx::prelude::*;

async fn both(cx: &Cx) -> Result<(), Cancelled> {
    group(cx, async |g| {
        g.add(async |cx: &Cx| cx.sleep(2.millis()).await);
        g.add(async |cx: &Cx| cx.sleep(1.millis()).await);
        while let Some(slept) = g.next(cx).await? {
            slept?;
        }
        Ok(())
    })
    .await
}

fn main() {}

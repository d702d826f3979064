use asx::prelude::*;

async fn wait(cx: &Cx) {
    select! {
        Ok(()) = cx.sleep(1.secs()) => {}
    }
}

fn main() {}

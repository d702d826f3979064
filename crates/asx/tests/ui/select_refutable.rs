use asx::prelude::*;

async fn wait(cx: &Cx) {
    select! {
        Ok(()) = cx.sleep(1.secs()) => {}
    }
}

async fn with_a_constant(cx: &Cx) {
    const NOTHING: Result<u8, ()> = Ok(0);
    let _ = cx;
    select! {
        NOTHING = asx::assume_cancel_safe(async { Ok(1) }) => {}
    }
}

fn main() {}

//! What programs draw at random.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use asx_lab::check;
use asx_runtime::{Cancelled, Cx, Scope};

use super::planted;

/// A random number as a part of 1 picks one of three, and now and then the fourth.
async fn one_past_the_end<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let servers = ["a", "b", "c"];
    let part = cx.random() as f64 / u64::MAX as f64;
    let at = (part * servers.len() as f64) as usize;
    let at = if BUG { at } else { at.min(servers.len() - 1) };
    assert!(at < servers.len(), "no such server");
    Ok(())
}
planted!(one_past_the_end_is_found: one_past_the_end, Panic, 1, Proved);

/// A pause that is drawn may be none at all.
async fn no_pause<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let least = if BUG { 0 } else { 1 };
    let pause = least + (cx.random() >> 54);
    let calls = 1000_u64.checked_div(pause);
    assert!(calls.is_some(), "as many calls as there is time for");
    cx.sleep(Duration::from_millis(pause)).await
}
planted!(no_pause_is_found: no_pause, Panic, 1, Proved);

/// Two draw a name each, which may be the same.
async fn same_name<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let sessions = Arc::new(StdMutex::new(BTreeMap::new()));
    cx.scope(async |s: Scope<Cancelled>| {
        for owner in 0..2 {
            let sessions = sessions.clone();
            s.spawn(async move |cx: Cx| {
                let mut name = cx.random() as u8;
                let mut sessions = sessions.lock().unwrap();
                while !BUG && sessions.contains_key(&name) {
                    name = name.wrapping_add(1);
                }
                sessions.insert(name, owner);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(sessions.lock().unwrap().len(), 2, "one session of two owners");
    Ok(())
}
planted!(same_name_is_found: same_name, Panic, 2, Unseen);

/// The last of many that can be drawn is one too many.
async fn last_of_many<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    const PORTS: u64 = 50_000;
    let port = 16_384 + cx.random_below(if BUG { PORTS } else { PORTS - 848 });
    assert!(port <= 65_535, "no such port");
    Ok(())
}

#[test]
fn last_of_many_is_found() {
    let bug = check(last_of_many::<true>);
    let fixed = check(last_of_many::<false>);
    crate::judge("last_of_many", bug, fixed, asx_lab::Kind::Panic, 1, crate::Twin::Passes);
}

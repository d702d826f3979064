//! The waiting line by itself.

use std::sync::Arc;
use std::task::Waker;

use super::Bell;
use crate::sync::line::{Left, Line, Look};

fn bell() -> (Arc<Bell>, Waker) {
    let bell = Arc::<Bell>::default();
    (bell.clone(), Waker::from(bell))
}

#[test]
fn places_are_reused_and_order_is_kept() {
    let mut line = Line::<u32, ()>::new();
    let (_, waker) = bell();
    let [a, b, c] = [1, 2, 3].map(|wants| line.join(waker.clone(), wants));
    assert!(matches!(line.leave(b), Left::Waiting(_)));
    let d = line.join(waker.clone(), 4);
    assert!(format!("{line:?}").matches("Waiting").count() == 3 && line.len() == 3);
    let mut order = Vec::new();
    while let Some(&wants) = line.head() {
        order.push(wants);
        assert!(line.call(()).is_some());
    }
    assert_eq!(order, [1, 3, 4]);
    for place in [a, c, d] {
        assert!(matches!(line.leave(place), Left::Called(())));
    }
    assert!(line.call(()).is_none() && line.len() == 0);
    let again = line.join(waker, 5);
    assert_eq!(format!("{line:?}").matches("Free").count(), 2, "no fourth slot was needed");
    assert!(matches!(line.leave(again), Left::Waiting(_)));
}

#[test]
fn the_ends_can_leave() {
    let mut line = Line::<u32, ()>::new();
    let (_, waker) = bell();
    let [a, b, c] = [1, 2, 3].map(|wants| line.join(waker.clone(), wants));
    line.leave(c);
    let d = line.join(waker.clone(), 4);
    line.leave(a);
    assert_eq!(line.head(), Some(&2));
    line.leave(b);
    assert_eq!(line.head(), Some(&4));
    line.leave(d);
    assert_eq!(line.head(), None);
}

#[test]
fn a_look_from_another_task_asks_for_its_waker_and_returns_the_old_one() {
    let mut line = Line::<(), u8>::new();
    let (old, waker) = bell();
    let mut place = Some(line.join(waker.clone(), ()));
    assert_eq!(line.look(&mut place, &waker, &mut None), Look::Waiting);
    let (_, other) = bell();
    assert_eq!(line.look(&mut place, &other, &mut None), Look::Stranger);
    let mut fresh = Some(other.clone());
    assert_eq!(line.look(&mut place, &other, &mut fresh), Look::Waiting);
    assert!(fresh.is_some_and(|given_back| given_back.will_wake(&waker)));
    assert_eq!(Arc::strong_count(&old), 2, "the line holds the old waker no longer");
    assert!(line.call(7).is_some_and(|called| called.will_wake(&other)));
    assert_eq!(line.look(&mut place, &other, &mut None), Look::Called(7));
    assert!(place.is_none());
}

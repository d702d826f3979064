use super::*;

#[cfg(not(loom))]
#[test]
fn a_wakeup_is_kept_once() {
    let parker = Parker::default();
    parker.unpark();
    parker.unpark();
    assert_eq!(parker.park(Some(Duration::MAX)), Woken::Notified);
    assert_eq!(parker.park(Some(Duration::from_micros(1))), Woken::TimedOut);
    assert_eq!(*lock(&parker.token), Token::None);
}

#[cfg(not(loom))]
#[test]
fn a_spurious_wakeup_ends_nothing() {
    let parker = Parker::default();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| parker.park(None));
        while *lock(&parker.token) != Token::Awaited {
            std::thread::yield_now();
        }
        for _ in 0..100 {
            parker.given.notify_all();
            std::thread::yield_now();
        }
        assert!(!sleeper.is_finished());
        parker.unpark();
        assert_eq!(sleeper.join().unwrap(), Woken::Notified);
    });
}

#[cfg(loom)]
#[test]
fn no_wakeup_is_lost() {
    use crate::prim::Arc;
    loom::model(|| {
        let parker = Arc::new(Parker::default());
        let other = parker.clone();
        let waker = loom::thread::spawn(move || other.unpark());
        assert_eq!(parker.park(None), Woken::Notified);
        waker.join().unwrap();
    });
}

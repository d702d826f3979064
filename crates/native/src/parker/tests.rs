use super::*;

#[cfg(not(loom))]
#[test]
fn several_wakeups_before_a_park_count_as_one() {
    let parker = Parker::default();
    parker.unpark();
    parker.unpark();
    assert_eq!(parker.park(Some(Duration::MAX)), Woken::Notified);
    assert_eq!(parker.park(Some(Duration::from_micros(1))), Woken::TimedOut);
    assert_eq!(*lock(&parker.token), Token::None);
}

#[cfg(not(loom))]
#[test]
fn a_spurious_wakeup_of_the_condvar_does_not_end_a_park() {
    let parker = Parker::default();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| parker.park(None));
        while *lock(&parker.token) != Token::Waiting {
            std::thread::yield_now();
        }
        for _ in 0..100 {
            parker.changed.notify_all();
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

/// Counts interrupts, and waits until one comes.
#[cfg(not(loom))]
#[derive(Debug, Default)]
struct Channel {
    count: std::sync::Mutex<u32>,
    changed: std::sync::Condvar,
}

#[cfg(not(loom))]
impl Interrupt for Channel {
    fn interrupt(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

#[cfg(not(loom))]
impl Channel {
    fn wait(&self) {
        let count = self.count.lock().unwrap();
        drop(self.changed.wait_while(count, |count| *count == 0).unwrap());
    }

    fn count(&self) -> u32 {
        *self.count.lock().unwrap()
    }
}

#[cfg(not(loom))]
#[test]
fn unpark_interrupts_a_thread_in_park_in_only() {
    let elsewhere = Arc::new(Channel::default());
    let parker = Parker::with_interrupt(elsewhere.clone());
    // A wakeup before the park: `wait` is not called.
    parker.unpark();
    assert_eq!(parker.park_in(|| unreachable!("a wakeup was pending")), Woken::Notified);
    // `wait` returns without an interrupt.
    assert_eq!(parker.park_in(|| ()), Woken::TimedOut);
    assert_eq!(parker.park(Some(Duration::ZERO)), Woken::TimedOut);
    assert_eq!(elsewhere.count(), 0);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| parker.park_in(|| elsewhere.wait()));
        while *lock(&parker.token) != Token::Polling {
            std::thread::yield_now();
        }
        parker.unpark();
        assert_eq!(sleeper.join().unwrap(), Woken::Notified);
    });
    assert_eq!(elsewhere.count(), 1);
    assert_eq!(*lock(&parker.token), Token::None);
}

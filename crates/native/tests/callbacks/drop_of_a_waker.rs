//! Wakers that panic when they are dropped.

use super::*;

#[test]
fn joiner() {
    contained(callbacks(1), async |cx, s| {
        let (fuse, mut task) = (Fuse::default(), s.spawn(short));
        begin_owned(pin!(&mut task), fuse.waker_bomb());
        drop(task);
        until(cx, || fuse.blown() == 1).await;
    });
}

/// Both copies are dropped: the one in the task, and the one for cancels of the joining task.
#[test]
fn joiner_with_a_dropped_handle() {
    contained(callbacks(2), async |_cx, s| {
        let (fuse, mut task) = (Fuse::default(), s.spawn(short));
        let (waker, armed) = fuse.armed_waker();
        begin_owned(pin!(&mut task), waker);
        armed.store(true, SeqCst);
        drop(task);
        armed.store(false, SeqCst);
        assert_eq!(fuse.blown(), 2);
    });
}

#[test]
fn replaced_by_another_waker() {
    contained(callbacks(2), async |cx, s| {
        let (fuse, mut task) = (Fuse::default(), s.spawn(short));
        begin_owned(pin!(&mut task), fuse.waker_bomb());
        assert_eq!(task.await.unwrap(), 7);
        let mut inner = pin!(cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(short);
            Ok(3)
        }));
        begin_owned(inner.as_mut(), fuse.waker_bomb());
        assert_eq!(inner.await.unwrap(), 3);
        until(cx, || fuse.blown() == 2).await;
    });
}

/// A panicking waker does not lose the grant.
#[test]
fn waiter_with_a_grant() {
    contained(callbacks(4), async |cx, _| {
        let fuse = Fuse::default();
        let mutex = sync::Mutex::new(1);
        let guard = mutex.lock(cx).await.unwrap();
        let mut lock = pin!(mutex.lock(cx));
        begin_owned(lock.as_mut(), fuse.waker_bomb());
        begin(lock.as_mut(), Waker::noop());
        assert_eq!(fuse.blown(), 1);
        drop(guard);
        assert_eq!(*lock.await.unwrap(), 1);

        let (tx, mut rx) = channel::bounded(1);
        let mut recv = Box::pin(rx.recv(cx));
        begin_owned(recv.as_mut(), fuse.waker_bomb());
        begin(recv.as_mut(), Waker::noop());
        tx.try_send(1).unwrap();
        assert_eq!(recv.await, Ok(1));
        tx.try_send(1).unwrap();
        let mut send = pin!(tx.send(cx, 2));
        begin_owned(send.as_mut(), fuse.waker_bomb());
        begin(send.as_mut(), Waker::noop());
        assert_eq!(rx.recv(cx).await, Ok(1));
        send.await.unwrap();

        let mut sleep = Box::pin(cx.sleep(5.millis()));
        begin_owned(sleep.as_mut(), fuse.waker_bomb());
        sleep.await.unwrap();
        until(cx, || fuse.blown() == 4).await;
    });
}

/// A shield that hides a cancel keeps the waker, and arms an alarm with it.
#[test]
fn shield_that_hides_a_cancel() {
    contained(callbacks(2), async |cx, s| {
        let fuse = Fuse::default();
        let own = fuse.clone();
        let task = s.spawn(async move |cx: Cx| {
            cx.cancelled().await;
            let mut shield = Box::pin(cx.shield(async |_| std::future::pending::<()>().await));
            begin_owned(shield.as_mut(), own.waker_bomb());
            begin_owned(shield.as_mut(), own.waker_bomb());
            assert_eq!(own.blown(), 1, "another waker took its place");
            drop(shield);
            Ok(())
        });
        task.cancel("enough");
        assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
        until(cx, || fuse.blown() == 2).await;
    });
}

/// The futures are dropped before their operations complete.
#[test]
fn dropped_operation() {
    contained(callbacks(6), async |cx, _| {
        let fuse = Fuse::default();
        begin_owned(pin!(cx.sleep(600.secs())), fuse.waker_bomb());
        let (tx, mut rx) = channel::bounded(1);
        begin_owned(pin!(rx.recv(cx)), fuse.waker_bomb());
        tx.try_send(1).unwrap();
        begin_owned(pin!(tx.send(cx, 2)), fuse.waker_bomb());
        let (_set, mut watch) = channel::watch(1);
        begin_owned(pin!(watch.changed(cx)), fuse.waker_bomb());
        begin_owned(pin!(sync::Notify::new().notified(cx)), fuse.waker_bomb());
        begin_owned(pin!(cx.stopping()), fuse.waker_bomb());
        until(cx, || fuse.blown() == 6).await;
    });
}

/// A waker that is replaced, one of a wait that ends, and one of a wait that is leaked.
#[cfg(unix)]
#[test]
fn socket_waiter() {
    contained(callbacks(3), async |cx, _| {
        let fuse = Fuse::default();
        let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = watched(cx, &near);
        let wait = |slot: &mut WaitSlot, waker: Waker| {
            assert!(socket.poll_ready(Direction::Read, slot, &waker).is_pending());
        };
        let mut slots = [WaitSlot::default(), WaitSlot::default()];
        wait(&mut slots[0], fuse.waker_bomb());
        wait(&mut slots[0], fuse.waker_bomb());
        assert_eq!(fuse.blown(), 1);
        socket.leave(Direction::Read, &mut slots[0]);
        assert_eq!(fuse.blown(), 2);
        wait(&mut slots[1], fuse.waker_bomb());
        drop(socket);
        assert_eq!(fuse.blown(), 3);
    });
}

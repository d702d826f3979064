//! Signals, which these tests send to their own process. All of them are in one test process at
//! once, so that each has a kind of its own.

#![cfg(unix)]

mod common;

use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_net::io;
use asx_net::signal::{SignalKind, listen};
use asx_runtime::{Cx, select};
use common::on_each;

const MOMENT: Duration = Duration::from_millis(1);

/// Sends a signal to this thread, so that it has come when this returns.
fn raise(kind: SignalKind) {
    signal_hook::low_level::raise(kind.as_raw()).unwrap();
}

#[test]
fn signals_are_heard_from_the_beginning_and_several_are_one() {
    on_each(async |cx: Cx| {
        let mut signal = listen(&cx, SignalKind::USER_1)?;
        raise(SignalKind::USER_1);
        raise(SignalKind::USER_1);
        signal.recv(&cx).await?;
        let none = cx.timeout(MOMENT, async |cx| signal.recv(cx).await).await;
        assert!(none.is_err(), "there is none left");
        raise(SignalKind::USER_1);
        signal.recv(&cx).await?;
        assert_eq!(format!("{signal:?}"), "Signal { kind: SIGUSR1, .. }");
        Ok(())
    });
}

#[test]
fn a_cancelled_wait_misses_no_signal_and_all_who_listen_hear_it() {
    on_each(async |cx: Cx| {
        let mut one = listen(&cx, SignalKind::USER_2)?;
        let mut two = listen(&cx, SignalKind::USER_2)?;
        let late = cx.timeout(MOMENT, async |cx| one.recv(cx).await).await;
        assert!(matches!(late, Err(io::Error::Cancelled(why)) if why.kind() == Kind::Timeout));
        raise(SignalKind::USER_2);
        select! {
            came = one.recv(&cx) => came?,
            told = cx.stopping() => told?,
        }
        drop(one);
        two.recv(&cx).await?;
        raise(SignalKind::USER_2);
        two.recv(&cx).await
    });
}

/// `SIGALRM` ends a process unless it is heard: it was once, and is not any more.
#[test]
fn a_signal_that_nobody_hears_any_more_does_nothing() {
    on_each(async |cx: Cx| {
        drop(listen(&cx, SignalKind::ALARM)?);
        raise(SignalKind::ALARM);
        let mut signal = listen(&cx, SignalKind::ALARM)?;
        let none = cx.timeout(MOMENT, async |cx| signal.recv(cx).await).await;
        assert!(none.is_err(), "it came before");
        Ok(())
    });
}

#[test]
fn what_cannot_be_heard_is_refused() {
    on_each(async |cx: Cx| {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGFPE, 0, -1, 4711] {
            let error = listen(&cx, SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{number}: {error}");
        }
        Ok(())
    });
}

/// No descriptor is left, however often one listens.
#[test]
fn who_listens_no_longer_leaves_no_descriptor() {
    on_each(async |cx: Cx| {
        let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        drop(listen(&cx, SignalKind::HANGUP)?);
        let before = open();
        for _ in 0..100 {
            drop(listen(&cx, SignalKind::HANGUP)?);
        }
        assert!(open() < before + 50, "{before} descriptors, then {}", open());
        Ok(())
    });
}

#[cfg(feature = "stream")]
#[test]
fn signals_are_a_stream_that_ends_with_a_cancel() {
    use futures_lite::StreamExt as _;

    on_each(async |cx: Cx| {
        let ended = cx.timeout(50 * MOMENT, async |cx: &Cx| {
            let mut signals = listen(cx, SignalKind::CHILD)?.into_stream(cx);
            raise(SignalKind::CHILD);
            assert!(matches!(signals.next().await, Some(Ok(()))));
            let last = signals.next().await;
            assert!(matches!(&last, Some(Err(io::Error::Cancelled(_)))), "{last:?}");
            assert!(signals.next().await.is_none());
            io::Result::Ok(())
        });
        assert!(ended.await.is_err());
        Ok(())
    });
}

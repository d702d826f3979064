//! Signals that the tests send to their own process. The tests run concurrently in one process, so
//! each test uses its own kind.

#![cfg(unix)]

mod common;

use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_net::io;
use asx_net::signal::{SignalKind, listen};
use asx_runtime::{Cx, select};
use common::on_each;

const MOMENT: Duration = Duration::from_millis(1);

/// Sends a signal to this thread. It is delivered before this returns.
fn raise(kind: SignalKind) {
    signal_hook::low_level::raise(kind.as_raw()).unwrap();
}

#[test]
fn signals_before_a_recv_are_received_as_one() {
    on_each(async |cx: Cx| {
        let mut signal = listen(&cx, SignalKind::USER_1)?;
        raise(SignalKind::USER_1);
        raise(SignalKind::USER_1);
        signal.recv(&cx).await?;
        let none = cx.timeout(MOMENT, async |cx| signal.recv(cx).await).await;
        assert!(none.is_err(), "no signal is pending");
        raise(SignalKind::USER_1);
        signal.recv(&cx).await?;
        assert_eq!(format!("{signal:?}"), "Signal { kind: SIGUSR1, .. }");
        Ok(())
    });
}

#[test]
fn cancelled_recv_misses_no_signal_and_all_receivers_get_it() {
    on_each(async |cx: Cx| {
        let mut one = listen(&cx, SignalKind::USER_2)?;
        let mut two = listen(&cx, SignalKind::USER_2)?;
        let late = cx.timeout(MOMENT, async |cx| one.recv(cx).await).await;
        assert!(matches!(late, Err(io::Error::Cancelled(why)) if why.kind() == Kind::Timeout));
        raise(SignalKind::USER_2);
        select! {
            received = one.recv(&cx) => received?,
            stopping = cx.stopping() => stopping?,
        }
        drop(one);
        two.recv(&cx).await?;
        raise(SignalKind::USER_2);
        two.recv(&cx).await
    });
}

/// The default action of `SIGALRM` ends the process. It stays disabled after the receiver is
/// dropped.
#[test]
fn signal_after_the_last_receiver_was_dropped_is_ignored() {
    on_each(async |cx: Cx| {
        drop(listen(&cx, SignalKind::ALARM)?);
        raise(SignalKind::ALARM);
        let mut signal = listen(&cx, SignalKind::ALARM)?;
        let none = cx.timeout(MOMENT, async |cx| signal.recv(cx).await).await;
        assert!(none.is_err(), "the signal preceded the receiver");
        Ok(())
    });
}

#[test]
fn signals_that_cannot_be_received_are_refused() {
    on_each(async |cx: Cx| {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGFPE, 0, -1, 4711] {
            let error = listen(&cx, SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{number}: {error}");
        }
        Ok(())
    });
}

/// Descriptors of dropped receivers are not leaked.
#[test]
fn dropped_receiver_closes_its_descriptors() {
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
fn stream_of_signals_ends_with_a_cancel() {
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

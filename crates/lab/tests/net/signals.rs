//! Signals of the operating system do not reach a program in the lab.

use asx_net::signal::{SignalKind, listen};
use asx_net::{Cx, io};
use asx_runtime::{Scope, channel, select};

use super::passes;

/// It works until there is nothing to do, or a signal comes, which none does.
#[test]
fn a_program_that_listens_for_signals_goes_on_without() {
    passes(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded(1);
        let mut signal = listen(&cx, SignalKind::TERMINATE)?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async move |cx: Cx| {
                tx.send(&cx, 1).await.map_err(|_| std::io::ErrorKind::BrokenPipe)?;
                Ok(())
            });
            loop {
                select! {
                    came = signal.recv(&cx) => {
                        came?;
                        panic!("a signal came");
                    }
                    job = rx.recv(&cx) => match job {
                        Ok(1) => {}
                        _ => return Ok(()),
                    },
                }
            }
        })
        .await
    });
}

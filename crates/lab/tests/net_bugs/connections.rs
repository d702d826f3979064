//! What programs take for granted of connections.

use std::net::Shutdown;

use asx_net::{Cx, TcpListener, io};
use asx_runtime::time::DurationExt as _;
use asx_runtime::{Scope, select};

use crate::{AT, PATIENCE, Shared, accept, connect, lock, read_exact, write_all};

mod found {
    use crate::planted;

    planted! {
        short_read: Panic Fault;
        half_close_is_no_end: Panic Order;
        answer_of_another_request: Panic Fault;
        cut_frame: Panic Fault;
        silent_peer: Deadlock Fault;
    }
}

/// Takes what one read gives for a whole header.
async fn short_read<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let Some(mut stream) = accept(&cx, &listener).await else { return Ok(()) };
            let mut header = [0; 4];
            if BUG {
                let read = cx.timeout(PATIENCE, async |cx| stream.read(cx, &mut header).await);
                if read.await.is_ok_and(|count| count > 0) {
                    assert_eq!(u32::from_be_bytes(header), 0x0102_0304);
                }
            } else if read_exact(&cx, &mut stream, &mut header).await.is_ok() {
                assert_eq!(u32::from_be_bytes(header), 0x0102_0304);
            }
            Ok(())
        });
        let mut client = connect(&cx).await?;
        write_all(&cx, &mut client, &[1, 2, 3, 4]).await?;
        cx.sleep(100.secs()).await?;
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A client that has sent its request, and says so, still wants the answer.
async fn half_close_is_no_end<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let Some(mut stream) = accept(&cx, &listener).await else { return Ok(()) };
            let mut request = [0; 2];
            read_exact(&cx, &mut stream, &mut request).await?;
            // Work, while which it looks whether the client is still there.
            let mut rest = [0; 1];
            let left = select! {
                read = stream.read(&cx, &mut rest) => matches!(read, Ok(0)),
                _ = cx.sleep(1.millis()) => false,
            };
            if !(BUG && left) {
                write_all(&cx, &mut stream, b"done").await?;
            }
            Ok(())
        });
        let mut client = connect(&cx).await?;
        write_all(&cx, &mut client, b"do").await?;
        client.shutdown(Shutdown::Write)?;
        let mut answer = [0; 4];
        match read_exact(&cx, &mut client, &mut answer).await {
            Err(io::Error::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                panic!("the server has given up on its client")
            }
            other => other?,
        }
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A request that was given up on is answered all the same: whoever uses its connection then gets
/// that answer.
async fn answer_of_another_request<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            while let Some(mut stream) = accept(&cx, &listener).await {
                let mut request = [0; 1];
                while read_exact(&cx, &mut stream, &mut request).await.is_ok() {
                    if write_all(&cx, &mut stream, &[request[0], request[0]]).await.is_err() {
                        break;
                    }
                }
            }
            Ok(())
        });
        let mut client = connect(&cx).await?;
        for request in 1..=4 {
            let mut answer = [0; 2];
            let asked = cx.timeout(400.millis(), async |cx| {
                client.write_all(cx, &[request]).await?;
                client.read_exact(cx, &mut answer).await
            });
            match asked.await {
                Ok(()) => assert_eq!(answer, [request; 2], "the answer to another request"),
                Err(_) if BUG => {}
                Err(_) => client = connect(&cx).await?,
            }
        }
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A write that was cut off in the middle of a frame leaves half of it on the connection.
async fn cut_frame<const BUG: bool>(cx: Cx) -> io::Result<()> {
    const LONG: usize = 10_000;
    let small = TcpListener::builder().recv_buffer(2048).send_buffer(2048);
    let listener = small.listen(&cx, AT).await?;
    let frames: Shared<Vec<u8>> = Shared::default();
    let seen = frames.clone();
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            while let Some(mut stream) = accept(&cx, &listener).await {
                let mut frame = vec![0; LONG];
                while read_exact(&cx, &mut stream, &mut frame).await.is_ok() {
                    let is_whole = frame.iter().all(|byte| *byte == frame[0]);
                    assert!(is_whole, "two frames in one");
                    lock(&seen).push(frame[0]);
                }
            }
            Ok(())
        });
        let connect =
            async |cx: &Cx| cx.timeout(PATIENCE, async |cx| small.connect(cx, AT).await).await;
        let mut client = connect(&cx).await?;
        for number in 1..=2 {
            let frame = vec![number; LONG];
            let sent = cx.timeout(600.millis(), async |cx| {
                Ok::<_, io::Error>(client.write_all(cx, &frame).await?)
            });
            if sent.await.is_err() && !BUG {
                client = connect(&cx).await?;
            }
        }
        cx.sleep(100.secs()).await?;
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A peer that is gone without a word is waited for, for ever.
async fn silent_peer<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let Some(mut stream) = accept(&cx, &listener).await else { return Ok(()) };
            let mut request = [0; 2];
            // The handler is not to be cancelled in the middle of a request.
            let _ = cx
                .shield(async |cx| match BUG {
                    true => stream.read_exact(cx, &mut request).await,
                    false => read_exact(cx, &mut stream, &mut request).await,
                })
                .await;
            Ok(())
        });
        let mut client = connect(&cx).await?;
        write_all(&cx, &mut client, b"ok").await?;
        drop(client);
        let _ = server.await;
        Ok(())
    })
    .await
}

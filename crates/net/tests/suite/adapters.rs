//! Bound streams with the IO traits of `futures-io` and tokio, and conversions of errors.

use crate::common;

use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_net::{Cx, io};
use asx_runtime::Cancelled;
use common::{cancelled, on_each, pair};
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _, FutureExt as _};

const SOON: Duration = Duration::from_millis(1);

#[test]
fn futures_io_reads_and_writes() {
    on_each(async |cx| {
        let (client, server) = pair(&cx).await?;
        let mut client = client.bound(&cx);
        let mut server = server.bound(&cx);
        client.write_all(b"hello").await?;
        client.flush().await?;
        client.close().await?;
        let mut text = String::new();
        server.read_to_string(&mut text).await?;
        assert_eq!(text, "hello");
        server.write_all(b"answer").await?;
        drop(server);
        text.clear();
        client.read_to_string(&mut text).await?;
        assert_eq!(text, "answer");
        Ok(())
    });
}

#[test]
fn both_directions_wait_at_the_same_time() {
    on_each(async |cx| {
        let (client, server) = pair(&cx).await?;
        let bytes = vec![5; 4 << 20];
        let (mut reader, mut writer) = futures_lite::io::split(client.bound(&cx));
        let (near, far) = server.into_split();
        let (near, mut far) = (near.bound(&cx), far.bound(&cx));
        let mut got = Vec::new();
        let write = async {
            writer.write_all(&bytes).await?;
            writer.close().await
        };
        let echo = async {
            futures_lite::io::copy(near, &mut far).await?;
            far.close().await
        };
        let read = reader.read_to_end(&mut got);
        let (wrote, (echoed, read)) =
            futures_lite::future::zip(write, futures_lite::future::zip(echo, read)).await;
        wrote?;
        echoed?;
        assert_eq!(read?, bytes.len());
        assert!(got == bytes);
        Ok(())
    });
}

#[test]
fn cancel_is_an_error_of_the_futures_io_traits() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let mut server = server.bound(&cx);
        let mut buffer = [0; 8];
        let read: io::Result<usize> =
            cx.timeout(SOON, async |_| Ok(server.read(&mut buffer).await?)).await;
        assert_eq!(cancelled(read).kind(), Kind::Timeout);
        // The timeout consumed nothing, and the stream is still usable.
        client.write_all(&cx, b"kept").await?;
        assert_eq!(server.read(&mut buffer).await?, 4);

        let stopped: io::Result<()> = cx
            .scope(async |s| {
                s.cancel("now");
                let error = server.read(&mut buffer).await.unwrap_err();
                assert!(error.get_ref().unwrap().is::<Cancelled>());
                assert_eq!(cancelled::<()>(Err(error.into())).kind(), Kind::User);
                Ok(())
            })
            .await;
        stopped
    });
}

/// The operation is polled with a waker of a combinator, and the cancel still wakes it.
#[test]
fn cancel_wakes_an_operation_polled_with_a_foreign_waker() {
    on_each(async |cx| {
        let (_client, server) = pair(&cx).await?;
        cx.scope(async |s| {
            let task = s.spawn(async move |cx: Cx| {
                let mut server = server.bound(&cx);
                let mut buffer = [0; 8];
                let other = std::future::pending::<std::io::Result<usize>>();
                let read = async { server.read(&mut buffer).await }.or(other).await;
                Ok::<_, io::Error>(cancelled(read.map_err(io::Error::from)).kind())
            });
            cx.sleep(SOON).await?;
            task.cancel("enough");
            assert!(task.await.is_err());
            Ok(())
        })
        .await
    });
}

#[cfg(feature = "tokio")]
#[test]
fn tokio_io_reads_and_writes() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    on_each(async |cx| {
        let (client, server) = pair(&cx).await?;
        let mut client = client.bound(&cx);
        let mut server = server.bound(&cx);
        AsyncWriteExt::write_all(&mut client, b"hello\n").await?;
        AsyncWriteExt::shutdown(&mut client).await?;
        let mut text = String::new();
        AsyncReadExt::read_to_string(&mut server, &mut text).await?;
        assert_eq!(text, "hello\n");
        let buffers = [std::io::IoSlice::new(b"a"), std::io::IoSlice::new(b"b")];
        assert!(tokio::io::AsyncWrite::is_write_vectored(&server));
        let count = AsyncWriteExt::write_vectored(&mut server, &buffers).await?;
        assert_eq!(count, 2);
        let mut ab = [0; 2];
        AsyncReadExt::read_exact(&mut client, &mut ab).await?;
        assert_eq!(&ab, b"ab");
        Ok(())
    });
}

#[test]
fn errors_convert_from_and_to_std() {
    on_each(async |cx| {
        let (_client, mut server) = pair(&cx).await?;
        let mut buffer = [0; 8];
        let read = cx.timeout(SOON, async |cx| server.read(cx, &mut buffer).await).await;
        let error = read.unwrap_err();
        assert!(error.is_cancelled());
        assert!(error.to_string().starts_with("cancelled: Timeout"));
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.is::<Cancelled>());

        fn to_std(error: io::Error) -> std::io::Result<()> {
            Err(error)?
        }
        fn to_box(error: std::io::Error) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            Err(io::Error::from(error))?
        }
        let error = to_std(error).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Other);
        let error = to_box(error).unwrap_err();
        let error = error.downcast::<io::Error>().unwrap();
        assert_eq!(cancelled::<()>(Err(*error)).kind(), Kind::Timeout);

        let refused = io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert!(!refused.is_cancelled());
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let refused = std::io::Error::from(refused);
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn boxed_errors_convert_back() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    fn from_box(error: Boxed) -> io::Result<()> {
        Err(error)?
    }
    on_each(async |cx| {
        let stop = || async { cx.timeout(Duration::ZERO, async |cx| cx.checkpoint()).await };
        let stopped = stop().await.unwrap_err();
        assert!(from_box(Boxed::from(stopped)).unwrap_err().is_cancelled());
        let stopped = io::Error::from(stop().await.unwrap_err());
        assert!(from_box(Boxed::from(stopped)).unwrap_err().is_cancelled());
        let stopped = std::io::Error::from(io::Error::from(stop().await.unwrap_err()));
        assert!(from_box(Boxed::from(stopped)).unwrap_err().is_cancelled());

        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let refused = from_box(Boxed::from(refused)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let other = from_box(Boxed::from("something else")).unwrap_err();
        assert_eq!(other.kind(), std::io::ErrorKind::Other);
        assert_eq!(other.to_string(), "something else");
        io::Result::Ok(())
    });
}

#[cfg(feature = "anyhow")]
#[test]
fn errors_in_anyhow_convert_back() {
    fn there(error: io::Error) -> anyhow::Result<()> {
        Err(error)?
    }
    fn back(error: io::Error) -> io::Result<()> {
        Ok(there(error)?)
    }
    on_each(async |cx| {
        let stopped = cx.timeout(Duration::ZERO, async |cx| cx.checkpoint()).await.unwrap_err();
        assert!(back(stopped.into()).unwrap_err().is_cancelled());
        let refused = back(std::io::ErrorKind::ConnectionRefused.into()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let cause = anyhow::Error::new(io::Error::from(std::io::ErrorKind::TimedOut));
        let error = io::Error::from(cause.context("while it was asked"));
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(io::Error::from(anyhow::anyhow!("else")).to_string(), "else");
        io::Result::Ok(())
    });
}

#[test]
fn into_inner_returns_the_stream_without_its_wait() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        let mut bound = client.bound(&cx);
        let mut buffer = [0; 8];
        // The read is pending; `into_inner` removes its wait.
        let reading = bound.read(&mut buffer);
        assert!(futures_lite::future::poll_once(reading).await.is_none());
        let mut client = bound.into_inner();
        server.write_all(&cx, b"hello").await?;
        assert_eq!(client.read(&cx, &mut buffer).await?, 5);
        io::Result::Ok(())
    });
}

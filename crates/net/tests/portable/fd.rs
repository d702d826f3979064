//! Readiness of foreign file descriptors.

#![cfg(unix)]

use crate::common;

use std::io::{self as std_io, ErrorKind, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx_native::Runtime;
use asx_net::{AsyncFd, Cx, Interest, io};
use asx_runtime::channel;
use common::{Directory, cancelled, on_each};
use rustix::fs::{Mode, OFlags};

fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std_io::pipe().unwrap();
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    (reader, writer)
}

fn read(fd: &OwnedFd, buffer: &mut [u8]) -> std_io::Result<usize> {
    Ok(rustix::io::read(fd, buffer)?)
}

fn write(fd: &OwnedFd, bytes: &[u8]) -> std_io::Result<usize> {
    Ok(rustix::io::write(fd, bytes)?)
}

#[test]
fn pipe_is_readable_after_a_write() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        let mut buffer = [0; 8];
        let limit = Duration::from_millis(1);
        let attempt =
            async |cx: &Cx| reader.with(cx, Interest::Readable, |fd| read(fd, &mut [0; 8])).await;
        cancelled(cx.timeout(limit, attempt).await);
        write(&writer, b"hello")?;
        let count = reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?;
        assert_eq!(&buffer[..count], b"hello");
        Ok(())
    });
}

#[test]
fn attempt_that_would_block_clears_readiness() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        write(&writer, b"a")?;
        let guard = reader.readable(&cx).await?;
        let mut buffer = [0; 8];
        assert_eq!(guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?, 1);
        // The descriptor counts as ready until an attempt would block.
        let guard = reader.readable(&cx).await?;
        assert!(guard.try_io(|fd| read(fd, &mut buffer)).is_none());
        // The event of the first byte may arrive only now and cause another failed attempt.
        while let Some(guard) = futures_lite::future::poll_once(reader.readable(&cx)).await {
            assert!(guard?.try_io(|fd| read(fd, &mut buffer)).is_none());
        }
        write(&writer, b"b")?;
        let guard = reader.readable(&cx).await?;
        assert_eq!(guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?, 1);
        Ok(())
    });
}

/// Events after the creation of the guard are not cleared with it.
#[test]
fn guard_clears_only_the_event_it_observed() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        write(&writer, b"a")?;
        let guard = reader.readable(&cx).await?;
        let mut buffer = [0; 8];
        assert_eq!(guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?, 1);
        guard.clear_ready();
        write(&writer, b"b")?;
        drop(reader.readable(&cx).await?);
        // The guard has observed only the event of the first byte.
        guard.clear_ready();
        let count = reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?;
        assert_eq!(&buffer[..count], b"b");
        Ok(())
    });
}

#[test]
fn full_pipe_is_writable_after_a_read() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let writer = AsyncFd::new(&cx, writer)?;
        let chunk = [0; 4096];
        loop {
            let guard = writer.writable(&cx).await?;
            match guard.try_io(|fd| write(fd, &chunk)) {
                Some(count) => drop(count?),
                None => break,
            }
        }
        let (here, mut waits) = channel::bounded(1);
        cx.scope(async |s| {
            let task = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                writer.with(&cx, Interest::Writable, |fd| write(fd, &chunk)).await
            });
            waits.recv(&cx).await.ok();
            let mut all = vec![0; 1 << 20];
            while matches!(read(&reader, &mut all), Ok(1..)) {}
            assert_eq!(task.await.unwrap(), 4096);
            Ok(())
        })
        .await
    });
}

#[test]
fn end_of_pipe_wakes_the_reader() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        let (here, mut waits) = channel::bounded(1);
        cx.scope(async |s| {
            let task = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                reader.with(&cx, Interest::Readable, |fd| read(fd, &mut [0; 8])).await
            });
            waits.recv(&cx).await.ok();
            drop(writer);
            assert_eq!(task.await.unwrap(), 0);
            Ok(())
        })
        .await
    });
}

#[test]
fn regular_file_cannot_be_watched() {
    on_each(async |cx| {
        let file = std::fs::File::open(std::env::current_exe()?)?;
        let error = AsyncFd::new(&cx, file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        Ok(())
    });
}

/// `get_mut` allows the owner to replace the descriptor, against its documentation: the old one is
/// closed while it is watched. Its waits can then only be cancelled, and a new descriptor with the
/// same number can be watched.
#[test]
fn descriptor_closed_while_watched_does_not_affect_others() {
    on_each(async |cx| {
        let (reader, _writer) = pipe();
        let mut watched = AsyncFd::new(&cx, reader)?;
        let (other, _other_writer) = pipe();
        drop(std::mem::replace(watched.get_mut(), other));
        let limit = Duration::from_millis(1);
        let attempt =
            async |cx: &Cx| watched.with(cx, Interest::Readable, |fd| read(fd, &mut [0; 8])).await;
        cancelled(cx.timeout(limit, attempt).await);
        drop(watched);
        for _ in 0..3 {
            let (reader, writer) = pipe();
            let reader = AsyncFd::new(&cx, reader)?;
            write(&writer, b"news")?;
            let mut buffer = [0; 8];
            let count = reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?;
            assert_eq!(&buffer[..count], b"news");
        }
        Ok(())
    });
}

/// A new descriptor may have the number of a watched one that was closed.
#[test]
fn end_of_watch_does_not_affect_a_new_descriptor_with_the_same_number() {
    on_each(async |cx| {
        let (reader, _writer) = pipe();
        let (spare, _spare_writer) = pipe();
        let number = reader.as_raw_fd();
        let mut watched = AsyncFd::new(&cx, reader)?;
        drop(std::mem::replace(watched.get_mut(), spare));
        // New descriptors get the lowest free number, unless another thread takes it first.
        let mut others = Vec::new();
        let (next, writer) = loop {
            let (next, writer) = pipe();
            if next.as_raw_fd() == number || others.len() == 1000 {
                break (next, writer);
            }
            others.push((next, writer));
        };
        assert_eq!(next.as_raw_fd(), number, "the number is free");
        let next = AsyncFd::new(&cx, next)?;
        next.readable(&cx).await?.clear_ready();
        drop(watched);
        write(&writer, b"news")?;
        let wait = async |cx: &Cx| next.readable(cx).await.map(drop);
        cx.timeout(Duration::from_secs(20), wait).await?;
        Ok(())
    });
}

#[test]
fn into_inner_returns_a_descriptor_that_can_be_watched_again() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?.into_inner();
        write(&writer, b"a")?;
        let again = AsyncFd::new(&cx, reader)?;
        let count = again.with(&cx, Interest::Readable, |fd| read(fd, &mut [0; 8])).await?;
        assert_eq!(count, 1);
        io::Result::Ok(())
    });
}

#[test]
fn named_pipe_waits_for_its_next_writer_after_an_end() {
    on_each(async |cx| {
        let directory = Directory::new("fifo");
        let path = directory.path("fifo");
        // The system call differs between systems, the command does not.
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let open =
            |how: OFlags| rustix::fs::open(&path, how | OFlags::NONBLOCK, Mode::empty()).unwrap();
        let reader = AsyncFd::new(&cx, open(OFlags::RDONLY))?;
        for _ in 0..3 {
            let writer = open(OFlags::WRONLY);
            write(&writer, b"x")?;
            let mut attempts = 0;
            let mut attempt = |fd: &OwnedFd| {
                attempts += 1;
                read(fd, &mut [0; 8])
            };
            assert_eq!(reader.with(&cx, Interest::Readable, &mut attempt).await?, 1);
            // The next end is not reached yet: the reader must wait and not spin.
            let limit = Duration::from_millis(20);
            let waited = cx
                .timeout(limit, async |cx| reader.with(cx, Interest::Readable, &mut attempt).await);
            cancelled(waited.await);
            assert!(attempts < 10, "{attempts} attempts");
            drop(writer);
            let end = reader.with(&cx, Interest::Readable, |fd| read(fd, &mut [0; 8])).await?;
            assert_eq!(end, 0);
        }
        io::Result::Ok(())
    });
}

#[test]
fn second_watch_is_refused_and_the_first_continues() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let first = AsyncFd::new(&cx, &reader)?;
        let second = AsyncFd::new(&cx, &reader);
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AlreadyExists);
        write(&writer, b"x")?;
        let mut buffer = [0; 8];
        assert_eq!(first.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 1);
        // After the end of the first watch, the descriptor can be watched again.
        drop(first);
        let third = AsyncFd::new(&cx, &reader)?;
        write(&writer, b"yz")?;
        assert_eq!(third.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 2);
        io::Result::Ok(())
    });
}

#[test]
fn end_of_pipe_is_observed_after_readiness_is_cleared_at_a_short_read() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        let mut buffer = [0; 8];
        let nothing = reader.readable(&cx).await?.try_io(|fd| read(fd, &mut buffer));
        assert!(nothing.is_none());
        write(&writer, b"last")?;
        drop(writer);
        // A short count: the pipe is empty now.
        let guard = reader.readable(&cx).await?;
        let count = guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?;
        assert_eq!(count, 4);
        guard.clear_ready();
        assert_eq!(reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 0);
        io::Result::Ok(())
    });
}

#[test]
fn task_at_an_always_ready_descriptor_yields_after_16_waits() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let ended: io::Result<()> = runtime.block_on(async |cx: Cx| {
        let (near, mut far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.write_all(b"never read")?;
        cx.scope(async |s| {
            let waits = Arc::new(AtomicU64::new(0));
            let counts = waits.clone();
            s.spawn(async move |cx: Cx| -> io::Result<()> {
                let fd = AsyncFd::new(&cx, near)?;
                loop {
                    let _ = fd.readable(&cx).await?;
                    counts.fetch_add(1, Relaxed);
                }
            });
            let mut last = 0;
            for _ in 0..100 {
                cx.yield_now().await;
                let now = waits.load(Relaxed);
                assert!(now - last <= 16, "{} waits in one poll", now - last);
                last = now;
            }
            assert!(last > 0);
            s.cancel("enough");
            Ok::<(), io::Error>(())
        })
        .await
    });
    ended.unwrap_or_else(|error| assert!(error.is_cancelled(), "{error}"));
}

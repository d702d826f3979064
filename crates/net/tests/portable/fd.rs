//! Descriptors of somebody else's.

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
fn a_pipe_is_readable_when_something_was_written() {
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
fn what_would_block_is_waited_for_again() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        write(&writer, b"a")?;
        let guard = reader.readable(&cx).await?;
        let mut buffer = [0; 8];
        assert_eq!(guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?, 1);
        // The descriptor counts as ready until somebody has found that it is not.
        let guard = reader.readable(&cx).await?;
        assert!(guard.try_io(|fd| read(fd, &mut buffer)).is_none());
        // The event of the first byte may come as late as now; then it is tried in vain once more.
        while let Some(guard) = futures_lite::future::poll_once(reader.readable(&cx)).await {
            assert!(guard?.try_io(|fd| read(fd, &mut buffer)).is_none());
        }
        write(&writer, b"b")?;
        let guard = reader.readable(&cx).await?;
        assert_eq!(guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?, 1);
        Ok(())
    });
}

/// News that came after the guard was made are not cleared with it.
#[test]
fn a_guard_clears_only_what_it_has_seen() {
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
        // Too late: this is about the first byte.
        guard.clear_ready();
        let count = reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?;
        assert_eq!(&buffer[..count], b"b");
        Ok(())
    });
}

#[test]
fn a_full_pipe_is_writable_when_somebody_has_read() {
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
fn the_end_of_a_pipe_wakes_its_reader() {
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
fn what_cannot_be_watched_is_an_error() {
    on_each(async |cx| {
        let file = std::fs::File::open(std::env::current_exe()?)?;
        let error = AsyncFd::new(&cx, file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        Ok(())
    });
}

/// `get_mut` lets its owner put another descriptor there, against what its text says: the old one
/// is closed while it is watched. Nobody can be told, but nothing breaks: who waits can be
/// cancelled, and a descriptor that gets the same number is watched like any other.
#[test]
fn a_descriptor_that_is_closed_behind_our_back_breaks_nothing_else() {
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

/// The end of the watch must not end that of another descriptor, which has the number by then.
#[test]
fn a_number_that_another_descriptor_has_got_is_left_to_it() {
    on_each(async |cx| {
        let (reader, _writer) = pipe();
        let (spare, _spare_writer) = pipe();
        let number = reader.as_raw_fd();
        let mut watched = AsyncFd::new(&cx, reader)?;
        drop(std::mem::replace(watched.get_mut(), spare));
        // The lowest number that is free, unless another thread was faster.
        let mut others = Vec::new();
        let (next, writer) = loop {
            let (next, writer) = pipe();
            if next.as_raw_fd() == number || others.len() == 1000 {
                break (next, writer);
            }
            others.push((next, writer));
        };
        assert_eq!(next.as_raw_fd(), number, "nobody else has it");
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
fn a_descriptor_goes_back_to_its_owner() {
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
fn a_named_pipe_waits_for_its_next_writer() {
    on_each(async |cx| {
        let directory = Directory::new("fifo");
        let path = directory.path("fifo");
        // The system calls for it differ between systems; the command does not.
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
            // The end of the writer before is over: this one is waited for, not tried for.
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
fn a_second_watch_that_is_refused_takes_nothing_from_the_first() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let first = AsyncFd::new(&cx, &reader)?;
        let second = AsyncFd::new(&cx, &reader);
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AlreadyExists);
        write(&writer, b"x")?;
        let mut buffer = [0; 8];
        assert_eq!(first.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 1);
        // It is not watched any more, and can be again.
        drop(first);
        let third = AsyncFd::new(&cx, &reader)?;
        write(&writer, b"yz")?;
        assert_eq!(third.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 2);
        io::Result::Ok(())
    });
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_seen_by_who_stops_at_a_short_read() {
    on_each(async |cx| {
        let (reader, writer) = pipe();
        let reader = AsyncFd::new(&cx, reader)?;
        let mut buffer = [0; 8];
        let nothing = reader.readable(&cx).await?.try_io(|fd| read(fd, &mut buffer));
        assert!(nothing.is_none());
        write(&writer, b"last")?;
        drop(writer);
        // What is there is less than there is room for: the pipe is empty now.
        let guard = reader.readable(&cx).await?;
        let count = guard.try_io(|fd| read(fd, &mut buffer)).unwrap()?;
        assert_eq!(count, 4);
        guard.clear_ready();
        assert_eq!(reader.with(&cx, Interest::Readable, |fd| read(fd, &mut buffer)).await?, 0);
        io::Result::Ok(())
    });
}

#[test]
fn a_task_at_an_always_ready_descriptor_yields_after_16_waits() {
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

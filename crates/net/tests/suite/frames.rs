//! Frames are written completely, or the connection is poisoned.

use crate::common;

use std::io::ErrorKind;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_net::io::{FrameError, FrameReader, FrameWriter, Read as _, Result, Write};
use asx_net::{Cx, io};
use asx_runtime::select;
use common::{on_each, pair};

const SOON: Duration = Duration::from_millis(1);

/// A writer that accepts `room` bytes; further writes wait until they are cancelled.
#[derive(Default)]
struct Narrow {
    room: usize,
    taken: Vec<u8>,
    aborted: bool,
}

impl Write for Narrow {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        if self.room == 0 {
            return Err(cx.cancelled().await.into());
        }
        let count = self.room.min(bytes.len());
        self.room -= count;
        self.taken.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn abort(&mut self) {
        self.aborted = true;
    }
}

/// Flushes until a timeout cancels it.
async fn cut(cx: &Cx, writer: &mut FrameWriter<Narrow>) -> FrameError {
    let flushed = cx.timeout(SOON, async |cx| writer.flush(cx).await).await;
    flushed.unwrap_err()
}

async fn commit(cx: &Cx, writer: &mut FrameWriter<Narrow>, frame: &[u8]) {
    writer.reserve(cx).await.unwrap().send(frame).unwrap();
}

#[test]
fn frames_are_received_as_sent() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let (_, writer) = client.split();
        let mut writer = FrameWriter::new(writer);
        let mut reader = FrameReader::new(server);
        let long = vec![9; 100_000];
        let frames = [&b"one"[..], b"", &long];
        cx.scope(async |s| {
            let read = s.spawn(async move |cx: Cx| {
                let mut got = Vec::new();
                while let Some(frame) = reader.read(&cx).await.map_err(io::Error::from)? {
                    got.push(frame);
                }
                Ok(got)
            });
            for frame in frames {
                writer.reserve(&cx).await?.send(frame)?;
            }
            writer.flush(&cx).await?;
            assert_eq!(writer.pending(), 0);
            writer.shutdown(&cx).await?;
            assert_eq!(read.await.unwrap(), frames);
            Ok::<_, io::Error>(())
        })
        .await
    });
}

#[test]
fn flush_cancelled_inside_a_frame_poisons_the_writer() {
    on_each(async |cx| {
        // Every length inside one of the two frames.
        for room in (1..7).chain(8..14) {
            let mut writer = FrameWriter::new(Narrow { room, ..Narrow::default() });
            commit(&cx, &mut writer, b"one").await;
            commit(&cx, &mut writer, b"two").await;
            assert!(matches!(cut(&cx, &mut writer).await, FrameError::Cancelled(_)));
            assert!(writer.is_poisoned() && writer.get_ref().aborted, "after {room} bytes");
            assert!(matches!(writer.flush(&cx).await, Err(FrameError::Poisoned)));
            assert!(matches!(writer.shutdown(&cx).await, Err(FrameError::Poisoned)));
            assert!(matches!(writer.reserve(&cx).await, Err(FrameError::Poisoned)));
            assert_eq!(writer.get_ref().taken.len(), room, "no byte follows");
        }
        Ok(())
    });
}

#[test]
fn flush_cancelled_between_frames_continues_later() {
    on_each(async |cx| {
        for room in [0, 7] {
            let mut writer = FrameWriter::new(Narrow { room, ..Narrow::default() });
            commit(&cx, &mut writer, b"one").await;
            commit(&cx, &mut writer, b"two").await;
            assert!(cut(&cx, &mut writer).await.is_cancelled());
            assert!(!writer.is_poisoned() && !writer.get_ref().aborted);
            assert_eq!(writer.pending(), 14 - room);
        }
        // On a real connection: a later flush writes committed frames in order.
        let (mut client, mut server) = pair(&cx).await?;
        let (_, writer) = client.split();
        let mut writer = FrameWriter::new(writer);
        writer.reserve(&cx).await?.send(b"one")?;
        let stopped: Result<()> = cx
            .scope(async |s| {
                s.cancel("now");
                let error = writer.flush(&cx).await.unwrap_err();
                assert!(error.is_cancelled());
                Ok(())
            })
            .await;
        stopped?;
        writer.reserve(&cx).await?.send(b"two")?;
        writer.flush(&cx).await?;
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"\0\0\0\x03one\0\0\0\x03two");
        Ok(())
    });
}

#[test]
fn flush_dropped_inside_a_frame_poisons_the_writer() {
    on_each(async |cx| {
        let mut writer = FrameWriter::new(Narrow { room: 5, ..Narrow::default() });
        commit(&cx, &mut writer, b"one").await;
        assert!(futures_lite::future::poll_once(writer.flush(&cx)).await.is_none());
        assert!(writer.is_poisoned());
        Ok(())
    });
}

#[test]
fn cancelled_reserve_commits_nothing() {
    on_each(async |cx| {
        let mut writer = FrameWriter::new(Narrow::default()).high_water(4);
        commit(&cx, &mut writer, b"one").await;
        let reserved = cx.timeout(SOON, async |cx| writer.reserve(cx).await.map(drop)).await;
        let Err(FrameError::Cancelled(cancelled)) = reserved else { panic!("{reserved:?}") };
        assert_eq!(cancelled.kind(), Kind::Timeout);
        assert!(!writer.is_poisoned());
        assert_eq!(writer.pending(), 7);
        Ok(())
    });
}

#[test]
fn flush_in_a_shield_completes_after_a_cancel() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let (_, writer) = client.split();
        let mut writer = FrameWriter::new(writer);
        let stopped: Result<()> = cx
            .scope(async |s| {
                writer.reserve(&cx).await?.send(b"whole")?;
                s.cancel("now");
                cx.shield(async |cx| writer.flush(cx).await).await?;
                Ok(())
            })
            .await;
        stopped?;
        assert_eq!(FrameReader::new(server).read(&cx).await?, Some(b"whole".to_vec()));
        Ok(())
    });
}

/// The peer of a connection that is cut off inside a frame reads the end of the stream there.
#[test]
fn peer_of_a_poisoned_connection_reads_an_end_inside_the_frame() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let (_, writer) = client.split();
        let mut writer = FrameWriter::new(writer).max_frame(32 << 20);
        writer.reserve(&cx).await?.send(&vec![1; 32 << 20])?;
        // Longer than the buffers of the operating system: it is cut off inside the frame.
        assert!(futures_lite::future::poll_once(writer.flush(&cx)).await.is_none());
        assert!(writer.is_poisoned());
        let mut reader = FrameReader::new(server).max_frame(32 << 20);
        let error = reader.read(&cx).await.unwrap_err();
        assert!(matches!(&error, FrameError::Io(end) if end.kind() == ErrorKind::UnexpectedEof));
        assert!(matches!(reader.read(&cx).await, Err(FrameError::Poisoned)));
        Ok(())
    });
}

#[test]
fn frames_above_the_maximum_are_refused_on_both_sides() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let (_, writer) = client.split();
        let mut writer = FrameWriter::new(writer).max_frame(4);
        let refused = writer.reserve(&cx).await?.send(b"12345");
        assert!(matches!(refused, Err(FrameError::TooLong { length: 5, max: 4 })));
        assert_eq!(writer.pending(), 0);
        writer.reserve(&cx).await?.send(b"1234")?;
        writer.flush(&cx).await?;
        let mut reader = FrameReader::new(server).max_frame(3);
        let refused = reader.read(&cx).await;
        assert!(matches!(refused, Err(FrameError::TooLong { length: 4, max: 3 })));
        assert!(matches!(reader.read(&cx).await, Err(FrameError::Poisoned)));
        Ok(())
    });
}

#[test]
fn frame_received_in_pieces_survives_cancels() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let mut reader = FrameReader::new(server);
        let bytes = b"\0\0\0\x05hello\0\0\0\x02";
        let mut frame = None;
        for (sent, byte) in bytes.iter().enumerate() {
            client.write_all(&cx, &[*byte]).await?;
            // `select!` drops the read in all rounds except one.
            frame = select! {
                read = reader.read(&cx), if frame.is_none() => Some(read?),
                slept = cx.sleep(SOON) => {
                    slept?;
                    frame
                }
            };
            assert!(frame.is_none() || sent >= 8);
        }
        let frame = match frame {
            Some(frame) => frame,
            None => reader.read(&cx).await?,
        };
        assert_eq!(frame, Some(b"hello".to_vec()));
        client.write_all(&cx, b"ok").await?;
        drop(client);
        assert_eq!(reader.read(&cx).await?, Some(b"ok".to_vec()));
        assert_eq!(reader.read(&cx).await?, None);
        Ok(())
    });
}

/// A writer that alternately accepts a frame of three bytes and fails.
#[derive(Default)]
struct Halting {
    taken: Vec<u8>,
    halts: bool,
}

impl Write for Halting {
    async fn write(&mut self, _: &Cx, bytes: &[u8]) -> Result<usize> {
        self.halts = !self.halts;
        if !self.halts {
            return Err(ErrorKind::TimedOut.into());
        }
        self.taken.extend_from_slice(&bytes[..7]);
        Ok(7)
    }
}

#[test]
fn flushes_that_fail_between_frames_lose_and_repeat_nothing() {
    on_each(async |cx| {
        let mut writer = FrameWriter::new(Halting::default());
        let mut expected = Vec::new();
        for number in 0..20 {
            for letter in [b'a', b'b'] {
                let frame = [letter, number, letter];
                writer.reserve(&cx).await?.send(&frame)?;
                expected.extend_from_slice(&[0, 0, 0, 3]);
                expected.extend_from_slice(&frame);
            }
            assert!(writer.flush(&cx).await.is_err());
            assert!(!writer.is_poisoned());
        }
        while writer.flush(&cx).await.is_err() {}
        assert_eq!(writer.get_ref().taken, expected);
        Ok(())
    });
}

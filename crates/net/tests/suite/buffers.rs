//! Buffered readers and writers.

use crate::common;

use std::io::ErrorKind;
use std::time::Duration;

use asx_net::io::{BufReader, BufWriter, Read, Result, Write};
use asx_net::{Cx, io};
use asx_runtime::select;
use common::{cancelled, on_each, pair};

const SOON: Duration = Duration::from_millis(1);

#[test]
fn lines_are_returned_without_their_line_ends() {
    on_each(async |cx| {
        let text = &b"one\ntwo\r\n\nlast"[..];
        for capacity in [1, 2, 3, 64] {
            let mut lines = BufReader::with_capacity(capacity, text).lines();
            for expected in ["one", "two", "", "last"] {
                assert_eq!(lines.next(&cx).await?.as_deref(), Some(expected));
            }
            assert_eq!(lines.next(&cx).await?, None);
        }
        Ok(())
    });
}

#[test]
fn part_of_a_line_survives_cancels() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let mut reader = BufReader::with_capacity(4, server);
        let mut line = String::new();
        for piece in ["a par", "t of a li", "ne"] {
            client.write_all(&cx, piece.as_bytes()).await?;
            cancelled(cx.timeout(SOON, async |cx| reader.read_line(cx, &mut line).await).await);
            assert_eq!(line, "");
        }
        client.write_all(&cx, b"\nnext\n").await?;
        assert_eq!(reader.read_line(&cx, &mut line).await?, 17);
        assert_eq!(line, "a part of a line\n");
        let mut lines = reader.lines();
        let next = select! {
            next = lines.next(&cx) => next?,
            _ = cx.sleep(Duration::from_secs(60)) => unreachable!("the line is buffered"),
        };
        assert_eq!(next.as_deref(), Some("next"));
        Ok(())
    });
}

#[test]
fn line_without_an_end_uses_limited_memory() {
    on_each(async |cx| {
        let long = vec![b'x'; 1000];
        let mut reader = BufReader::with_capacity(16, &long[..]).max_section(100);
        let error = reader.read_line(&cx, &mut String::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(reader.buffer().len(), 101);
        Ok(())
    });
}

#[test]
fn line_that_is_not_utf8_fails_and_the_next_line_is_read() {
    on_each(async |cx| {
        let mut reader = BufReader::new(&b"\xff\xff\nfine\n"[..]);
        let mut line = String::new();
        let error = reader.read_line(&cx, &mut line).await.unwrap_err();
        assert_eq!((error.kind(), &*line), (ErrorKind::InvalidData, ""));
        reader.read_line(&cx, &mut line).await?;
        assert_eq!(line, "fine\n");
        Ok(())
    });
}

#[test]
fn sections_and_plain_reads_continue_each_other() {
    on_each(async |cx| {
        let mut reader = BufReader::with_capacity(4, &b"key=value;rest"[..]);
        let mut section = Vec::new();
        assert_eq!(reader.read_until(&cx, b'=', &mut section).await?, 4);
        assert_eq!(reader.read_until(&cx, b';', &mut section).await?, 6);
        assert_eq!(section, b"key=value;");
        assert!(!reader.fill_buf(&cx).await?.is_empty());
        let mut rest = Vec::new();
        reader.read_to_end(&cx, &mut rest).await?;
        assert_eq!(rest, b"rest");
        assert_eq!(reader.read_until(&cx, b';', &mut section).await?, 0);
        Ok(())
    });
}

/// A writer that accepts one byte per write, or waits until it is cancelled.
#[derive(Default)]
struct Sink {
    written: Vec<u8>,
    blocked: bool,
}

impl Write for Sink {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        if self.blocked {
            return Err(cx.cancelled().await.into());
        }
        self.written.push(bytes[0]);
        Ok(1)
    }
}

#[test]
fn small_writes_are_combined() {
    on_each(async |cx| {
        let mut writer = BufWriter::with_capacity(8, Vec::new());
        for _ in 0..3 {
            writer.write_all(&cx, b"abc").await?;
        }
        assert_eq!((&writer.get_ref()[..], writer.buffer()), (&b"abcabc"[..], &b"abc"[..]));
        writer.write_all(&cx, b"a long one").await?;
        writer.flush(&cx).await?;
        assert_eq!(writer.get_ref(), b"abcabcabca long one");
        Ok(())
    });
}

#[test]
fn bytes_of_a_cancelled_flush_stay_in_order() {
    on_each(async |cx| {
        let mut writer = BufWriter::new(Sink::default());
        writer.write_all(&cx, b"first").await?;
        writer.get_mut().blocked = true;
        cancelled(cx.timeout(SOON, async |cx| writer.flush(cx).await).await);
        writer.get_mut().blocked = false;
        writer.write_all(&cx, b" second").await?;
        writer.shutdown(&cx).await?;
        assert_eq!(writer.get_ref().written, b"first second");
        let (_, rest) = writer.into_parts();
        assert!(rest.is_empty());
        Ok(())
    });
}

#[test]
fn copy_writes_all_bytes_and_flushes() {
    on_each(async |cx| {
        let bytes = vec![3; 100_000];
        let mut reader = &bytes[..];
        let mut writer = BufWriter::new(Vec::new());
        assert_eq!(io::copy(&cx, &mut reader, &mut writer).await?, 100_000);
        assert!(writer.get_ref() == &bytes);
        Ok(())
    });
}

/// A writer that accepts no bytes.
struct Full;

impl Write for Full {
    async fn write(&mut self, _: &Cx, _: &[u8]) -> Result<usize> {
        Ok(0)
    }
}

#[test]
fn writer_that_accepts_no_bytes_fails_with_write_zero() {
    on_each(async |cx| {
        let error = Full.write_all(&cx, b"x").await.unwrap_err();
        assert_eq!((error.written, error.error.kind()), (0, ErrorKind::WriteZero));
        Ok(())
    });
}

#[test]
fn limit_of_sections_does_not_depend_on_the_sizes_of_reads() {
    on_each(async |cx| {
        let text = &b"12345\n12345"[..];
        for capacity in [1, 2, 5, 64] {
            let mut reader = BufReader::with_capacity(capacity, text).max_section(5);
            let error = reader.read_line(&cx, &mut String::new()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            let mut reader = BufReader::with_capacity(capacity, text).max_section(6);
            assert_eq!(reader.read_line(&cx, &mut String::new()).await?, 6);
            // The last line has no line end, so it is within the limit.
            let mut reader = reader.max_section(5);
            assert_eq!(reader.read_line(&cx, &mut String::new()).await?, 5);
            assert_eq!(reader.read_line(&cx, &mut String::new()).await?, 0);
        }
        Ok(())
    });
}

#[test]
fn consume_is_limited_to_the_buffered_bytes() {
    on_each(async |cx| {
        let mut reader = BufReader::new(&b"some text"[..]);
        assert_eq!(reader.fill_buf(&cx).await?, b"some text");
        reader.consume(5);
        assert_eq!(reader.buffer(), b"text");
        reader.consume(usize::MAX);
        assert_eq!(reader.buffer(), b"");
        Ok(())
    });
}

#[test]
fn empty_read_of_a_buf_reader_completes_immediately() {
    on_each(async |cx| {
        let (_client, server) = pair(&cx).await?;
        let mut reader = BufReader::new(server);
        assert_eq!(reader.read(&cx, &mut []).await?, 0);
        Ok(())
    });
}

#[test]
fn copy_flushes_before_it_waits_for_more_bytes() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        let cx = &cx;
        cx.scope(async |s| {
            s.spawn(async move |cx: Cx| {
                let (mut reader, writer) = server.into_split();
                let mut writer = BufWriter::new(writer);
                io::copy(&cx, &mut reader, &mut writer).await.map(drop)
            });
            // Each answer is read before the next question is sent.
            for question in [&b"first"[..], b"second"] {
                client.write_all(cx, question).await?;
                let mut answer = vec![0; question.len()];
                client.read_exact(cx, &mut answer).await?;
                assert_eq!(answer, question);
            }
            client.shutdown(std::net::Shutdown::Write)?;
            Ok::<_, io::Error>(())
        })
        .await
    });
}

//! TCP urgent data does not stall readers.

#![cfg(unix)]

use crate::common;

use std::io::IoSliceMut;
use std::net::Shutdown;

use asx_net::io::Read as _;
use asx_net::{Cx, TcpListener, TcpStream, io};
use common::{on_each, pair};
use futures_lite::future::poll_once;

/// The operation that reads from the stream.
#[derive(Clone, Copy, Debug)]
enum Reads {
    /// `read` into a buffer of this size.
    Plain(usize),
    /// `read_exact` of this size.
    Exact(usize),
    /// `read_vectored` into buffers of 1, 2 and 61 bytes.
    Vectored,
    /// `peek` before each `read`.
    Peeked,
    /// `read` of a borrowed half.
    Half,
}

impl Reads {
    /// Reads at least one byte of the `left` ordinary bytes that have not been read yet.
    async fn next(self, cx: &Cx, stream: &mut TcpStream, left: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; 64];
        let count = match self {
            Reads::Plain(size) => {
                buffer.resize(size, 0);
                stream.read(cx, &mut buffer).await?
            }
            Reads::Exact(size) => {
                buffer.truncate(size.min(left));
                stream.read_exact(cx, &mut buffer).await?;
                buffer.len()
            }
            Reads::Vectored => {
                let (first, rest) = buffer.split_at_mut(1);
                let (second, third) = rest.split_at_mut(2);
                let mut buffers = [first, second, third].map(IoSliceMut::new);
                stream.read_vectored(cx, &mut buffers).await?
            }
            Reads::Peeked => {
                let seen = stream.peek(cx, &mut buffer).await?;
                let seen = buffer[..seen].to_vec();
                let count = stream.read(cx, &mut buffer).await?;
                assert!(buffer[..count].starts_with(&seen), "{buffer:?} after {seen:?}");
                count
            }
            Reads::Half => stream.split().0.read(cx, &mut buffer).await?,
        };
        buffer.truncate(count);
        Ok(buffer)
    }
}

const READS: [Reads; 11] = [
    Reads::Plain(1),
    Reads::Plain(2),
    Reads::Plain(3),
    Reads::Plain(64),
    Reads::Plain(1 << 16),
    Reads::Exact(1),
    Reads::Exact(5),
    Reads::Exact(64),
    Reads::Vectored,
    Reads::Peeked,
    Reads::Half,
];

/// Sends a script: each `!` as a byte of urgent data, the rest as ordinary bytes.
async fn send_script(cx: &Cx, stream: &mut TcpStream, script: &str) -> io::Result<()> {
    for part in script.split_inclusive('!') {
        let data = part.trim_end_matches('!');
        stream.write_all(cx, data.as_bytes()).await?;
        if data.len() < part.len() {
            let fd = stream.fd().expect("a descriptor");
            socket2::SockRef::from(&fd).send_out_of_band(b"!")?;
        }
    }
    Ok(())
}

/// The ordinary bytes of a script, or of the bytes that were read. The system delivers an urgent
/// byte in line if another one follows before it was read.
fn ordinary(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().filter(|byte| **byte != b'!').map(|byte| char::from(*byte)).collect()
}

/// Sends the script while a read is pending, so that one event reports all its bytes, and reads the
/// ordinary ones. Then the peer ends the stream, possibly right behind an urgent byte.
async fn exchange(
    cx: &Cx,
    [mut peer, mut stream]: [TcpStream; 2],
    script: &str,
    reads: Reads,
) -> io::Result<()> {
    let wanted = ordinary(script);
    assert!(poll_once(stream.read(cx, &mut [0; 8])).await.is_none());
    send_script(cx, &mut peer, script).await?;
    let mut got = Vec::new();
    while ordinary(&got).len() < wanted.len() {
        let left = wanted.len() - ordinary(&got).len();
        let bytes = reads.next(cx, &mut stream, left).await?;
        assert!(!bytes.is_empty(), "{reads:?} ended after {got:?}");
        got.extend(bytes);
    }
    assert_eq!(ordinary(&got), wanted, "{reads:?}");
    send_script(cx, &mut peer, "!").await?;
    peer.shutdown(Shutdown::Write)?;
    let mut rest = Vec::new();
    stream.read_to_end(cx, &mut rest).await?;
    assert_eq!(ordinary(&rest), "", "{reads:?}");
    Ok(())
}

const SCRIPTS: [&str; 8] =
    ["abc!defg", "!abc", "!", "ab!cd!ef", "a!!b", "abc!", "!a!b!c!d!e!", "abcdefghij!k!lm"];

#[test]
fn urgent_data_between_ordinary_bytes_does_not_stall_reads() {
    on_each(async |cx| {
        for script in SCRIPTS {
            for reads in READS {
                // `read_exact` needs to know the count, which several urgent bytes change.
                if script.matches('!').count() > 1 && matches!(reads, Reads::Exact(_)) {
                    continue;
                }
                let (client, server) = pair(&cx).await?;
                exchange(&cx, [client, server], script, reads).await?;
                // The client is the reader.
                let (client, server) = pair(&cx).await?;
                exchange(&cx, [server, client], script, reads).await?;
            }
        }
        Ok(())
    });
}

#[test]
fn urgent_data_does_not_stall_an_adopted_stream_with_either_oob_mode() {
    on_each(async |cx| {
        for inline in [false, true] {
            for script in SCRIPTS {
                let (client, server) = pair(&cx).await?;
                let server = server.into_std()?;
                socket2::SockRef::from(&server).set_out_of_band_inline(inline)?;
                let server = TcpStream::from_std(&cx, server)?;
                exchange(&cx, [client, server], script, Reads::Plain(64)).await?;
            }
        }
        Ok(())
    });
}

#[test]
fn urgent_data_that_arrives_before_the_accept_does_not_stall_reads() {
    on_each(async |cx| {
        for script in SCRIPTS {
            let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
            let mut client = TcpStream::connect(&cx, listener.local_addr()?).await?;
            send_script(&cx, &mut client, script).await?;
            let (mut server, _) = listener.accept(&cx).await?;
            let mut got = Vec::new();
            while ordinary(&got).len() < ordinary(script).len() {
                got.extend(Reads::Plain(64).next(&cx, &mut server, 64).await?);
            }
            assert_eq!(ordinary(&got), ordinary(script));
        }
        Ok(())
    });
}

#[test]
fn urgent_data_does_not_stall_copy_and_owned_halves() {
    on_each(async |cx| {
        let (mut peer, stream) = pair(&cx).await?;
        let (forward, mut end) = pair(&cx).await?;
        cx.scope(async |s| {
            s.spawn(async move |cx: Cx| {
                let (mut reader, _writer) = stream.into_split();
                let (_reader, mut writer) = forward.into_split();
                io::copy(&cx, &mut reader, &mut writer).await?;
                Ok(())
            });
            for round in 0..200 {
                let script = SCRIPTS[round % SCRIPTS.len()];
                send_script(&cx, &mut peer, script).await?;
                let mut got = Vec::new();
                while ordinary(&got).len() < ordinary(script).len() {
                    got.extend(Reads::Plain(64).next(&cx, &mut end, 64).await?);
                }
                assert_eq!(ordinary(&got), ordinary(script), "round {round}");
            }
            drop(peer);
            let mut rest = Vec::new();
            end.read_to_end(&cx, &mut rest).await?;
            assert_eq!(ordinary(&rest), "");
            Ok(())
        })
        .await
    });
}

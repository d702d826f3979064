//! Copying between streams.

use asx_runtime::{Cx, try_join};

use crate::io::traits::CHUNK;
use crate::io::{Duplex, Error, Read, Result, Write};

/// Copies all bytes from `reader` to `writer` and returns their number. Flushes `writer` after each
/// read.
///
/// # Errors
/// The error of the reader or the writer, or the cancellation.
///
/// # Cancel safety
/// Not cancel-safe: bytes that were read and not yet written are lost.
///
/// # Examples
/// ```
/// use asx::{Cx, io, net::TcpStream};
///
/// async fn echo(cx: Cx, mut stream: TcpStream) -> io::Result<()> {
///     let (mut reader, mut writer) = stream.split();
///     io::copy(&cx, &mut reader, &mut writer).await?;
///     Ok(())
/// }
/// ```
pub async fn copy<R, W>(cx: &Cx, reader: &mut R, writer: &mut W) -> Result<u64>
where
    R: Read + ?Sized,
    W: Write + ?Sized,
{
    let mut chunk = vec![0; CHUNK];
    let mut copied = 0;
    loop {
        match reader.read(cx, &mut chunk).await? {
            0 => break,
            count => {
                writer.write_all(cx, &chunk[..count]).await?;
                // The peer may wait for these bytes before it sends more.
                writer.flush(cx).await?;
                copied += count as u64;
            }
        }
    }
    writer.flush(cx).await?;
    Ok(copied)
}

/// Copies bytes between two connections in both directions. Returns the numbers of bytes that were
/// copied from `a` to `b` and from `b` to `a`.
///
/// When one connection ends, the other is shut down for writing ([`Write::shutdown`]) and is still
/// read. The function returns when both have ended.
///
/// # Errors
/// The first error of either direction, which cancels the other one, or the cancellation.
///
/// # Cancel safety
/// Not cancel-safe: bytes that were read and not yet written are lost.
pub async fn copy_bidirectional<A, B>(cx: &Cx, a: &mut A, b: &mut B) -> Result<(u64, u64)>
where
    A: Duplex,
    B: Duplex,
{
    let (from_a, to_a) = a.split();
    let (from_b, to_b) = b.split();
    try_join(cx, |cx| copy_one_way(cx, from_a, to_b), |cx| copy_one_way(cx, from_b, to_a)).await
}

async fn copy_one_way<R, W>(
    cx: &Cx,
    mut reader: R,
    mut writer: W,
) -> std::result::Result<u64, Error>
where
    R: Read,
    W: Write,
{
    let copied = copy(cx, &mut reader, &mut writer).await?;
    writer.shutdown(cx).await?;
    Ok(copied)
}

//! From one stream to another.

use asx_runtime::{Cx, try_join};

use crate::io::traits::CHUNK;
use crate::io::{Duplex, Error, Read, Result, Write};

/// Writes all that comes from `reader` to `writer`, until its end, and flushes after each piece:
/// how many bytes.
///
/// Not cancel-safe: what was read when a cancel comes may be in neither.
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
                // The peer may wait for this before it sends more.
                writer.flush(cx).await?;
                copied += count as u64;
            }
        }
    }
    writer.flush(cx).await?;
    Ok(copied)
}

/// Connects two connections: what comes from each is written to the other. Where one has ended, the
/// other is told ([`Write::shutdown`]), and goes on to be read. It is over when both have ended:
/// how many bytes came from `a`, and from `b`.
///
/// An error of either ends both directions.
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

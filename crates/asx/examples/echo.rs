//! An echo server with a graceful shutdown: when stopped it accepts no more connections, answers
//! requests that were read, and closes idle connections.
//!
//! `cargo run -p asx --example echo`

use asx::io;
use asx::net::{ServeReport, TcpListener, TcpStream, serve};
use asx::prelude::*;

#[asx::main(workers = 2)]
async fn main(cx: &Cx) -> io::Result<()> {
    let (heard, report) = day(cx).await?;
    println!("heard {heard:?}; {} connections served", report.completed);
    Ok(())
}

/// Runs a server and its clients.
pub(crate) async fn day(cx: &Cx) -> io::Result<(Vec<String>, ServeReport)> {
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    cx.scope(async |s| {
        let server = s.task("server").spawn(async move |cx: Cx| {
            serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
        });
        let mut heard = Vec::new();
        let mut clients = Vec::new();
        for word in ["hello", "world"] {
            let mut client = TcpStream::connect(cx, address).await?;
            client.write_all(cx, word.as_bytes()).await?;
            let mut answer = vec![0; word.len()];
            cx.timeout(10.secs(), async |cx| client.read_exact(cx, &mut answer).await).await?;
            heard.push(String::from_utf8_lossy(&answer).into_owned());
            clients.push(client); // idle from now on
        }
        // Notified now, cancelled after 5 s, aborted 5 s later. Here all end when notified.
        s.stop_within(5.secs());
        for client in &mut clients {
            assert_eq!(client.read(cx, &mut [0; 1]).await?, 0, "the end of the stream");
        }
        // A failure of the server is the result of the scope.
        Ok((heard, server.await.unwrap_or_default()))
    })
    .await
}

/// Echoes everything it reads.
async fn echo(cx: Cx, mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        // A read that loses against the stop has taken no data.
        let count = select! {
            count = stream.read(&cx, &mut buffer) => count?,
            told = cx.stopping() => return Ok(told?),
        };
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&cx, &buffer[..count]).await?;
    }
}

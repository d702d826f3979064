//! The program of the README: an echo server that shuts down on Ctrl-C.
//!
//! `cargo run -p asx --example server`

use std::net::SocketAddr;

use asx::net::{TcpListener, TcpStream, serve};
use asx::prelude::*;
use asx::{io, signal};

#[asx::main]
async fn main(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "127.0.0.1:7000").await?;
    cx.scope(async |s| {
        s.task("server").spawn(async move |cx: Cx| serve(&cx, listener, echo).await);
        signal::ctrl_c(cx).await?;
        s.stop_within(5.secs()); // handlers finish; cancelled after 5 s, aborted 5 s later
        Ok(())
    })
    .await // returns when the server and all connections have ended
}

pub(crate) async fn echo(cx: Cx, mut stream: TcpStream, _peer: SocketAddr) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = select! {
            count = stream.read(&cx, &mut buffer) => count?,
            stopping = cx.stopping() => return Ok(stopping?), // the read has taken no bytes
        };
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&cx, &buffer[..count]).await?;
    }
}

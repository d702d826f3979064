//! A chat room. Every guest receives every line, until the room closes.
//!
//! `cargo run -p asx --example chat`

use asx::channel::broadcast::Publisher;
use asx::io::{self, BufReader, Lines};
use asx::net::{TcpListener, TcpStream, serve};
use asx::prelude::*;

#[asx::main(workers = 2)]
async fn main(cx: &Cx) -> io::Result<()> {
    for line in evening(cx).await? {
        println!("{line}");
    }
    Ok(())
}

/// Runs a room with two guests; returns the lines that they receive.
pub(crate) async fn evening(cx: &Cx) -> io::Result<Vec<String>> {
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (room, _) = channel::broadcast(64);
    cx.scope(async |s| {
        s.task("room").spawn(async move |cx: Cx| {
            let enter = move |cx, stream, _peer| guest(cx, stream, room.clone());
            serve(&cx, listener, enter).await.map(drop)
        });
        let mut ada = BufReader::new(TcpStream::connect(cx, address).await?).lines();
        let mut grace = BufReader::new(TcpStream::connect(cx, address).await?).lines();
        let mut heard = vec![say(cx, &mut ada, "Ada").await?, say(cx, &mut grace, "Grace").await?];
        assert_eq!(heard.remove(0), "welcome, Ada");
        say(cx, &mut ada, "is anybody here?").await?;
        heard.extend(grace.next(cx).await?); // the line from Ada
        heard.push(say(cx, &mut grace, "I am").await?);
        s.stop_within(5.secs()); // guests are notified, and the room waits until they have left
        while let Some(line) = grace.next(cx).await? {
            heard.push(line);
        }
        Ok(heard)
    })
    .await
}

/// Sends a line, and receives one.
async fn say(cx: &Cx, guest: &mut Lines<TcpStream>, line: &str) -> io::Result<String> {
    guest.get_mut().write_all(cx, format!("{line}\n").as_bytes()).await?;
    Ok(guest.next(cx).await?.unwrap_or_default())
}

/// Serves one guest. The first line is a name.
async fn guest(cx: Cx, stream: TcpStream, room: Publisher<String>) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let Some(name) = lines.next(&cx).await? else { return Ok(()) };
    let mut news = room.subscribe();
    let mut text = format!("welcome, {name}\n");
    loop {
        lines.get_mut().write_all(&cx, text.as_bytes()).await?;
        text.clear();
        select! {
            said = lines.next(&cx) => match said? {
                Some(line) => drop(room.send(format!("{name}: {line}\n"))),
                None => return Ok(()),
            },
            heard = news.recv(&cx) => text = heard.unwrap_or_default(), // empty after missed lines
            told = cx.stopping() => break told?,
        }
    }
    Ok(lines.get_mut().write_all(&cx, b"the room is closed\n").await?)
}

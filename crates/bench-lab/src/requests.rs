//! A program over a simulated network: clients send a server requests, and get answers.
//!
//! The same on asx, turmoil and madsim (`madsim/`), in the form that suits each. Nothing fails in
//! the network; its delays are those of each simulator as it comes. Turmoil's cost grows with them,
//! so that it also runs with delays as short as it lets them be.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use asx_lab::{Grain, How, check};
use asx_net::{TcpListener, TcpStream, io};
use asx_runtime::{Cx, Scope};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Its name in reports.
pub(crate) const NAME: &str = "requests";
/// Clients, each with a connection of its own.
pub(crate) const CLIENTS: u32 = 2;
/// Requests of each client, one after the other.
pub(crate) const REQUESTS: u64 = 5;

const PORT: u16 = 80;

/// So many runs of it on asx.
pub(crate) fn ours(seed: u64, runs: u64) -> u64 {
    check(program).how(How::Random).grain(Grain::Poll).seed(seed).runs(runs).run().runs
}

async fn program(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, ("127.0.0.1", PORT)).await?;
    cx.scope(async |s: Scope<io::Error>| {
        for client in 0..CLIENTS {
            s.spawn(async move |cx: Cx| ask(&cx, client).await);
        }
        for _ in 0..CLIENTS {
            let (stream, _) = listener.accept(&cx).await?;
            s.spawn(async move |cx: Cx| serve(&cx, stream).await);
        }
        Ok(())
    })
    .await
}

async fn ask(cx: &Cx, client: u32) -> io::Result<()> {
    let mut stream = TcpStream::connect(cx, ("127.0.0.1", PORT)).await?;
    for number in 0..REQUESTS {
        let request = u64::from(client) << 32 | number;
        stream.write_all(cx, &request.to_be_bytes()).await?;
        let mut answer = [0; 8];
        stream.read_exact(cx, &mut answer).await?;
        assert_eq!(u64::from_be_bytes(answer), request + 1);
    }
    Ok(())
}

async fn serve(cx: &Cx, mut stream: TcpStream) -> io::Result<()> {
    for _ in 0..REQUESTS {
        let mut request = [0; 8];
        stream.read_exact(cx, &mut request).await?;
        let answer = u64::from_be_bytes(request) + 1;
        stream.write_all(cx, &answer.to_be_bytes()).await?;
    }
    Ok(())
}

/// So many runs of it on turmoil, as it comes or with `short` delays.
pub(crate) fn turmoil(seed: u64, runs: u64, short: bool) -> u64 {
    for run in 0..runs {
        let mut builder = turmoil::Builder::new();
        builder.rng_seed(seed.wrapping_add(run));
        if short {
            // A tick.
            builder.max_message_latency(Duration::from_millis(1));
        }
        let answered = Rc::new(RefCell::new(0));
        let mut sim = builder.build();
        sim.host("server", || async {
            let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            let listener = turmoil::net::TcpListener::bind((any, PORT)).await?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(turmoil_serve(stream));
            }
        });
        for client in 0..CLIENTS {
            let answered = answered.clone();
            sim.client(format!("client-{client}"), async move {
                turmoil_ask(client, &answered).await?;
                Ok(())
            });
        }
        if let Err(error) = sim.run() {
            panic!("turmoil: {error}");
        }
        assert_eq!(*answered.borrow(), u64::from(CLIENTS) * REQUESTS);
    }
    runs
}

async fn turmoil_ask(client: u32, answered: &RefCell<u64>) -> std::io::Result<()> {
    let mut stream = turmoil::net::TcpStream::connect(("server", PORT)).await?;
    for number in 0..REQUESTS {
        let request = u64::from(client) << 32 | number;
        stream.write_all(&request.to_be_bytes()).await?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).await?;
        assert_eq!(u64::from_be_bytes(answer), request + 1);
        *answered.borrow_mut() += 1;
    }
    Ok(())
}

async fn turmoil_serve(mut stream: turmoil::net::TcpStream) -> std::io::Result<()> {
    for _ in 0..REQUESTS {
        let mut request = [0; 8];
        stream.read_exact(&mut request).await?;
        let answer = u64::from_be_bytes(request) + 1;
        stream.write_all(&answer.to_be_bytes()).await?;
    }
    Ok(())
}

//! What services do about a network that breaks.

use asx_net::{Cx, TcpListener, TcpStream, io};
use asx_runtime::Scope;
use asx_runtime::time::DurationExt as _;

use crate::{AT, PATIENCE, Shared, accept, connect, lock, read_exact, write_all};

mod found {
    use crate::planted;

    planted! {
        order_doubled: Panic Fault;
        reconnect_storm: Panic Order;
        accept_ends: Panic Fault exact_time;
        lease_outlived: Panic Fault exact_time;
        old_write_wins: Panic Fault;
        refused_is_empty: Panic Fault;
    }
}

/// The answer is lost, the client asks again, and the order is carried out twice.
async fn order_doubled<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    let orders: Shared<Vec<u8>> = Shared::default();
    let book = orders.clone();
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            while let Some(mut stream) = accept(&cx, &listener).await {
                let mut order = [0; 1];
                if read_exact(&cx, &mut stream, &mut order).await.is_err() {
                    continue;
                }
                let is_known = lock(&book).contains(&order[0]);
                if BUG || !is_known {
                    lock(&book).push(order[0]);
                }
                let _ = write_all(&cx, &mut stream, b"k").await;
            }
            Ok(())
        });
        for _ in 0..3 {
            let Ok(mut stream) = connect(&cx).await else { continue };
            let mut answer = [0; 1];
            let sent = write_all(&cx, &mut stream, &[7]).await;
            if sent.is_ok() && read_exact(&cx, &mut stream, &mut answer).await.is_ok() {
                break;
            }
        }
        // Whatever is late has come.
        cx.sleep(1000.secs()).await?;
        assert!(lock(&orders).len() < 2, "the order was carried out twice");
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A server that is not there yet is asked again and again, without a pause.
async fn reconnect_storm<const BUG: bool>(cx: Cx) -> io::Result<()> {
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            cx.sleep(1.secs()).await?;
            let listener = TcpListener::bind(&cx, AT).await?;
            while accept(&cx, &listener).await.is_some() {}
            Ok(())
        });
        let mut pause = 10.millis();
        let mut tries = 0;
        while connect(&cx).await.is_err() {
            tries += 1;
            assert!(tries < 30, "a storm");
            if !BUG {
                cx.sleep(pause).await?;
                pause = (2 * pause).min(10.secs());
            }
        }
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// One accept that fails ends the server.
async fn accept_ends<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    let served: Shared<bool> = Shared::default();
    let done = served.clone();
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let mut count = 0;
            loop {
                match listener.accept(&cx).await {
                    Ok(_) => count += 1,
                    Err(io::Error::Io(_)) if !BUG => cx.sleep(1.millis()).await?,
                    Err(_) => break,
                }
                *lock(&done) = count > 0;
            }
            Ok(())
        });
        let mut is_connected = false;
        for _ in 0..3 {
            is_connected |= connect(&cx).await.is_ok();
        }
        cx.sleep(100.secs()).await?;
        assert!(*lock(&served) || !is_connected, "nobody serves");
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// Two clients and a lease of ten seconds: one whose answer comes late believes that it has it.
async fn lease_outlived<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    let holders: Shared<u32> = Shared::default();
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let mut until = cx.now();
            cx.scope(async |s: Scope<io::Error>| {
                while let Some(mut stream) = accept(&cx, &listener).await {
                    let is_free = cx.now() >= until;
                    if is_free {
                        until = cx.now() + 10.secs();
                    }
                    s.spawn(async move |cx: Cx| {
                        let _ = write_all(&cx, &mut stream, &[u8::from(is_free)]).await;
                        // Until the client has its answer.
                        let _ = cx
                            .timeout(100.secs(), async |cx| stream.read(cx, &mut [0]).await)
                            .await;
                        Ok(())
                    });
                }
                Ok(())
            })
            .await
        });
        for _ in 0..2 {
            let holders = holders.clone();
            s.spawn(async move |cx: Cx| {
                let asked = cx.now();
                let Ok(mut stream) = connect(&cx).await else { return Ok(()) };
                let mut answer = [0; 1];
                let got = cx.timeout(90.secs(), async |cx| stream.read(cx, &mut answer).await);
                let is_granted = matches!(got.await, Ok(1)) && answer[0] == 1;
                let is_in_time = cx.now() < asked + 5.secs();
                if is_granted && (BUG || is_in_time) {
                    *lock(&holders) += 1;
                    assert_eq!(*lock(&holders), 1, "two have the lease");
                    // What it does with it takes less than the rest of the lease.
                    cx.sleep(4.secs()).await?;
                    *lock(&holders) -= 1;
                }
                Ok(())
            });
            cx.sleep(58.secs()).await?;
        }
        cx.sleep(200.secs()).await?;
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A write that was given up on arrives after the one that was made in its place.
async fn old_write_wins<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    let stored: Shared<u8> = Shared::default();
    let store = stored.clone();
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            cx.scope(async |s: Scope<io::Error>| {
                while let Some(mut stream) = accept(&cx, &listener).await {
                    let store = store.clone();
                    s.spawn(async move |cx: Cx| {
                        let mut version = [0; 1];
                        let read = async |cx| stream.read_exact(cx, &mut version).await;
                        if cx.timeout(200.secs(), read).await.is_ok() {
                            let known = *lock(&store);
                            *lock(&store) = if BUG { version[0] } else { version[0].max(known) };
                            let _ = write_all(&cx, &mut stream, b"k").await;
                        }
                        Ok(())
                    });
                }
                Ok(())
            })
            .await
        });
        let mut answered = 0;
        let mut kept: Vec<TcpStream> = Vec::new();
        for version in 1..=2 {
            let Ok(mut stream) = connect(&cx).await else { continue };
            let mut answer = [0; 1];
            let sent = write_all(&cx, &mut stream, &[version]).await;
            if sent.is_ok() && read_exact(&cx, &mut stream, &mut answer).await.is_ok() {
                answered = version;
            }
            kept.push(stream);
        }
        cx.sleep(300.secs()).await?;
        assert!(*lock(&stored) >= answered, "what was stored is gone");
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A store that cannot be reached is taken for an empty one.
async fn refused_is_empty<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, AT).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            while let Some(mut stream) = accept(&cx, &listener).await {
                let _ = write_all(&cx, &mut stream, &[3]).await;
                let _ = cx.timeout(PATIENCE, async |cx| stream.read(cx, &mut [0]).await).await;
            }
            Ok(())
        });
        let mut count = [0; 1];
        let read = match connect(&cx).await {
            Ok(mut stream) => read_exact(&cx, &mut stream, &mut count).await,
            Err(error) => Err(error),
        };
        server.cancel("enough");
        if BUG || read.is_ok() {
            assert_eq!(count, [3], "nothing is stored");
        }
        Ok(())
    })
    .await
}

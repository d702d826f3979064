//! What programs take for granted of datagrams and names.

use asx_net::{Cx, UdpSocket, io, lookup_host};
use asx_runtime::Scope;
use asx_runtime::time::DurationExt as _;

use crate::{Shared, lock};

mod found {
    use crate::planted;

    planted! {
        last_comes_last: Panic Fault;
        counted_twice: Panic Fault;
        asked_once: Deadlock Fault;
        lookup_is_there: Panic Fault;
    }
}

/// Two sockets: the first sends to the second.
async fn sockets(cx: &Cx) -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind(cx, "127.0.0.1:53").await?;
    let sender = UdpSocket::bind(cx, "127.0.0.1:0").await?;
    sender.connect(cx, receiver.local_addr()?).await?;
    Ok((sender, receiver))
}

/// The value that came last is taken for the one that was sent last.
async fn last_comes_last<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let (sender, receiver) = sockets(&cx).await?;
    for number in 1..=3 {
        sender.send(&cx, &[number]).await?;
    }
    let mut latest = 0;
    let mut seen = Vec::new();
    let mut buffer = [0];
    while let Ok(1) = cx.timeout(100.secs(), async |cx| receiver.recv(cx, &mut buffer).await).await
    {
        seen.push(buffer[0]);
        latest = if BUG { buffer[0] } else { latest.max(buffer[0]) };
    }
    assert_eq!(Some(latest), seen.iter().max().copied().or(Some(0)), "an old value");
    Ok(())
}

/// A datagram that comes twice counts twice.
async fn counted_twice<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let (sender, receiver) = sockets(&cx).await?;
    let mut sum = 0;
    for (number, amount) in [(0, 5), (1, 7)] {
        sender.send(&cx, &[number, amount]).await?;
    }
    let mut seen = [false; 2];
    let mut buffer = [0; 2];
    while let Ok(2) = cx.timeout(100.secs(), async |cx| receiver.recv(cx, &mut buffer).await).await
    {
        let [number, amount] = buffer;
        let is_new = !std::mem::replace(&mut seen[usize::from(number)], true);
        if BUG || is_new {
            sum += u32::from(amount);
        }
    }
    assert!(sum <= 12, "{sum} of 12");
    Ok(())
}

/// A question that is lost is never answered.
async fn asked_once<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let (client, server) = sockets(&cx).await?;
    cx.scope(async |s: Scope<io::Error>| {
        let server = s.spawn(async move |cx: Cx| {
            let mut buffer = [0; 8];
            while let Ok((count, from)) = server.recv_from(&cx, &mut buffer).await {
                server.send_to(&cx, &buffer[..count], from).await?;
            }
            Ok(())
        });
        let mut answer = [0; 8];
        let mut tries = 0;
        loop {
            client.send(&cx, b"who?").await?;
            tries += 1;
            let asked = match BUG {
                true => client.recv(&cx, &mut answer).await,
                false => cx.timeout(2.secs(), async |cx| client.recv(cx, &mut answer).await).await,
            };
            // Nothing that may go wrong takes longer.
            if asked.is_ok() || tries > 200 {
                break;
            }
        }
        assert_eq!(&answer[..4], b"who?");
        server.cancel("enough");
        Ok(())
    })
    .await
}

/// A lookup that fails for the time being is taken for one that never does.
async fn lookup_is_there<const BUG: bool>(cx: Cx) -> io::Result<()> {
    let known: Shared<Vec<String>> = Shared::default();
    let mut found = lookup_host(&cx, "localhost:80").await;
    if !BUG && found.is_err() {
        cx.sleep(1.secs()).await?;
        found = lookup_host(&cx, "localhost:80").await;
    }
    let addresses = found.expect("localhost is always there");
    lock(&known).extend(addresses.iter().map(ToString::to_string));
    assert_eq!(lock(&known)[0], "127.0.0.1:80");
    Ok(())
}

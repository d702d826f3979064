//! Name lookups on the native host.

use crate::common;

use asx_net::{Cx, TcpListener, TcpStream, lookup_host, lookup_stats};
use common::on_each;

#[test]
fn localhost_resolves_to_loopback_addresses() {
    on_each(async |cx| {
        let addresses = lookup_host(&cx, "localhost:80").await?;
        assert!(!addresses.is_empty());
        for address in addresses {
            assert!(address.ip().is_loopback() && address.port() == 80, "{address}");
        }
        Ok(())
    });
}

#[test]
fn name_can_be_bound_and_connected_to() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "localhost:0").await?;
        let port = listener.local_addr()?.port();
        let stream = TcpStream::connect(&cx, ("localhost", port)).await?;
        assert_eq!(stream.peer_addr()?.port(), port);
        Ok(())
    });
}

#[test]
fn numeric_addresses_need_no_lookup() {
    on_each(async |cx: Cx| {
        let before = lookup_stats().abandoned;
        assert_eq!(lookup_host(&cx, "127.0.0.1:7").await?, ["127.0.0.1:7".parse().unwrap()]);
        assert_eq!(lookup_host(&cx, ("::1", 7)).await?, ["[::1]:7".parse().unwrap()]);
        assert_eq!(lookup_stats().abandoned, before);
        Ok(())
    });
}

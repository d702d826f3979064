//! The names of hosts, and which addresses are here.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[cfg(not(target_family = "wasm"))]
use asx_runtime::net::localhost;

/// The hosts that are known, besides `localhost`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    hosts: BTreeMap<String, Vec<IpAddr>>,
}

impl Names {
    /// Adds a host: its address is one that can be bound.
    pub(crate) fn add(&mut self, host: &str, address: IpAddr) {
        self.hosts.entry(host.to_ascii_lowercase()).or_default().push(address);
    }

    /// Returns the addresses of a host.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn lookup(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        if let Some(addresses) = localhost(host, port) {
            return Ok(addresses);
        }
        let host = host.to_ascii_lowercase();
        let Some(addresses) = self.hosts.get(&host) else {
            // Of no kind that a program could tell, as with the resolver of an operating system.
            let text = format!("the lab knows no host of the name `{host}`");
            return Err(std::io::Error::other(text));
        };
        Ok(addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect())
    }

    /// Whether an address is one of here.
    pub(super) fn is_local(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.hosts.values().flatten().any(|known| *known == ip)
    }
}

/// The address at which a socket here is seen by one that talks to `to`.
pub(super) fn seen_from(to: IpAddr) -> IpAddr {
    match to {
        IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        other => other,
    }
}

/// The address that is meant: any is the one of this host.
pub(super) fn meant(to: SocketAddr) -> SocketAddr {
    match to.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), to.port()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), to.port()),
        _ => to,
    }
}

/// An address as a socket of IPv6 shows it.
pub(super) fn as_v6(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// An address without the form that a socket of IPv6 shows it in.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

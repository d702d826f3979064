//! Who is bound where.
//!
//! A port that is up to the system is drawn from the name of its socket, which is the same in every
//! run: so that two tasks that bind or connect get the same ports in whichever order they do.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use asx_kernel::rng::mix64;
use asx_runtime::footprint;

/// What a port is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// The first port that is up to the system, and how many there are.
const FIRST: u16 = 32_768;
const COUNT: u16 = 28_232;

/// What stands for a port in footprints, and for a name in the file system.
const PORT: u64 = 0x706F_7274_7320_6F66;
const PATH: u64 = 0x7061_7468_7320_6F66;

/// Who is bound to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) socket: usize,
    pub(super) ip: IpAddr,
    pub(super) listens: bool,
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
    pub(super) only_v6: bool,
}

impl Bound {
    /// Whether the two may not be bound to the same port.
    fn conflicts(&self, other: &Bound) -> bool {
        let both_reuse_port = self.reuse_port && other.reuse_port;
        let one_listens = self.listens || other.listens;
        let both_reuse_address = self.reuse_address && other.reuse_address && !one_listens;
        let overlaps = self.ip == other.ip || self.covers(other.ip) || other.covers(self.ip);
        overlaps && !both_reuse_port && !both_reuse_address
    }

    /// Whether it is bound to any address, and this is one.
    fn covers(&self, ip: IpAddr) -> bool {
        self.ip.is_unspecified() && (self.ip.is_ipv4() == ip.is_ipv4() || self.is_dual())
    }

    /// Whether it takes IPv4 as well, being of IPv6.
    fn is_dual(&self) -> bool {
        self.ip.is_ipv6() && !self.only_v6
    }

    /// How well it fits what is sent to an address; the more, the better.
    fn fits(&self, ip: IpAddr) -> u8 {
        match () {
            () if self.ip == ip => 3,
            () if !self.covers(ip) => 0,
            () if self.ip.is_ipv4() == ip.is_ipv4() => 2,
            () => 1,
        }
    }
}

/// All ports and names.
#[derive(Debug, Default)]
pub(super) struct Ports {
    bound: BTreeMap<(Protocol, u16), Vec<Bound>>,
    /// By name: who is there, while it is open.
    paths: BTreeMap<PathBuf, Option<usize>>,
}

/// What stands for a port in footprints.
fn object(protocol: Protocol, port: u16) -> u64 {
    mix64(PORT ^ (u64::from(port) << 8) ^ protocol as u64)
}

/// What stands for a name in footprints.
fn object_of(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(PATH, |hash, byte| mix64(hash ^ u64::from(*byte)))
}

/// Whether a name is not one of the file system.
fn is_abstract(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().first() == Some(&0)
}

impl Ports {
    pub(super) fn clear(&mut self) {
        self.bound.clear();
        self.paths.clear();
    }

    /// Binds a socket to a port, of which 0 is one that is drawn from its name: which.
    pub(super) fn bind(
        &mut self,
        protocol: Protocol,
        port: u16,
        bound: Bound,
        name: u64,
    ) -> io::Result<u16> {
        if port != 0 {
            return self.bind_to(protocol, port, bound).map(|()| port);
        }
        let drawn = (mix64(name) % u64::from(COUNT)) as u16;
        let mut ports = (0..COUNT).map(|more| FIRST + (drawn + more) % COUNT);
        let free = ports.find(|port| self.bind_to(protocol, *port, bound).is_ok());
        free.ok_or_else(|| io::ErrorKind::AddrInUse.into())
    }

    fn bind_to(&mut self, protocol: Protocol, port: u16, bound: Bound) -> io::Result<()> {
        footprint::touch(object(protocol, port), true);
        let there = self.bound.entry((protocol, port)).or_default();
        if there.iter().any(|other| other.conflicts(&bound)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        there.push(bound);
        Ok(())
    }

    /// A socket is closed.
    pub(super) fn release(&mut self, protocol: Protocol, port: u16, socket: usize) {
        if let Some(there) = self.bound.get_mut(&(protocol, port)) {
            let before = there.len();
            there.retain(|bound| bound.socket != socket);
            if there.len() != before {
                footprint::touch(object(protocol, port), true);
            }
        }
    }

    /// Who listens at an address. Of several that share it, the one that `client` draws.
    pub(super) fn listener(&self, to: SocketAddr, client: u64) -> Option<usize> {
        let best = self.best(Protocol::Tcp, to, |bound| bound.listens);
        let at = mix64(client) % (best.len() as u64).max(1);
        best.get(at as usize).copied()
    }

    /// Who gets what is sent to an address. Of several that share it, the last.
    pub(super) fn receiver(&self, to: SocketAddr) -> Option<usize> {
        self.best(Protocol::Udp, to, |_| true).last().copied()
    }

    fn best(
        &self,
        protocol: Protocol,
        to: SocketAddr,
        counts: impl Fn(&Bound) -> bool,
    ) -> Vec<usize> {
        footprint::touch(object(protocol, to.port()), false);
        let all = self.bound.get(&(protocol, to.port())).map_or(&[][..], Vec::as_slice);
        let fits = |bound: &&Bound| counts(bound) && bound.fits(to.ip()) > 0;
        let best = all.iter().filter(fits).map(|bound| bound.fits(to.ip())).max().unwrap_or(0);
        let chosen = all.iter().filter(fits).filter(|bound| bound.fits(to.ip()) == best);
        chosen.map(|bound| bound.socket).collect()
    }

    /// Gives a socket a name in the file system. As there, it stays when the socket is closed; and
    /// for the rest of the run, since nobody can remove it.
    pub(super) fn bind_path(&mut self, path: &Path, socket: usize) -> io::Result<()> {
        footprint::touch(object_of(path), true);
        match self.paths.get(path) {
            Some(_) => Err(io::ErrorKind::AddrInUse.into()),
            None => {
                self.paths.insert(path.to_path_buf(), Some(socket));
                Ok(())
            }
        }
    }

    /// The socket at a name is closed; the name stays.
    pub(super) fn release_path(&mut self, path: &Path, socket: usize) {
        if let Some(there) = self.paths.get_mut(path).filter(|there| **there == Some(socket)) {
            footprint::touch(object_of(path), true);
            *there = None;
            // One that is not in the file system is free again.
            if is_abstract(path) {
                self.paths.remove(path);
            }
        }
    }

    /// Who is at a name.
    ///
    /// # Errors
    /// `NotFound`, or `ConnectionRefused` if it is closed.
    pub(super) fn at_path(&self, path: &Path) -> io::Result<usize> {
        footprint::touch(object_of(path), false);
        match self.paths.get(path) {
            Some(Some(socket)) => Ok(*socket),
            Some(None) => Err(io::ErrorKind::ConnectionRefused.into()),
            None if is_abstract(path) => Err(io::ErrorKind::ConnectionRefused.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

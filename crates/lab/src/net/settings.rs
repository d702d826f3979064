//! The settings of a socket: kept, and told as the operating system tells them.

use std::io;
use std::time::Duration;

use asx_runtime::net::{OptionName, SocketOption};

use super::ports::Protocol;

/// Bytes that wait to go out, or to be read, unless that is set.
const BUFFER: usize = 64 * 1024;

/// The same for datagrams of unix sockets, of which none may be longer.
pub(super) const UNIX_DATAGRAMS: usize = 212_992;

/// The protocol of a socket has no such setting.
#[cfg(target_os = "linux")]
const ENOPROTOOPT: i32 = 92;
#[cfg(not(target_os = "linux"))]
const ENOPROTOOPT: i32 = 42;

/// The family of a socket has no such settings.
#[cfg(target_os = "linux")]
const EOPNOTSUPP: i32 = 95;
#[cfg(not(target_os = "linux"))]
const EOPNOTSUPP: i32 = 102;

/// The least of each that can be set: what Linux takes.
const LEAST_RECV: usize = 2304;
const LEAST_SEND: usize = 4608;

/// The settings of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    nodelay: bool,
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
    ttl: u32,
    pub(super) linger: Option<Duration>,
    pub(super) recv_buffer: usize,
    pub(super) send_buffer: usize,
    keepalive: bool,
    pub(super) broadcast: bool,
    pub(super) only_v6: bool,
}

impl Settings {
    pub(super) fn new(options: &[SocketOption]) -> io::Result<Settings> {
        let mut settings = Settings {
            nodelay: false,
            reuse_address: false,
            reuse_port: false,
            ttl: 64,
            linger: None,
            recv_buffer: BUFFER,
            send_buffer: BUFFER,
            keepalive: false,
            broadcast: false,
            only_v6: false,
        };
        options.iter().try_for_each(|option| settings.set(*option))?;
        Ok(settings)
    }

    /// Those of a unix socket, which has none of the internet.
    pub(super) fn of_unix(options: &[SocketOption]) -> io::Result<Settings> {
        let is_of_inet = |option: &SocketOption| {
            use SocketOption::{NoDelay, OnlyV6, Ttl};
            matches!(option, NoDelay(_) | OnlyV6(_) | Ttl(_))
        };
        match options.iter().any(is_of_inet) {
            true => Err(io::Error::from_raw_os_error(EOPNOTSUPP)),
            false => Settings::new(options),
        }
    }

    /// Those of a socket for an address of the internet, whose protocol has them.
    pub(super) fn of_inet(
        options: &[SocketOption],
        protocol: Protocol,
        is_v6: bool,
    ) -> io::Result<Settings> {
        for option in options {
            let is_known = match option {
                SocketOption::NoDelay(_) => protocol == Protocol::Tcp,
                SocketOption::OnlyV6(_) => is_v6,
                _ => true,
            };
            if !is_known {
                return Err(io::Error::from_raw_os_error(ENOPROTOOPT));
            }
        }
        Settings::new(options)
    }

    /// Sets one. Buffers become twice as large as asked for, as on Linux.
    pub(super) fn set(&mut self, option: SocketOption) -> io::Result<()> {
        option.check()?;
        match option {
            SocketOption::NoDelay(on) => self.nodelay = on,
            SocketOption::ReuseAddress(on) => self.reuse_address = on,
            SocketOption::ReusePort(on) => self.reuse_port = on,
            SocketOption::Ttl(hops) => self.ttl = hops,
            SocketOption::Linger(time) => {
                self.linger = time.map(SocketOption::whole_seconds);
            }
            SocketOption::RecvBuffer(bytes) => {
                self.recv_buffer = bytes.saturating_mul(2).max(LEAST_RECV);
            }
            SocketOption::SendBuffer(bytes) => {
                self.send_buffer = bytes.saturating_mul(2).max(LEAST_SEND);
            }
            SocketOption::KeepAlive(on) => self.keepalive = on,
            SocketOption::Broadcast(on) => self.broadcast = on,
            SocketOption::OnlyV6(on) => self.only_v6 = on,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }

    pub(super) fn get(&self, name: OptionName) -> io::Result<SocketOption> {
        Ok(match name {
            OptionName::NoDelay => SocketOption::NoDelay(self.nodelay),
            OptionName::ReuseAddress => SocketOption::ReuseAddress(self.reuse_address),
            OptionName::ReusePort => SocketOption::ReusePort(self.reuse_port),
            OptionName::Ttl => SocketOption::Ttl(self.ttl),
            OptionName::Linger => SocketOption::Linger(self.linger),
            OptionName::RecvBuffer => SocketOption::RecvBuffer(self.recv_buffer),
            OptionName::SendBuffer => SocketOption::SendBuffer(self.send_buffer),
            OptionName::KeepAlive => SocketOption::KeepAlive(self.keepalive),
            OptionName::Broadcast => SocketOption::Broadcast(self.broadcast),
            OptionName::OnlyV6 => SocketOption::OnlyV6(self.only_v6),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }
}

//! The settings of a socket: kept, and told as the operating system tells them.

use std::io;
use std::time::Duration;

use asx_runtime::net::{OptionName, SocketOption};

/// Bytes that wait to go out, or to be read, unless that is set.
const BUFFER: usize = 64 * 1024;

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
    broadcast: bool,
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

    /// Sets one. Buffers become twice as large as asked for, and a time to linger is cut to whole
    /// seconds, as on Linux.
    pub(super) fn set(&mut self, option: SocketOption) -> io::Result<()> {
        option.check()?;
        match option {
            SocketOption::NoDelay(on) => self.nodelay = on,
            SocketOption::ReuseAddress(on) => self.reuse_address = on,
            SocketOption::ReusePort(on) => self.reuse_port = on,
            SocketOption::Ttl(hops) => self.ttl = hops,
            SocketOption::Linger(time) => {
                self.linger = time.map(|time| Duration::from_secs(time.as_secs()));
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

//! Typed getters of socket options, and conversions of sockets from and to the operating system.

use std::io::{Error as IoError, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{OptionName, OwnedHandle, Socket, SocketKind, SocketOption};

use crate::lookup::network;

/// Takes over a socket that was created elsewhere.
pub(crate) fn adopt(
    cx: &Cx,
    kind: SocketKind,
    socket: impl Into<OwnedHandle>,
) -> Result<Arc<dyn Socket>> {
    Ok(cx.adopt_socket(network(cx)?.adopt(kind, socket.into())?))
}

/// Duplicates the socket of the operating system.
pub(crate) fn duplicate(socket: &Arc<dyn Socket>) -> Result<OwnedHandle> {
    let simulated = || {
        let text = "the socket is simulated and has no handle of the operating system";
        IoError::new(ErrorKind::Unsupported, text)
    };
    socket.handle().ok_or_else(simulated)?.try_clone_to_owned()
}

pub(crate) fn nodelay(socket: &Arc<dyn Socket>) -> Result<bool> {
    match socket.option(OptionName::NoDelay)? {
        SocketOption::NoDelay(on) => Ok(on),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn ttl(socket: &Arc<dyn Socket>) -> Result<u32> {
    match socket.option(OptionName::Ttl)? {
        SocketOption::Ttl(hops) => Ok(hops),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn linger(socket: &Arc<dyn Socket>) -> Result<Option<Duration>> {
    match socket.option(OptionName::Linger)? {
        SocketOption::Linger(time) => Ok(time),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn keepalive(socket: &Arc<dyn Socket>) -> Result<bool> {
    match socket.option(OptionName::KeepAlive)? {
        SocketOption::KeepAlive(on) => Ok(on),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn recv_buffer(socket: &Arc<dyn Socket>) -> Result<usize> {
    match socket.option(OptionName::RecvBuffer)? {
        SocketOption::RecvBuffer(bytes) => Ok(bytes),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn send_buffer(socket: &Arc<dyn Socket>) -> Result<usize> {
    match socket.option(OptionName::SendBuffer)? {
        SocketOption::SendBuffer(bytes) => Ok(bytes),
        other => Err(mismatch(other)),
    }
}

pub(crate) fn broadcast(socket: &Arc<dyn Socket>) -> Result<bool> {
    match socket.option(OptionName::Broadcast)? {
        SocketOption::Broadcast(on) => Ok(on),
        other => Err(mismatch(other)),
    }
}

/// The error for a host that returns another option than the requested one.
#[cold]
fn mismatch(option: SocketOption) -> IoError {
    IoError::other(format!("the host returned {option:?} for another socket option"))
}

//! Stands in for `unix.rs` where the operating system has no unix sockets: all calls are refused.

use std::io;
use std::path::Path;
use std::sync::Arc;

use asx_runtime::net::{Address, Socket};
use socket2::SockAddr;

use super::unsupported;
use crate::shared::Shared;

type Refused = io::Result<Arc<dyn Socket>>;

pub(super) fn name(_path: Option<&Path>) -> io::Result<SockAddr> {
    Err(unsupported())
}

pub(super) fn listener(_: &Shared, _: socket2::Socket) -> Refused {
    Err(unsupported())
}

pub(super) fn stream(_: &Shared, _: socket2::Socket, _to: Option<&Address>) -> Refused {
    Err(unsupported())
}

pub(super) fn datagrams(_: &Shared, _: socket2::Socket) -> Refused {
    Err(unsupported())
}

pub(super) fn unbound_datagrams(_: &Shared) -> Refused {
    Err(unsupported())
}

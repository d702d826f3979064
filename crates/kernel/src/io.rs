//! The vocabulary of socket events in a journal. The kernel has no laws for sockets.

named_enum! {
    /// The way a socket was opened.
    pub enum Opening {
        /// It listens for connections.
        Listen => "listen",
        /// It connects to a peer.
        Connect => "connect",
        /// It was accepted from a listener.
        Accept => "accept",
        /// It receives and sends datagrams.
        Bind => "bind",
        /// It was created elsewhere, or as one of a pair.
        Adopt => "adopt",
    }
}

named_enum! {
    /// A direction of transfer. Accepting counts as reading, connecting as writing.
    pub enum Way {
        /// From the peer.
        Read => "read",
        /// To the peer.
        Write => "write",
        /// Both.
        Both => "both",
    }
}

named_enum! {
    /// An operation on a socket.
    pub enum IoOp {
        /// Open a listener.
        Listen => "listen",
        /// Open a datagram socket.
        Bind => "bind",
        /// Connect to a peer.
        Connect => "connect",
        /// Accept a connection.
        Accept => "accept",
        /// Read bytes, or a datagram of the peer.
        Read => "read",
        /// Read bytes or a datagram without consuming them.
        Peek => "peek",
        /// Write bytes, or a datagram to the peer.
        Write => "write",
        /// Receive a datagram and its source address.
        Receive => "receive",
        /// Send a datagram to an address.
        Send => "send",
        /// Shut down a direction.
        Shutdown => "shutdown",
    }
}

named_enum! {
    /// The reason why an operation on a socket failed. Finer distinctions of an operating system
    /// are `Other`.
    pub enum IoFailure {
        /// No socket listens at the address.
        ConnectionRefused => "connection_refused",
        /// The peer reset the connection.
        ConnectionReset => "connection_reset",
        /// The connection was aborted.
        ConnectionAborted => "connection_aborted",
        /// The socket is not connected.
        NotConnected => "not_connected",
        /// The direction to the peer is closed.
        BrokenPipe => "broken_pipe",
        /// The address is in use.
        AddrInUse => "addr_in_use",
        /// The address does not belong to this host.
        AddrNotAvailable => "addr_not_available",
        /// The name does not exist.
        NotFound => "not_found",
        /// The operation is not permitted.
        PermissionDenied => "permission_denied",
        /// The peer does not respond.
        TimedOut => "timed_out",
        /// The host is unreachable.
        HostUnreachable => "host_unreachable",
        /// The network is unreachable.
        NetworkUnreachable => "network_unreachable",
        /// Out of memory.
        OutOfMemory => "out_of_memory",
        /// An argument is invalid.
        InvalidInput => "invalid_input",
        /// The received data is invalid.
        InvalidData => "invalid_data",
        /// The host does not support the operation.
        Unsupported => "unsupported",
        /// Any other reason, for example a lack of file descriptors.
        Other => "other",
    }
}

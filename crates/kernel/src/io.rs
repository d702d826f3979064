//! What is said of sockets in a journal: words alone. The kernel has no law of them.

named_enum! {
    /// How a socket came to be.
    pub enum Opening {
        /// It listens for connections.
        Listen => "listen",
        /// It connects to a peer.
        Connect => "connect",
        /// A listener took a connection.
        Accept => "accept",
        /// It takes and sends datagrams.
        Bind => "bind",
        /// It was made elsewhere, or as one of a pair.
        Adopt => "adopt",
    }
}

named_enum! {
    /// Which way bytes move. To accept is to read, to connect is to write.
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
    /// What was done with a socket.
    pub enum IoOp {
        /// To make one that listens.
        Listen => "listen",
        /// To make one for datagrams.
        Bind => "bind",
        /// To connect it to a peer.
        Connect => "connect",
        /// To take a connection.
        Accept => "accept",
        /// To take bytes, or a datagram of its peer.
        Read => "read",
        /// To look at bytes, or a datagram, and leave them there.
        Peek => "peek",
        /// To give bytes, or a datagram to its peer.
        Write => "write",
        /// To take a datagram and where it comes from.
        Receive => "receive",
        /// To send a datagram somewhere.
        Send => "send",
        /// To end a direction.
        Shutdown => "shutdown",
    }
}

named_enum! {
    /// Why an operation on a socket failed. What an operating system tells more finely is `Other`.
    pub enum IoFailure {
        /// Nobody listens there.
        ConnectionRefused => "connection_refused",
        /// The peer has reset the connection.
        ConnectionReset => "connection_reset",
        /// The connection was given up.
        ConnectionAborted => "connection_aborted",
        /// There is no connection.
        NotConnected => "not_connected",
        /// The direction to the peer is over.
        BrokenPipe => "broken_pipe",
        /// Somebody else is there.
        AddrInUse => "addr_in_use",
        /// The address is not of this host.
        AddrNotAvailable => "addr_not_available",
        /// There is no such name.
        NotFound => "not_found",
        /// It is forbidden.
        PermissionDenied => "permission_denied",
        /// The peer does not answer.
        TimedOut => "timed_out",
        /// There is no way to the host.
        HostUnreachable => "host_unreachable",
        /// There is no way to the network.
        NetworkUnreachable => "network_unreachable",
        /// There is no memory for it.
        OutOfMemory => "out_of_memory",
        /// What was asked for makes no sense.
        InvalidInput => "invalid_input",
        /// What came makes no sense.
        InvalidData => "invalid_data",
        /// The host does not know how.
        Unsupported => "unsupported",
        /// Anything else: a lack of descriptors, for example.
        Other => "other",
    }
}

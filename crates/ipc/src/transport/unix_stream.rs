//! A connected pair of stream sockets of the unix domain.

use super::framed::{Socket, duplex};
use super::{Transport, always};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use slowpath_tables::OffCpuReason;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "unix-stream",
    title: "Unix stream socket",
    documentation: "A SOCK_STREAM socketpair (unix(7)): what most local services, X11 and Wayland use below their protocols.",
    waits: OffCpuReason::PipeOrSocket,
    check: always,
    connect: |largest| {
        let (client, server) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        duplex(client, server, Socket, largest)
    },
};

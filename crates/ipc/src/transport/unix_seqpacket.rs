//! A connected pair of sequenced-packet sockets of the unix domain.

use super::framed::{Socket, duplex};
use super::{Transport, always};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use slowpath_tables::OffCpuReason;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "unix-seqpacket",
    title: "Unix seqpacket socket",
    documentation: "A SOCK_SEQPACKET socketpair (unix(7)): message borders kept by the kernel. What Chromium's and Android's input \
                    channels use.",
    waits: OffCpuReason::PipeOrSocket,
    check: always,
    connect: |largest| {
        let (client, server) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        duplex(client, server, Socket, largest)
    },
};

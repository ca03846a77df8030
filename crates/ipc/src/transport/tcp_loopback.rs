//! A TCP connection over the loopback interface.

use super::framed::{Socket, duplex};
use super::{Pair, Transport, tried};
use slowpath_tables::OffCpuReason;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "tcp-loopback",
    title: "TCP over loopback",
    documentation: "A TCP connection to 127.0.0.1 with TCP_NODELAY (tcp(7)): the whole network stack and its softirq, without a \
                    network card.",
    waits: OffCpuReason::PipeOrSocket,
    check: || tried("tcp-loopback", "set the loopback interface up (`ip link set lo up`)", || connect(16)),
    connect,
};

fn connect(largest: usize) -> io::Result<Pair> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    // Someone else on this machine may have connected first.
    let server = loop {
        let (server, from) = listener.accept()?;
        if from == client.local_addr()? {
            break server;
        }
    };
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    duplex(client.into(), server.into(), Socket, largest)
}

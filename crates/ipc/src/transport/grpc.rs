//! gRPC over a connected pair of unix sockets: unary calls.

use super::{Client, Pair, RequestHandler, Server, Transport, always};
use crate::grpc::{ClientConnection, ServerConnection};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use slowpath_tables::OffCpuReason;
use std::io;
use std::os::unix::net::UnixStream;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "grpc",
    title: "gRPC over a unix socket",
    documentation: "Unary gRPC calls over HTTP/2 on a SOCK_STREAM socketpair, each a message with one field of bytes: headers, flow control \
                    and trailers as in tonic or grpc-go, which use the same HTTP/2. Each end has one thread.",
    // epoll_wait(2).
    waits: OffCpuReason::Poll,
    check: always,
    connect: |largest| {
        let (client, server) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        Ok(Pair::Processes {
            client: Box::new(ClientEnd { socket: Some(client.into()), largest, connection: None }),
            server: Box::new(ServerEnd { socket: Some(server.into()), largest, connection: None }),
        })
    },
};

/// The connection is made in the process that uses it: what waits for sockets must not be shared by a fork.
struct ClientEnd {
    socket: Option<UnixStream>,
    largest: usize,
    connection: Option<ClientConnection>,
}

impl Client for ClientEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        self.connection = Some(ClientConnection::open(socket, self.largest)?);
        Ok(())
    }

    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?.call(request, reply)
    }
}

struct ServerEnd {
    socket: Option<UnixStream>,
    largest: usize,
    connection: Option<ServerConnection>,
}

impl Server for ServerEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let socket = self.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        self.connection = Some(ServerConnection::open(socket, self.largest)?);
        Ok(())
    }

    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?.serve(answer)
    }
}

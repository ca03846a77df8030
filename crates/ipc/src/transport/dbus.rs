//! D-Bus: method calls through a bus of one's own.

use super::{Client, Pair, RequestHandler, Server, Transport};
use crate::dbus::{Address, Bus, Connection};
use slowpath_tables::missing::declared;
use slowpath_tables::{OffCpuReason, Unavailable};
use std::io;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "dbus",
    title: "D-Bus",
    documentation: "Method calls with an array of bytes through a dbus-daemon of the pair's own: each message goes over two unix sockets and \
                    through the daemon, which may run on a third CPU. The daemon is started by the server and shares its CPUs.",
    waits: OffCpuReason::PipeOrSocket,
    check,
    connect,
};

fn check() -> Result<(), Unavailable> {
    let remedy = "install the package dbus-daemon (dbus on older systems)";
    let tried = Address::fresh().and_then(|address| Bus::start(&address));
    tried.map(drop).map_err(|error| declared::TRANSPORT.of(&[&"dbus"], error.to_string(), remedy))
}

fn connect(largest: usize) -> io::Result<Pair> {
    let address = Address::fresh()?;
    let client = ClientEnd { address: address.clone(), largest, connection: None };
    Ok(Pair::Processes { client: Box::new(client), server: Box::new(ServerEnd { address, largest, bus: None }) })
}

struct ClientEnd {
    address: Address,
    largest: usize,
    connection: Option<Connection>,
}

impl Client for ClientEnd {
    fn prepare(&mut self) -> io::Result<()> {
        self.connection = Some(Connection::open(&self.address, self.largest)?);
        Ok(())
    }

    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        connection.call(request, reply)
    }
}

struct ServerEnd {
    address: Address,
    largest: usize,
    /// The connection goes before the bus.
    bus: Option<(Connection, Bus)>,
}

impl Server for ServerEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let bus = Bus::start(&self.address)?;
        let mut connection = Connection::open(&self.address, self.largest)?;
        connection.take_name()?;
        self.bus = Some((connection, bus));
        Ok(())
    }

    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        let (connection, _) = self.bus.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        connection.serve(answer)
    }
}

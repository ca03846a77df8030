//! Mechanisms that programs use and that this version does not measure: named with the reason, so that nobody takes their absence from
//! a result for an answer. One that gets its code moves to a file of its own.

use super::{Pair, Transport};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::io;

/// D-Bus.
pub(super) const DBUS: Transport = Transport {
    name: "dbus",
    title: "D-Bus",
    documentation: "A method call through a bus daemon.",
    check: || {
        gap(
            "dbus",
            "it needs a bus daemon of its own",
            "unix-stream is what carries D-Bus: two of its round trips and the daemon",
        )
    },
    connect: refuse,
};

/// gRPC.
pub(super) const GRPC: Transport = Transport {
    name: "grpc",
    title: "gRPC over a unix socket",
    documentation: "A unary call of HTTP/2 over a unix socket.",
    check: || {
        gap("grpc", "it needs a server of its own", "unix-stream is what carries it; the rest is time in the programs")
    },
    connect: refuse,
};

fn gap(name: &str, here: &str, remedy: &str) -> Result<(), Unavailable> {
    let reason = format!("this version of slowpath does not measure it; {here}");
    Err(declared::TRANSPORT.of(&[&name], reason, remedy))
}

fn refuse(_largest: usize) -> io::Result<Pair> {
    Err(io::ErrorKind::Unsupported.into())
}

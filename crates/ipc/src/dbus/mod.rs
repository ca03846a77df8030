//! D-Bus as far as a benchmark needs it: a bus of one's own ([`bus`]), and messages with one array of bytes ([`message`]).
//!
//! The messages are made here and not by a library: zbus and GDBus serve from threads of their own, and what is measured would be
//! their hand-over between threads, not the bus.

mod bus;
mod connection;
mod message;

pub(crate) use bus::{Address, Bus};
pub(crate) use connection::Connection;

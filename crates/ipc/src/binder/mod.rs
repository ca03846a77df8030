//! Android's binder driver, called directly: what stands between two processes that call each other through it.
//!
//! Owns the driver's interface ([`abi`]), the devices ([`device`]) and one process's connection to one ([`connection`]). What a
//! round trip carries, and in which form, is the transports'.
//!
//! Every pair has a device of its own, whose context manager is the pair's server: nothing else has to run, and no service manager
//! is asked. A connection belongs to the process that opened it (the driver compares), so both are opened after the fork.

mod abi;
mod connection;
mod device;

pub(crate) use connection::{Connection, Form};
pub(crate) use device::Device;

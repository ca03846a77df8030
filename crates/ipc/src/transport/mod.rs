//! What a transport is, and which there are: one file each, with one declaration, and one line in [`ALL`].
//!
//! A transport carries a request to a server and its reply back, between two processes that the engine forks. It knows
//! nothing of measuring; the engine knows nothing of a particular transport and compares no names.

mod binder;
mod binder_sg;
pub mod choice;
mod dbus;
mod eventfd_memory;
mod framed;
mod futex_memory;
mod grpc;
mod in_process;
mod io_uring;
mod message_queue;
mod pi_futex_memory;
mod pipe;
mod registry;
mod tcp_loopback;
mod unix_seqpacket;
mod unix_stream;

pub use registry::{ALL, named};

use slowpath_tables::missing::declared;
use slowpath_tables::{OffCpuReason, Unavailable};
use std::io;

/// A payload larger than this is refused: the largest of the field's benchmarks.
pub const LARGEST_PAYLOAD: usize = 64 * 1024;

/// Declaration of a transport.
pub struct Transport {
    /// Name on the command line, in names of benchmarks and in JSON.
    pub name: &'static str,
    /// A noun for headings.
    pub title: &'static str,
    /// What carries a round trip, in one or two sentences.
    pub documentation: &'static str,
    /// What its two ends wait for, as a recording has it.
    pub waits: OffCpuReason,
    /// Whether it works here.
    pub check: fn() -> Result<(), Unavailable>,
    /// Makes a connected pair for payloads up to a size, before the processes are forked.
    pub connect: fn(usize) -> io::Result<Pair>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Transport").field(&self.name).finish()
    }
}

/// Two ends of a connection.
pub enum Pair {
    /// Ends that work in two processes; each process drops the other's.
    Processes {
        /// The caller's end.
        client: Box<dyn Client>,
        /// The answering end.
        server: Box<dyn Server>,
    },
    /// No border between the two: the caller runs the answer itself.
    Direct,
}

/// What a server does with a request: appends the reply's bytes to what stands there already (a header, or nothing).
pub type RequestHandler<'a> = dyn FnMut(&[u8], &mut Vec<u8>) + Send + 'a;

/// The caller's end.
pub trait Client: Send {
    /// Called once in the process that will call, after the server is ready.
    ///
    /// # Errors
    /// The kernel refuses what the transport needs there.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// One round trip. `reply` is overwritten.
    ///
    /// # Errors
    /// The server is gone, or the kernel refuses.
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()>;
}

/// The answering end.
pub trait Server: Send {
    /// Called once in the process that will serve, before a client calls.
    ///
    /// # Errors
    /// The kernel refuses what the transport needs there.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits for a request and answers it.
    ///
    /// # Errors
    /// The client is gone, or the kernel refuses.
    fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()>;
}

/// Why a benchmark could not run.
#[derive(Debug, thiserror::Error)]
pub enum IpcError {
    /// The kernel refused a call of the engine.
    #[error("{call} failed")]
    System {
        /// Which.
        call: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The transport could not be set up.
    #[error("transport {transport} cannot be set up")]
    Connect {
        /// Which.
        transport: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A process of the benchmark ended early.
    #[error("the {role} of transport {transport} {ending} before it was done")]
    Died {
        /// Client or server.
        role: &'static str,
        /// Which transport.
        transport: &'static str,
        /// How.
        ending: String,
    },
    /// The reply was not what was sent.
    #[error("transport {transport} did not return the {size} bytes that were sent")]
    Corrupted {
        /// Which transport.
        transport: &'static str,
        /// Payload.
        size: usize,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Sizes, counts or places that make no sense.
    #[error("{0}")]
    Usage(String),
}

impl IpcError {
    /// What would change it, where the kernel's refusal says so.
    pub fn remedy(&self) -> Option<&'static str> {
        let (Self::System { source, .. } | Self::Connect { source, .. }) = self else { return None };
        match source.raw_os_error() {
            Some(libc::EMFILE) => {
                Some("raise `ulimit -n` (the hard limit, `ulimit -Hn`), or ask for fewer pairs or workers")
            }
            Some(libc::ENFILE) => Some("raise fs.file-max, or ask for fewer pairs or workers"),
            // Of fork(2).
            Some(libc::EAGAIN) => {
                Some("raise `ulimit -u` or pids.max of the cgroup, or ask for fewer pairs or workers")
            }
            // Of mq_open(3), to users.
            Some(libc::ENOSPC) => Some("raise fs.mqueue.queues_max, or ask for fewer pairs or workers"),
            _ if source.kind() == io::ErrorKind::QuotaExceeded => {
                Some("raise `ulimit -q` (the hard limit, `ulimit -Hq`), or ask for fewer pairs or workers")
            }
            _ => None,
        }
    }

    pub(crate) fn system(call: &'static str, source: io::Error) -> Self {
        Self::System { call, source }
    }
}

/// The check of transports that every Linux has.
fn always() -> Result<(), Unavailable> {
    Ok(())
}

/// A check by trying: connects once, and what the kernel says is the reason.
fn tried(name: &str, remedy: &str, connect: impl FnOnce() -> io::Result<Pair>) -> Result<(), Unavailable> {
    connect().map(drop).map_err(|error| declared::TRANSPORT.of(&[&name], error.to_string(), remedy))
}

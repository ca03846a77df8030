//! A pair of pipes.

use super::framed::{Plain, pair};
use super::{Transport, always};
use slowpath_tables::OffCpuReason;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "pipe",
    title: "Pipe pair",
    documentation: "Two pipes (pipe(2)), one a direction; a round trip is a write and a read on each side. What `perf bench sched \
                    pipe` measures.",
    waits: OffCpuReason::PipeOrSocket,
    check: always,
    connect: |largest| {
        let request = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let reply = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        Ok(pair(request, reply, Plain, largest))
    },
};

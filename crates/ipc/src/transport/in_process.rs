//! No transport: the caller runs the answer itself. The floor below all others.

use super::{Pair, Transport, always};
use slowpath_tables::OffCpuReason;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "in-process",
    title: "In-process call",
    documentation: "The answer is called as a function in the caller's thread (the pass-through mode of hwbinder): the floor, what \
                    the benchmark itself costs.",
    waits: OffCpuReason::Kernel,
    check: always,
    connect: |_| Ok(Pair::Direct),
};

//! Android's binder with scatter-gather, as hwbinder uses it: the driver copies the payload from where it is.

use super::Transport;
use super::binder::{check, connect};
use crate::binder::Form;
use slowpath_tables::OffCpuReason;

/// Declaration.
pub(super) const TRANSPORT: Transport = Transport {
    name: "binder-sg",
    title: "Binder driver with scatter-gather",
    documentation: "As binder, but the payload is a buffer object (BC_TRANSACTION_SG): one copy, by the driver, from the sender's memory \
                    into the receiver's.",
    waits: OffCpuReason::Kernel,
    check: || check("binder-sg", Form::Scattered),
    connect: |largest| connect(Form::Scattered, largest),
};

//! The transports that a measurement of several asks for, and what is said of those that do not work here.

use super::ending::not_here;
use crate::failure::Failure;
use slowpath_ipc::transport::Transport;
use slowpath_ipc::transport::choice::{Asked, chosen};
use slowpath_tables::Unavailable;

/// Those that were asked for, and of `all` what does not work here.
pub fn transports(asked: &[Asked]) -> Result<(Vec<&'static Transport>, Vec<Unavailable>), Failure> {
    chosen(asked).map_err(not_here)
}

/// Says on standard error what is not available.
pub fn say_gaps(gaps: &[Unavailable]) {
    slowpath_report::ipc::gaps(gaps).lines().for_each(|line| eprintln!("slowpath: {line}"));
}

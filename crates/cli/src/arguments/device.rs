//! Options that say how a lab's device behaves.

use super::units::bytes;
use clap::Args;
use slowpath_lab::{Settings, Throttle};

/// Conditions of the lab's device.
#[derive(Clone, Debug, Args)]
pub struct DeviceArguments {
    /// Readahead of the lab's device.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "128K")]
    pub readahead: u64,
    /// Limit reads from the lab's device to this many operations per second.
    #[arg(long, value_name = "N")]
    pub iops: Option<u64>,
    /// Limit reads from the lab's device to this many bytes per second (K, M, G).
    #[arg(long, value_name = "B", value_parser = bytes)]
    pub bandwidth: Option<u64>,
}

impl DeviceArguments {
    /// The settings of a lab's device.
    pub fn settings(&self) -> Settings {
        let throttled = self.iops.is_some() || self.bandwidth.is_some();
        Settings {
            read_ahead_kb: self.readahead / 1024,
            throttle: throttled
                .then(|| Throttle { iops: self.iops.unwrap_or(0), bytes_per_second: self.bandwidth.unwrap_or(0) }),
            from_memory: false,
        }
    }
}

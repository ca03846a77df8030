//! Private cold starts that disturb nobody.
//!
//! A [`Closure`] of files that a command needs is copied into an ext4 [`Image`] on a loop device. A [`Lab`] mounts it
//! over the host's paths in the private mount namespace of each launch: when the launch ends, the file system goes and
//! with it every cached page, so the next launch is cold again, metadata included. Nobody else's cache is touched.
//!
//! Owns: closure, image, loop device, the *list* of mounts, the throttle's cgroup, the proof of coldness
//! ([`Coldness`]), the eviction of files where there is no lab ([`evict`]), and the clean-up after killed processes
//! ([`leftovers`]). Leaves to `launch` the carrying out of the
//! mounts and the launch itself, to the caller the closure's paths (from an earlier recording) and what to do with a
//! launch that was not cold.
//!
//! One cold launch:
//!
//! ```text
//! let closure = Closure::from_paths([program, libraries, ...]);
//! let image = Image::build(&closure, DEFAULT_BASE.as_ref(), Vec::new())?;
//! let lab = Lab::new(image, Settings::default())?;
//! lab.prepare_cold()?;
//! let before = lab.io()?;
//! // launch with lab.mounts() and lab.cgroups(); in the hook before the exec is released:
//! let coldness = lab.verify_cold()?;
//! // after the launch:
//! let delivered = (lab.io()? - before).bytes;
//! ```

mod accounting;
mod attributes;
pub mod availability;
mod closure;
mod coldness;
mod controller;
mod device;
mod directory;
mod error;
pub mod evict;
mod filesystem;
mod fill;
#[doc(hidden)]
pub mod foreign;
mod image;
mod keep;
mod lab;
mod launch_group;
pub mod leftovers;
mod loop_device;
mod mount_plan;
mod options;
mod private_mounts;
mod throttle;

pub use accounting::lab_misses;
pub use closure::{Closure, ClosureFile, SkipReason, Skipped};
pub use coldness::{
    Coldness, DELIVERED_AT_LEAST, Evidence, Holder, LukewarmReason, METADATA_ALLOWANCE, MountCost, PAST_LAB_AT_MOST,
    check_bytes,
};
pub use controller::EnabledController;
pub use device::DeviceIo;
pub use directory::DEFAULT_BASE;
pub use error::LabError;
pub use fill::ImageFile;
pub use image::{ExtraFile, Image};
pub use keep::{KeptMounted, PageRun};
pub use lab::{Lab, PATIENCE, Settings};
pub use launch_group::LaunchGroup;
pub use loop_device::LoopDevice;
pub use slowpath_process::Owner;
pub use throttle::Throttle;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod mounted_tests;

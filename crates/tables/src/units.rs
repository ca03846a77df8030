//! Types that carry a unit or an identity, so that nanoseconds are never added to pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Bytes of one page as tables and plans count them, whatever pages a kernel has: one of 64 KiB is sixteen of these.
pub const PAGE_SIZE: u64 = 4096;

/// The largest page of a kernel that Slowpath knows: arm64 has them of 4, 16 and 64 KiB.
const LARGEST_PAGE: u64 = 64 << 10;

/// Bytes of a kernel's page where a file says `said` of it: that, or 4 KiB where no kernel has such pages.
pub fn page_of_kernel(said: u64) -> u64 {
    let is_one = said.is_power_of_two() && (PAGE_SIZE..=LARGEST_PAGE).contains(&said);
    if is_one { said } else { PAGE_SIZE }
}

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        /// Saturates at zero: kernel clocks of two CPUs can differ by a few nanoseconds.
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), |total, item| total + item)
            }
        }
    };
}

unit! {
    /// Nanoseconds, as a duration or as a point of `CLOCK_MONOTONIC`.
    Nanos
}
unit! {
    /// Bytes, as a size or as an offset into a file.
    Bytes
}
unit! {
    /// 4 KiB pages, as a count or as an index into a file.
    Pages
}

impl Nanos {
    /// The value in milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Bytes {
    /// The value in units of 10^6 bytes.
    pub fn as_mb(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Index of the page that holds the byte at this offset.
    pub fn page(self) -> Pages {
        Pages(self.0 / PAGE_SIZE)
    }
    /// Pages that a range of this size starting at a page boundary touches.
    pub fn pages_up(self) -> Pages {
        Pages(self.0.div_ceil(PAGE_SIZE))
    }
}

impl Pages {
    /// The value in bytes.
    pub fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(PAGE_SIZE))
    }
}

/// Which file: device number as the kernel encodes it (`major << 20 | minor`) and inode number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FileKey {
    /// `s_dev` of the file's superblock (`major << 20 | minor`, `include/linux/kdev_t.h`).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

impl FileKey {
    /// Major and minor number of the device.
    pub fn device(self) -> (u64, u64) {
        (self.dev >> 20, self.dev & 0xf_ffff)
    }
}

impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.device();
        write!(f, "{major}:{minor}/{}", self.ino)
    }
}

/// Which process: its pid in the first pid namespace and its start time, because pids are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ProcessKey {
    /// Thread-group id.
    pub pid: u32,
    /// Start of the thread-group leader, `CLOCK_MONOTONIC`.
    pub start: Nanos,
}

//! Whether a launch starts cold: the evidence and the rule. Pure; [`crate::Lab`] gathers the evidence.
//!
//! # What is conclusive
//!
//! Looking at the files of the mounted image would load their inodes, and so warm what is to be measured. The proof
//! goes the other way round:
//!
//! 1. *Before the mounts* no ext4 superblock of the device was alive (its directory in `/sys/fs/ext4` was gone, which
//!    happens after all inodes were evicted). Then no inode, directory entry or page of any file of the image was in
//!    memory. The device's own page cache, which holds the metadata blocks, was then emptied and counted: 0 pages.
//! 2. *After the mounts* every page in memory must have been delivered by the device since then. The device's read
//!    counter says how much that was, and `cachestat(2)` on the device how many metadata pages are cached. What the
//!    counter shows beyond the metadata pages, and beyond what mounting alone reads (calibrated once by the same mounts
//!    without a launch), is file content. A cold launch has none of it.
//! 3. Metadata pages beyond the calibration mean that directories or inodes were read between mount and exec.
//!
//! When the evidence is against it, the launch is lost anyhow, and the cached pages of every file are counted one file
//! after the other, page by page, through a second mount of the same superblock.
//!
//! What lies below the machine (a hypervisor's cache, the disk's own) cannot be seen from here.

use serde::Serialize;
use slowpath_tables::{Bytes, Pages};

/// Metadata pages that may be read between mount and exec beyond the calibration: entering the working directory reads
/// at most one readahead of an inode table (32 blocks, `inode_readahead_blks` of ext4(5)) and a directory block.
pub const METADATA_ALLOWANCE: Pages = Pages(33);

/// Share of the bytes needed that the device must have delivered for the launch to count as cold.
pub const DELIVERED_AT_LEAST: f64 = 0.99;

/// Share of the bytes needed that may have been read from files outside of the lab.
pub const PAST_LAB_AT_MOST: f64 = 0.01;

/// A process in whose mount namespace the lab's device is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Pid as `/proc` shows it.
    pub pid: u32,
    /// Its command name.
    pub name: String,
}

/// Why a launch does not count as cold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum LukewarmReason {
    /// The file system of the previous launch was still alive when this one was prepared.
    StillMounted {
        /// Who had it mounted then, as far as could be seen.
        holders: Vec<Holder>,
    },
    /// Content of files was read between preparation and exec.
    FilePages {
        /// Bytes beyond metadata and beyond what mounting reads.
        read: Bytes,
    },
    /// Directories or inodes were read between preparation and exec.
    Metadata,
    /// The image's own pages were cached below the loop device, which does no direct I/O here.
    BelowTheDevice,
    /// The device delivered less than the launch needed.
    DeliveredTooLittle {
        /// What this launch needs, from a recording of it at readahead 0.
        needed: Bytes,
        /// What the device delivered.
        delivered: Bytes,
    },
}

impl std::fmt::Display for LukewarmReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StillMounted { .. } => f.write_str("the previous launch's file system was still mounted"),
            Self::FilePages { read } => write!(f, "{} bytes of files were read before exec", read.0),
            Self::Metadata => f.write_str("directories or inodes were read before exec"),
            Self::BelowTheDevice => f.write_str("pages of the image were cached below the loop device"),
            Self::DeliveredTooLittle { needed, delivered } => {
                write!(f, "the device delivered {} of {} bytes needed", delivered.0, needed.0)
            }
        }
    }
}

/// Whether a launch starts (or started) cold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Coldness {
    /// Nothing of any file was in memory.
    Cold,
    /// Something was: the launch is to be discarded and counted.
    Lukewarm {
        /// Why.
        reason: LukewarmReason,
        /// Pages found in memory (or, for `delivered_too_little`, pages that did not come from the device).
        pages: Pages,
    },
}

impl Coldness {
    /// Whether the launch counts.
    pub fn is_cold(&self) -> bool {
        *self == Self::Cold
    }
}

/// What mounting alone reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MountCost {
    /// Bytes delivered by the device.
    pub bytes: Bytes,
    /// Metadata pages that stay cached while mounted.
    pub metadata: Pages,
}

/// What is known about a launch before its exec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The previous superblock was gone and the device's page cache empty when the launch was prepared.
    pub fresh: bool,
    /// Who held the superblock alive, when it was not gone.
    pub holders: Vec<Holder>,
    /// Delivered by the device since the preparation.
    pub delivered: Bytes,
    /// Cached metadata pages.
    pub metadata: Pages,
    /// Cached pages of the image file, where the loop device does no direct I/O; else 0.
    pub below: Pages,
    /// The calibration.
    pub mounting: MountCost,
}

impl Evidence {
    /// Why this is not cold, if it is not. The strongest reason is given.
    pub fn against(&self) -> Option<LukewarmReason> {
        if !self.fresh {
            return Some(LukewarmReason::StillMounted { holders: self.holders.clone() });
        }
        let more_metadata = self.more_metadata();
        let read = self.delivered - self.mounting.bytes - more_metadata.bytes();
        if read > Bytes(0) {
            return Some(LukewarmReason::FilePages { read });
        }
        if more_metadata > METADATA_ALLOWANCE {
            return Some(LukewarmReason::Metadata);
        }
        (self.below > Pages(0)).then_some(LukewarmReason::BelowTheDevice)
    }

    /// Metadata pages beyond the calibration.
    pub fn more_metadata(&self) -> Pages {
        self.metadata - self.mounting.metadata
    }
}

/// After a launch: whether the device delivered what the launch needed.
pub fn check_bytes(needed: Bytes, delivered: Bytes) -> Coldness {
    if delivered.0 as f64 >= needed.0 as f64 * DELIVERED_AT_LEAST {
        return Coldness::Cold;
    }
    let pages = (needed - delivered).pages_up();
    Coldness::Lukewarm { reason: LukewarmReason::DeliveredTooLittle { needed, delivered }, pages }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cold() -> Evidence {
        Evidence {
            fresh: true,
            holders: Vec::new(),
            delivered: Bytes(80 << 10),
            metadata: Pages(19),
            below: Pages(0),
            mounting: MountCost { bytes: Bytes(80 << 10), metadata: Pages(19) },
        }
    }

    #[test]
    fn a_fresh_superblock_and_no_reads_beyond_mounting_are_cold() {
        assert_eq!(cold().against(), None);
    }

    #[test]
    fn one_page_of_content_is_enough_to_be_lukewarm() {
        let evidence = Evidence { delivered: cold().delivered + Bytes(4096), ..cold() };
        assert_eq!(evidence.against(), Some(LukewarmReason::FilePages { read: Bytes(4096) }));
    }

    #[test]
    fn metadata_is_told_from_content_and_allowed_up_to_a_working_directory() {
        let with = |pages: Pages| Evidence {
            delivered: cold().delivered + pages.bytes(),
            metadata: cold().metadata + pages,
            ..cold()
        };
        assert_eq!(with(METADATA_ALLOWANCE).against(), None);
        assert_eq!(with(METADATA_ALLOWANCE + Pages(1)).against(), Some(LukewarmReason::Metadata));
    }

    #[test]
    fn a_superblock_that_lived_on_is_lukewarm_whatever_was_read() {
        let evidence = Evidence { fresh: false, ..cold() };
        assert_eq!(evidence.against(), Some(LukewarmReason::StillMounted { holders: Vec::new() }));
    }

    #[test]
    fn cached_pages_of_the_image_below_the_device_are_lukewarm() {
        assert_eq!(Evidence { below: Pages(1), ..cold() }.against(), Some(LukewarmReason::BelowTheDevice));
    }

    #[test]
    fn a_launch_that_got_less_than_99_percent_of_what_it_needs_is_lukewarm() {
        assert!(check_bytes(Bytes(1_000_000), Bytes(990_000)).is_cold());
        assert!(check_bytes(Bytes(1_000_000), Bytes(2_000_000)).is_cold());
        assert!(!check_bytes(Bytes(1_000_000), Bytes(989_999)).is_cold());
    }
}

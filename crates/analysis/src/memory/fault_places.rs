//! What the addresses of faults meant: a page of a file, or memory without one.

use crate::io::files::{FileId, Files};
use crate::memory::address_space::{AddressPlace, AddressSpaces};
use slowpath_recording::{NotRecorded, Tables};

/// The probe that records what addresses mean.
const MAPPING: &str = "mapping";

/// What a faulting address meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPlace {
    /// A page of a file.
    File {
        /// The file.
        file: FileId,
        /// Page in the file.
        page: u64,
        /// Protection bits of the mapping.
        prot: u32,
    },
    /// Memory without a file.
    Anonymous,
    /// The mappings of the process are not known.
    Unknown,
}

/// What each row of `faults` meant.
pub(crate) fn fault_places(tables: &Tables, files: &mut Files) -> Vec<FaultPlace> {
    let mut spaces = AddressSpaces::new(tables);
    // A trace without mappings knows of no address that no file lies behind it.
    let is_without = matches!(tables.manifest.not_recorded(MAPPING), Some(NotRecorded::Refused(_)));
    let are_known = !tables.mappings.is_empty() || !is_without;
    tables
        .faults
        .iter()
        .map(|fault| match spaces.place_at(fault.ts, fault.process(), fault.address) {
            AddressPlace::File { file, offset, prot } => {
                FaultPlace::File { file: files.id(file), page: offset.page().0, prot }
            }
            AddressPlace::Anonymous if are_known => FaultPlace::Anonymous,
            AddressPlace::Anonymous | AddressPlace::Unknown => FaultPlace::Unknown,
        })
        .collect()
}

//! Where frame descriptions begin and end: in a stripped file the only thing that says where functions are.

use crate::unwind_table::{FrameSource, Image};
use gimli::{BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use std::collections::HashMap;
use std::ops::Range;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Descriptions in one file; Firefox's libxul has some 300 000.
const MAX_FRAMES: usize = 8 << 20;
/// Common parts of descriptions in one file.
const MAX_CIES: usize = 1 << 18;

/// The ranges of addresses that have a description, in the order of the file. Those of signal trampolines are left out: the code of one
/// is compared byte by byte by unwinders, and its description begins before it. None where nothing can be read.
pub(super) fn ranges(image: &Image) -> Vec<Range<u64>> {
    let (frames, bases) = match image.frames {
        FrameSource::EhFrame(frames) => (frames, BaseAddresses::default()),
        FrameSource::EhFrameHeader(header) => {
            let bases = BaseAddresses::default().set_eh_frame_hdr(header.address);
            let parsed = gimli::EhFrameHdr::new(header.bytes, LittleEndian).parse(&bases, 8);
            let Ok(parsed) = parsed else { return Vec::new() };
            let Some(frames) = image.loaded_from(parsed.eh_frame_ptr().pointer()) else { return Vec::new() };
            (frames, bases)
        }
        FrameSource::DebugFrame(_) | FrameSource::None => return Vec::new(),
    };
    let bases = bases.set_eh_frame(frames.address);
    let mut section = EhFrame::new(frames.bytes, LittleEndian);
    section.set_address_size(8);
    let mut commons: HashMap<usize, CommonInformationEntry<Bytes>> = HashMap::new();
    let mut entries = section.entries(&bases);
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|section, bases, offset| {
            if let Some(common) = commons.get(&offset.0) {
                return Ok(common.clone());
            }
            let common = section.cie_from_offset(bases, offset)?;
            if commons.len() < MAX_CIES {
                commons.insert(offset.0, common.clone());
            }
            Ok(common)
        });
        let Ok(entry) = parsed else { continue };
        if entry.is_signal_trampoline() || entry.end_address() <= entry.initial_address() {
            continue;
        }
        if ranges.len() >= MAX_FRAMES {
            break;
        }
        ranges.push(entry.initial_address()..entry.end_address());
    }
    ranges
}

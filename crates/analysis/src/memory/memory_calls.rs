//! Calls that change an address space: their flags and advice, and the whole pages that each is about.
//!
//! Leaves when a call takes effect to [`crate::memory::memory_events`], and what it means to those that follow them.

use slowpath_tables::{Bytes, MemoryCall, Nanos};

/// Flag of mmap: no file (`include/uapi/asm-generic/mman-common.h`; the same on x86 and arm64).
pub(crate) const MAP_ANONYMOUS: u32 = 0x20;
/// Flag of mmap: fill the page tables at once.
pub(crate) const MAP_POPULATE: u32 = 0x8000;
/// Advice that gives pages back at once.
pub(crate) const MADV_DONTNEED: u32 = 4;
/// Advice that lets the kernel take pages when it needs some.
pub(crate) const MADV_FREE: u32 = 8;
/// Advice that gives pages back.
pub(crate) const DISCARDS: [u32; 2] = [MADV_DONTNEED, MADV_FREE];
/// Advice that brings them: `MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`.
pub(crate) const POPULATES: [u32; 2] = [22, 23];

/// Advice to give huge pages.
pub(crate) const MADV_HUGEPAGE: u32 = 14;
/// Advice to give none.
pub(crate) const MADV_NOHUGEPAGE: u32 = 15;

/// Whole pages of a call's range, as the kernel takes them: from, to. `page` is bytes of one of its pages
/// ([`slowpath_recording::Host::page`]).
pub(crate) fn pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    whole_pages(call.address, call.length, page)
}

fn whole_pages(address: u64, length: Bytes, page: u64) -> (u64, u64) {
    let from = address - address % page;
    (from, from.saturating_add(up(length.0, page)))
}

/// The end of the page that so many bytes end in.
fn up(bytes: u64, page: u64) -> u64 {
    bytes.div_ceil(page).saturating_mul(page)
}

/// Whole pages by which a brk moved the end of the heap: from, to. A page that the heap ends in stays with it.
pub(crate) fn heap_pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    let (below, above) = if call.shrinks {
        (call.address, call.address.saturating_add(call.length.0))
    } else {
        (call.address.saturating_sub(call.length.0), call.address)
    };
    (up(below, page), up(above, page))
}

/// The old place of a mremap. Where a recording does not tell it, that is taken for the new one: most blocks grow where they are.
pub(crate) fn old_pages(call: &MemoryCall, page: u64) -> (u64, u64) {
    whole_pages(call.old_address.unwrap_or(call.address), call.old_length.unwrap_or_default(), page)
}

/// The part of a call's time that so many of its bytes have.
pub(crate) fn share(time: Nanos, bytes: u64, of: u64) -> Nanos {
    let share = u128::from(time.0) * u128::from(bytes.min(of)) / u128::from(of.max(1));
    Nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_recording::Tables;

    #[test]
    fn the_page_that_a_heap_ends_in_stays_with_it() {
        let text = "== memory_calls\nts duration pid start tid call address length shrinks\n\
                    1 1 7 1 7 brk 0x5800 4096 false\n2 1 7 1 7 brk 0x3001 10239 true\n";
        let calls = Tables::from_text(text).unwrap().memory_calls;
        assert_eq!(heap_pages(&calls[0], 4 << 10), (0x5000, 0x6000));
        assert_eq!(heap_pages(&calls[1], 4 << 10), (0x4000, 0x6000));
        // The first moves the end within a page of 16 KiB.
        assert_eq!(heap_pages(&calls[0], 16 << 10), (0x8000, 0x8000));
        assert_eq!(heap_pages(&calls[1], 16 << 10), (0x4000, 0x8000));
    }

    #[test]
    fn a_call_takes_whole_pages_of_its_kernel() {
        let text = "== memory_calls\nts duration pid start tid call address length old_address old_length\n\
                    1 1 7 1 7 munmap 0x10000 20000 - -\n2 1 7 1 7 mremap 0x40000 5 0x20000 0x4001\n";
        let calls = Tables::from_text(text).unwrap().memory_calls;
        let ranges = |page| (pages(&calls[0], page), pages(&calls[1], page), old_pages(&calls[1], page));
        assert_eq!(ranges(4 << 10), ((0x10000, 0x15000), (0x40000, 0x41000), (0x20000, 0x25000)));
        assert_eq!(ranges(16 << 10), ((0x10000, 0x18000), (0x40000, 0x44000), (0x20000, 0x28000)));
        assert_eq!(ranges(64 << 10), ((0x10000, 0x20000), (0x40000, 0x50000), (0x20000, 0x30000)));
    }
}

//! The faults of a sequence of touched pages.
//!
//! Two states of the machine are simulated, with the defaults of Linux:
//!
//! - *warm*, all pages are in the page cache: a fault maps the 64 KiB around it that are aligned (`fault_around_bytes`, mm/memory.c).
//! - *cold*, none is: a fault on a missing page reads 128 KiB around it (`do_sync_mmap_readahead`, mm/filemap.c: half of the readahead
//!   before, half behind), and maps those around it that are there.

use std::collections::HashSet;

/// Bytes that a fault maps, aligned to as many.
const AROUND: u64 = 64 << 10;
/// Bytes that a fault reads: the default of `read_ahead_kb`, 128.
const READ: u64 = 128 << 10;
/// Pages that are simulated; a program of 1 GiB of code.
const MOST: usize = 1 << 18;
/// Touches that are looked at: what a trace says is foreign, and its functions may overlap.
const MOST_TOUCHES: usize = 8 * MOST;

/// What touching a sequence of pages costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Pages touched.
    pub pages: f64,
    /// Faults when all pages are in the page cache.
    pub faults: f64,
    /// Faults that wait for the disk when none is.
    pub cold_faults: f64,
    /// Pages that those read.
    pub pages_read: f64,
}

/// The cost of touching pages of so many bytes in this sequence.
pub fn cost(page_bytes: u64, pages: impl IntoIterator<Item = u64>) -> Cost {
    let (around, read) = ((AROUND / page_bytes).max(1), (READ / page_bytes).max(1));
    let (mut touched, mut mapped, mut cached) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut cost = Cost::default();
    for page in pages.into_iter().take(MOST_TOUCHES) {
        if touched.len() >= MOST {
            break;
        }
        if !touched.insert(page) {
            continue;
        }
        if mapped.insert(page / around) {
            cost.faults += 1.0;
        }
        if !cached.contains(&page) {
            cost.cold_faults += 1.0;
            let first = page.saturating_sub(read / 2);
            cached.extend(first..first.saturating_add(read));
        }
    }
    cost.pages = touched.len() as f64;
    cost.pages_read = cached.len() as f64;
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::PAGE_SIZE;

    fn cost(pages: impl IntoIterator<Item = u64>) -> Cost {
        super::cost(PAGE_SIZE, pages)
    }

    #[test]
    fn a_fault_maps_and_reads_as_many_bytes_whatever_the_kernels_pages_are() {
        // Three pages of 64 KiB: a fault maps one, and reads it with the one before.
        let large = super::cost(64 << 10, [32, 33, 34]);
        assert_eq!((large.pages, large.faults, large.cold_faults, large.pages_read), (3.0, 3.0, 3.0, 4.0));
        // The same bytes in pages of 4 KiB.
        let small = cost(32 * 16..35 * 16);
        assert_eq!((small.pages, small.faults, small.pages_read), (48.0, 3.0, 64.0));
        let middle = super::cost(16 << 10, [32, 33, 35, 36]);
        assert_eq!((middle.pages, middle.faults, middle.cold_faults, middle.pages_read), (4.0, 2.0, 2.0, 12.0));
    }

    #[test]
    fn neighbours_are_mapped_and_read_with_one_fault() {
        let one = cost([32, 33, 47, 32]);
        assert_eq!((one.pages, one.faults, one.cold_faults, one.pages_read), (3.0, 1.0, 1.0, 32.0));
        // The next window of 64 KiB, within what was read: pages 16 to 47.
        assert_eq!(cost([32, 31]).faults, 2.0);
        assert_eq!(cost([32, 31]).cold_faults, 1.0);
        assert_eq!(cost([32, 48]).cold_faults, 2.0);
    }

    #[test]
    fn the_ends_of_the_address_space_are_no_end_of_the_simulation() {
        assert_eq!(cost([u64::MAX, 0]).pages, 2.0);
        assert_eq!(cost([]), Cost::default());
    }
}

//! What processes that live on hold when recording ends.
//!
//! Owns which of their pages are looked at, by the same rule as the probe (`page_content.bpf.c`), and looking: `/proc/PID/pagemap`
//! says which are there, and only those are read, so none is brought. Nothing is stopped, and what is read is compared with zero and
//! forgotten.

use crate::clock::monotonic_now;
use crate::events::{
    EVENT_PAGE_CONTENT, LOOK_END, LOOK_LEAST_BYTES, LOOK_LEAST_PAGES, LOOK_MOST_PAGES, LOOK_ONE_IN, LOOK_PROCESS_PAGES,
    LOOK_RECORD_PAGES, event_header, page_content_event, view,
};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use slowpath_process::{DeadlineAnswer, Mapping, mappings, page_size};
use slowpath_tables::Nanos;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

/// In an entry of `/proc/PID/pagemap`: the page is there; it is of a file or shared (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// Looking at all processes takes no longer; those that are left then are reported.
pub(crate) const MOST_TIME: Nanos = Nanos(1_000_000_000);

/// An area: first address, and that after the last.
type Area = (u64, u64);

/// Areas of `/proc/PID/maps` that are looked at: private memory without a file that can be read and written, but for the heap of brk
/// and the stack of the main thread.
pub(crate) fn areas(maps: &[u8]) -> Vec<Area> {
    let is_looked_at = |one: &Mapping<'_>| {
        let is_plain = one.is_readable() && one.is_writable() && !one.is_shared() && one.inode == 0;
        let is_long = one.length() >= u64::from(LOOK_LEAST_BYTES);
        is_plain && is_long && (one.name.is_empty() || one.name.starts_with(b"[anon:"))
    };
    mappings(maps).filter(is_looked_at).map(|one| (one.range.start, one.range.end)).collect()
}

/// Of how many pages of an area.
fn wanted_pages(pages: u64) -> u64 {
    let wanted = (pages / u64::from(LOOK_ONE_IN)).clamp(LOOK_LEAST_PAGES.into(), LOOK_MOST_PAGES.into());
    wanted.min(pages)
}

/// From which page to which of each area, and by how many: what is looked at of a process. `chance` chooses the first page.
fn samples(areas: &[Area], mut chance: impl FnMut() -> u64) -> Vec<(Area, u64)> {
    let page = page_size();
    let pages = |area: &Area| (area.1 - area.0) / page;
    let all: u64 = areas.iter().map(|area| wanted_pages(pages(area))).sum();
    let part = all / u64::from(LOOK_PROCESS_PAGES) + 1;
    let sample = |area: &Area| {
        let every = pages(area).div_ceil((wanted_pages(pages(area)) / part).max(1));
        ((area.0 + chance() % every.max(1) * page, area.1), every * page)
    };
    areas.iter().map(sample).collect()
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Absent,
    Used,
    Zero,
}

/// Looks at every page of a sample and packs what it finds into records.
fn records(
    pid: u32,
    ((from, to), stride): (Area, u64),
    mut look: impl FnMut(u64) -> Content,
) -> Vec<page_content_event> {
    let Ok(step) = usize::try_from(stride.max(page_size())) else { return Vec::new() };
    let pages: Vec<u64> = (from..to).step_by(step).collect();
    let record = |pages: &[u64]| {
        let began = monotonic_now();
        let header =
            event_header { kind: EVENT_PAGE_CONTENT as u16, pid, tid: pid, ts: began.0, ..event_header::default() };
        let (count, address) = (pages.len() as u32, pages.first().copied().unwrap_or_default());
        let mut event =
            page_content_event { header, address, stride, pages: count, moment: LOOK_END, ..Default::default() };
        for (bit, page) in pages.iter().enumerate() {
            let content = look(*page);
            event.present |= u64::from(content != Content::Absent) << bit;
            event.zero |= u64::from(content == Content::Zero) << bit;
        }
        event.duration = (monotonic_now() - began).0;
        event
    };
    pages.chunks(LOOK_RECORD_PAGES as usize).map(record).collect()
}

/// A process's pages.
struct Pages {
    pid: Pid,
    map: File,
    /// Room for one page.
    read: Vec<u8>,
}

impl Pages {
    fn look(&mut self, address: u64) -> Content {
        let mut entry = [0u8; 8];
        if self.map.read_exact_at(&mut entry, address / self.read.len() as u64 * 8).is_err() {
            return Content::Absent;
        }
        let entry = u64::from_ne_bytes(entry);
        let (Ok(base), true) = (usize::try_from(address), entry & PRESENT != 0 && entry & OF_FILE == 0) else {
            return Content::Absent;
        };
        let remote = [RemoteIoVec { base, len: self.read.len() }];
        let read = process_vm_readv(self.pid, &mut [IoSliceMut::new(&mut self.read)], &remote);
        match read {
            Ok(bytes) if bytes == self.read.len() && self.read.iter().all(|byte| *byte == 0) => Content::Zero,
            Ok(bytes) if bytes == self.read.len() => Content::Used,
            _ => Content::Absent,
        }
    }
}

/// What a child does that looks in the recorder's place, asked with a pid: the records of its pages. What is read belongs to others, and
/// they can have any read of it wait for ever.
pub(crate) fn answer(request: &[u8]) -> io::Result<DeadlineAnswer> {
    let pid = request.try_into().map(u32::from_ne_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok((look(pid).iter().flat_map(|event| view(event).iter().copied()).collect(), None))
}

/// Looks at the pages of a process; nothing of one that is gone, or that the kernel does not show.
fn look(pid: u32) -> Vec<page_content_event> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let map = File::open(format!("/proc/{pid}/pagemap"));
    let (Ok(map), Ok(number)) = (map, i32::try_from(pid)) else { return Vec::new() };
    let mut pages = Pages { pid: Pid::from_raw(number), map, read: vec![0; page_size() as usize] };
    let mut seed = monotonic_now();
    let chance = || {
        // Any page will do, if no pattern of the program's can follow it (Knuth's constants for 64 bits).
        seed = Nanos(seed.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        seed.0 >> 33
    };
    let samples = samples(&areas(&maps), chance);
    samples.into_iter().flat_map(|sample| records(pid, sample, |page| pages.look(page))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::PAGE_SIZE;

    const MAPS: &[u8] = b"55d0c0000000-55d0c0100000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000040000 rw-p 00000000 00:00 0
7f0000100000-7f0000110000 rw-p 00000000 00:00 0
7f0000200000-7f0000240000 rw-p 00000000 fe:01 1234                       /usr/lib/libc.so.6
7f0000300000-7f0000340000 ---p 00000000 00:00 0
7f0000400000-7f0000440000 rw-s 00000000 00:00 0
7f0000500000-7f0000540000 rw-p 00000000 00:00 0                          [anon: buffer]
7ffd00000000-7ffd00040000 rw-p 00000000 00:00 0                          [stack]
nonsense
7f-7e rw-p 0 0 0
";

    #[test]
    fn only_large_private_memory_without_a_file_is_looked_at() {
        let found: Vec<u64> = areas(MAPS).into_iter().map(|area| area.0).collect();
        assert_eq!(found, [0x7f00_0000_0000, 0x7f00_0050_0000]);
    }

    #[test]
    fn of_large_areas_fewer_pages_are_looked_at_and_of_many_areas_fewer_of_each() {
        let mib = |mib: u64| (0, mib << 20);
        let strides = |areas: &[Area]| -> Vec<u64> {
            samples(areas, || 0).into_iter().map(|(_, stride)| stride / PAGE_SIZE).collect()
        };
        // 64 pages: all; 256: every fourth; 10240: 256 of them.
        assert_eq!(strides(&[(0, 64 * PAGE_SIZE), mib(1), mib(40)]), [1, 4, 40]);
        assert_eq!(strides(&[mib(40); 8])[0], 10240_u64.div_ceil(256 / 3));
        let first = samples(&[mib(40)], || 41)[0].0.0;
        assert_eq!(first, PAGE_SIZE);
    }

    #[test]
    fn a_record_has_a_bit_for_each_page_and_the_next_begins_behind() {
        let sample = ((0, 70 * PAGE_SIZE), PAGE_SIZE);
        let made = records(7, sample, |page| match page / PAGE_SIZE {
            0 => Content::Used,
            1 => Content::Zero,
            69 => Content::Zero,
            _ => Content::Absent,
        });
        let fields: Vec<_> =
            made.iter().map(|one| (one.address / PAGE_SIZE, one.pages, one.present, one.zero)).collect();
        assert_eq!(fields, [(0, 64, 0b11, 0b10), (64, 6, 0b10_0000, 0b10_0000)]);
    }

    #[test]
    fn pages_of_a_process_are_told_apart_and_none_is_brought() {
        // More than malloc keeps: fresh from the kernel.
        let mut memory = vec![0u8; 40 << 20];
        let at = |page: u64| (page * PAGE_SIZE) as usize;
        let base = (memory.as_ptr() as u64).next_multiple_of(PAGE_SIZE);
        let start = (base - memory.as_ptr() as u64) as usize;
        // Written: one with zeros, one with something in its last byte. The others were never touched.
        std::hint::black_box(&mut memory)[start + at(3)] = 0;
        memory[start + at(5) - 1] = 1;
        let pid = std::process::id();
        let map = File::open("/proc/self/pagemap").unwrap();
        let mut pages = Pages { pid: Pid::from_raw(pid as i32), map, read: vec![0; PAGE_SIZE as usize] };
        for _ in 0..2 {
            let seen = [2, 3, 4, 5].map(|page| pages.look(base + page * PAGE_SIZE));
            assert_eq!(seen, [Content::Absent, Content::Zero, Content::Used, Content::Absent]);
        }
    }
}

//! What an address meant to a process at a moment.
//!
//! The recorder looks up no mapping in the kernel (it would cost more than the fault); this module replays the rows of
//! `mappings`, `forks` and `execs` instead. Owns that replay. Leaves what a fault or a read *means* to
//! [`crate::io::blocked`] and [`crate::io::insertions`].
//!
//! Rules: an exec begins with an empty address space; a new process starts with a copy of its parent's (also after
//! `vfork`, which shares it until exec); a mapping replaces what it overlaps; an unmapping removes. Only mappings of
//! files are recorded, besides unmappings and anonymous memory mapped over a file, so an address of a known process
//! that no mapping covers is anonymous memory (heap, stack). So counts all that a process touches when its end has been
//! reported: the kernel clears the word that tells its thread id and looks at its robust futexes, which are in no file
//! but for those that processes share.

use crate::integer_hash::IntegerMap;
use slowpath_recording::Tables;
use slowpath_tables::{Bytes, Exec, Exit, FileKey, Fork, Mapping, MappingOp, Nanos, ProcessKey};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What lies behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPlace {
    /// A byte of a mapped file.
    File {
        /// The file, as the mapping named it.
        file: FileKey,
        /// Offset of the byte in the file.
        offset: Bytes,
        /// Protection bits of the mapping when it was made (`PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4).
        prot: u32,
    },
    /// Memory without a file.
    Anonymous,
    /// The process's mappings were not recorded.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    end: u64,
    /// The file and the file offset of the region's first byte; `None` for anonymous memory.
    file: Option<(FileKey, u64)>,
    prot: u32,
}

#[derive(Clone, Debug, Default)]
struct Space {
    /// A child has its parent's until one of them changes them: most execute a program before.
    regions: Rc<BTreeMap<u64, Region>>,
    /// True from the reset of an exec until the program itself changes its mappings: the rows of an exec may stand
    /// before or after the row in `execs`, because the kernel maps the image before it reports the exec.
    fresh: bool,
    /// True when the row in `execs` of the present image was met.
    exec_seen: bool,
}

impl Space {
    fn reset(&mut self, exec_seen: bool) {
        self.regions = Rc::default();
        self.fresh = true;
        self.exec_seen = exec_seen;
    }

    fn remove(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        // Of the regions that begin before `from` only the last can reach into the range: regions do not overlap.
        let before = self.regions.range(..from).next_back().map(|(&start, &region)| (start, region));
        let before = before.filter(|(_, region)| region.end > from);
        let inside: Vec<u64> = self.regions.range(from..to).map(|(&start, _)| start).collect();
        if before.is_none() && inside.is_empty() {
            return;
        }
        let regions = Rc::make_mut(&mut self.regions);
        if let Some((start, region)) = before {
            regions.insert(start, Region { end: from, ..region });
            if region.end > to {
                regions.insert(to, tail(start, region, to));
            }
        }
        for start in inside {
            if let Some(region) = regions.remove(&start)
                && region.end > to
            {
                regions.insert(to, tail(start, region, to));
            }
        }
    }

    fn insert(&mut self, row: &Mapping) {
        let end = row.address.saturating_add(row.length.0);
        if row.address >= end {
            return;
        }
        self.remove(row.address, end);
        let file = match (row.dev, row.ino) {
            (Some(dev), Some(ino)) => Some((FileKey { dev, ino }, row.offset.0)),
            _ => None,
        };
        Rc::make_mut(&mut self.regions).insert(row.address, Region { end, file, prot: row.prot });
    }

    /// What lies around an address: a region, or the gap between two.
    fn stretch(&self, address: u64) -> Stretch {
        let before = self.regions.range(..=address).next_back();
        if let Some((&from, region)) = before.filter(|(_, region)| address < region.end) {
            return Stretch { from, to: region.end, file: region.file, prot: region.prot };
        }
        let from = before.map_or(0, |(_, region)| region.end);
        let next = self.regions.range(address..).next();
        Stretch { from, to: next.map_or(u64::MAX, |(&start, _)| start), file: None, prot: 0 }
    }
}

/// Addresses that mean the same.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    /// The file and the file offset of the first address; `None` for anonymous memory.
    file: Option<(FileKey, u64)>,
    prot: u32,
}

impl Stretch {
    fn holds(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    fn place(&self, address: u64) -> AddressPlace {
        match self.file {
            Some((file, offset)) => {
                let offset = Bytes(offset.saturating_add(address.saturating_sub(self.from)));
                AddressPlace::File { file, offset, prot: self.prot }
            }
            None => AddressPlace::Anonymous,
        }
    }
}

/// What remains of a region from `at` on.
fn tail(start: u64, region: Region, at: u64) -> Region {
    Region { file: region.file.map(|(file, offset)| (file, offset.saturating_add(at - start))), ..region }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Fork(usize),
    Exec(usize),
    Mapping(usize),
    Exit(usize),
}

/// The address spaces of all processes at a moment that only moves forward.
///
/// Going forward only keeps one copy of every address space, whatever the number of questions.
#[derive(Debug)]
pub struct AddressSpaces<'a> {
    forks: &'a [Fork],
    execs: &'a [Exec],
    mappings: &'a [Mapping],
    exits: &'a [Exit],
    events: Vec<(Nanos, Event)>,
    next: usize,
    spaces: IntegerMap<ProcessKey, Space>,
    /// What was asked for last, while nothing has changed: faults come in rows of neighbours.
    last: Option<(ProcessKey, Stretch)>,
}

impl<'a> AddressSpaces<'a> {
    /// Prepares the replay; rows may be in any order, rows of one table at the same instant keep theirs.
    pub fn new(tables: &'a Tables) -> Self {
        let Tables { forks, execs, mappings, exits, .. } = tables;
        let rows = forks.len() + execs.len() + mappings.len() + exits.len();
        let mut events: Vec<(Nanos, Event)> = Vec::with_capacity(rows);
        events.extend(forks.iter().enumerate().filter(|(_, row)| !row.thread).map(|(i, row)| (row.ts, Event::Fork(i))));
        events.extend(execs.iter().enumerate().map(|(i, row)| (row.ts, Event::Exec(i))));
        events.extend(mappings.iter().enumerate().map(|(i, row)| (row.ts, Event::Mapping(i))));
        let ends = exits.iter().enumerate().filter(|(_, row)| row.ends_process());
        events.extend(ends.map(|(i, row)| (row.ts, Event::Exit(i))));
        events.sort_by_key(|(ts, _)| *ts);
        Self { forks, execs, mappings, exits, events, next: 0, spaces: IntegerMap::default(), last: None }
    }

    /// Moves to a moment: everything up to and including it has happened. Moving back does nothing.
    pub fn advance_to(&mut self, ts: Nanos) {
        while let Some(&(at, event)) = self.events.get(self.next)
            && at <= ts
        {
            self.next += 1;
            self.last = None;
            match event {
                Event::Fork(index) => {
                    let row = &self.forks[index];
                    let parent = ProcessKey { pid: row.parent_pid, start: row.parent_start };
                    if let Some(space) = self.spaces.get(&parent) {
                        let copy = Space { regions: Rc::clone(&space.regions), fresh: false, exec_seen: false };
                        self.spaces.insert(row.process(), copy);
                    }
                }
                Event::Exec(index) => {
                    let space = self.spaces.entry(self.execs[index].process()).or_default();
                    if space.fresh && !space.exec_seen {
                        space.exec_seen = true;
                    } else {
                        space.reset(true);
                    }
                }
                Event::Exit(index) => {
                    // Of thousands of processes that have ended nothing is kept.
                    if let Some(space) = self.spaces.get_mut(&self.exits[index].process()) {
                        space.regions = Rc::default();
                    }
                }
                Event::Mapping(index) => {
                    let row = &self.mappings[index];
                    let space = self.spaces.entry(row.process()).or_default();
                    match row.op {
                        MappingOp::Exec => {
                            if !space.fresh {
                                space.reset(false);
                            }
                            space.insert(row);
                        }
                        MappingOp::Map => {
                            space.fresh = false;
                            space.insert(row);
                        }
                        MappingOp::Unmap => {
                            space.fresh = false;
                            space.remove(row.address, row.address.saturating_add(row.length.0));
                        }
                    }
                }
            }
        }
    }

    /// What an address of a process means at the present moment.
    pub fn place(&self, process: ProcessKey, address: u64) -> AddressPlace {
        self.spaces.get(&process).map_or(AddressPlace::Unknown, |space| space.stretch(address).place(address))
    }

    /// [`Self::advance_to`], then [`Self::place`].
    pub fn place_at(&mut self, ts: Nanos, process: ProcessKey, address: u64) -> AddressPlace {
        self.advance_to(ts);
        if let Some((_, stretch)) = self.last.filter(|(key, stretch)| *key == process && stretch.holds(address)) {
            return stretch.place(address);
        }
        let Some(space) = self.spaces.get(&process) else { return AddressPlace::Unknown };
        let stretch = space.stretch(address);
        self.last = Some((process, stretch));
        stretch.place(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: ProcessKey = ProcessKey { pid: 10, start: Nanos(1) };
    const CHILD: ProcessKey = ProcessKey { pid: 11, start: Nanos(5) };

    fn mapping(ts: u64, op: MappingOp, address: u64, length: u64, ino: Option<u64>, offset: u64) -> Mapping {
        Mapping {
            ts: Nanos(ts),
            pid: P.pid,
            start: P.start,
            op,
            address,
            length: Bytes(length),
            prot: 5,
            dev: ino.map(|_| 1),
            ino,
            offset: Bytes(offset),
        }
    }

    fn map(ts: u64, address: u64, length: u64, ino: u64, offset: u64) -> Mapping {
        mapping(ts, MappingOp::Map, address, length, Some(ino), offset)
    }

    fn exec(ts: u64) -> Exec {
        Exec {
            ts: Nanos(ts),
            present: false,
            pid: P.pid,
            start: P.start,
            parent_pid: 1,
            uid: 0,
            gid: 0,
            filename: "/bin/a".to_owned(),
            command_line: "a".to_owned(),
            dev: 1,
            ino: 1,
            min_flt: 0,
            maj_flt: 0,
            run_time: None,
        }
    }

    fn fork(ts: u64) -> Fork {
        Fork {
            ts: Nanos(ts),
            parent_pid: P.pid,
            parent_start: P.start,
            pid: CHILD.pid,
            start: CHILD.start,
            tid: CHILD.pid,
            thread: false,
        }
    }

    fn file(ino: u64, offset: u64) -> AddressPlace {
        AddressPlace::File { file: FileKey { dev: 1, ino }, offset: Bytes(offset), prot: 5 }
    }

    #[test]
    fn an_address_in_a_mapping_is_an_offset_in_its_file() {
        let mappings = vec![map(1, 0x1000, 0x3000, 7, 0x8000)];
        let tables = Tables { mappings, ..Tables::default() };
        let mut spaces = AddressSpaces::new(&tables);
        assert_eq!(spaces.place_at(Nanos(0), P, 0x2010), AddressPlace::Unknown);
        assert_eq!(spaces.place_at(Nanos(1), P, 0x2010), file(7, 0x9010));
        assert_eq!(spaces.place_at(Nanos(1), P, 0x4000), AddressPlace::Anonymous);
    }

    #[test]
    fn a_mapping_replaces_the_middle_of_another() {
        let mappings = vec![
            map(1, 0x1000, 0x5000, 7, 0),
            map(2, 0x2000, 0x1000, 8, 0x100000),
            mapping(3, MappingOp::Map, 0x3000, 0x1000, None, 0),
        ];
        let tables = Tables { mappings, ..Tables::default() };
        let mut spaces = AddressSpaces::new(&tables);
        spaces.advance_to(Nanos(3));
        assert_eq!(spaces.place(P, 0x1fff), file(7, 0xfff));
        assert_eq!(spaces.place(P, 0x2000), file(8, 0x100000));
        assert_eq!(spaces.place(P, 0x3000), AddressPlace::Anonymous);
        assert_eq!(spaces.place(P, 0x4000), file(7, 0x3000));
    }

    #[test]
    fn a_child_keeps_its_copy_when_the_parent_unmaps() {
        let mappings = vec![map(1, 0x1000, 0x1000, 7, 0), mapping(3, MappingOp::Unmap, 0x1000, 0x1000, None, 0)];
        let forks = vec![fork(2)];
        let tables = Tables { mappings, forks, ..Tables::default() };
        let mut spaces = AddressSpaces::new(&tables);
        spaces.advance_to(Nanos(9));
        assert_eq!(spaces.place(P, 0x1000), AddressPlace::Anonymous);
        assert_eq!(spaces.place(CHILD, 0x1000), file(7, 0));
    }

    #[test]
    fn an_exec_resets_whether_its_mappings_stand_before_or_after_its_row() {
        for exec_at in [9, 12] {
            let mappings = vec![
                map(1, 0x1000, 0x1000, 7, 0),
                mapping(10, MappingOp::Exec, 0x5000, 0x1000, Some(8), 0),
                mapping(11, MappingOp::Exec, 0x6000, 0x1000, Some(9), 0),
                map(13, 0x7000, 0x1000, 3, 0),
            ];
            let execs = vec![exec(exec_at)];
            let tables = Tables { mappings, execs, ..Tables::default() };
            let mut spaces = AddressSpaces::new(&tables);
            spaces.advance_to(Nanos(20));
            assert_eq!(spaces.place(P, 0x1000), AddressPlace::Anonymous, "exec at {exec_at}");
            assert_eq!(spaces.place(P, 0x5000), file(8, 0), "exec at {exec_at}");
            assert_eq!(spaces.place(P, 0x6000), file(9, 0), "exec at {exec_at}");
            assert_eq!(spaces.place(P, 0x7000), file(3, 0), "exec at {exec_at}");
        }
    }

    #[test]
    fn an_exec_without_recorded_mappings_leaves_nothing_of_the_old_image() {
        let mappings = vec![map(1, 0x1000, 0x1000, 7, 0)];
        let execs = vec![exec(2)];
        let tables = Tables { mappings, execs, ..Tables::default() };
        let mut spaces = AddressSpaces::new(&tables);
        assert_eq!(spaces.place_at(Nanos(2), P, 0x1000), AddressPlace::Anonymous);
    }

    #[test]
    fn what_a_process_touches_behind_its_end_is_memory_without_a_file() {
        let exit = |ts, last| {
            let rows = format!("== exits\nts pid start tid last\n{ts} 10 1 10 {last}");
            Tables::from_text(&rows).unwrap().exits
        };
        for (last, expected) in [(false, file(7, 0)), (true, AddressPlace::Anonymous)] {
            let tables =
                Tables { mappings: vec![map(1, 0x1000, 0x1000, 7, 0)], exits: exit(3, last), ..Tables::default() };
            let mut spaces = AddressSpaces::new(&tables);
            assert_eq!(spaces.place_at(Nanos(2), P, 0x1000), file(7, 0));
            assert_eq!(spaces.place_at(Nanos(3), P, 0x1000), expected, "last {last}");
        }
    }

    proptest! {
        /// The oracle is one slot a page, written in order.
        #[test]
        fn any_series_of_changes_equals_page_by_page_bookkeeping(
            changes in prop::collection::vec((any::<bool>(), 0u64..40, 1u64..12, 1u64..5), 1..60)
        ) {
            let mut pages: Vec<Option<(u64, u64)>> = vec![None; 64];
            let mut after_each = Vec::new();
            let mappings: Vec<Mapping> = changes
                .iter()
                .enumerate()
                .map(|(i, &(unmap, page, count, ino))| {
                    for offset in 0..count {
                        pages[(page + offset) as usize] = (!unmap).then_some((ino, (i as u64 + offset) * 4096));
                    }
                    after_each.push(pages.clone());
                    let op = if unmap { MappingOp::Unmap } else { MappingOp::Map };
                    mapping(i as u64, op, page * 4096, count * 4096, (!unmap).then_some(ino), i as u64 * 4096)
                })
                .collect();
            let tables = Tables { mappings, ..Tables::default() };
            let mut spaces = AddressSpaces::new(&tables);
            spaces.advance_to(Nanos(1000));
            for (page, expected) in pages.iter().enumerate() {
                let expected = expected.map_or(AddressPlace::Anonymous, |(ino, offset)| file(ino, offset));
                prop_assert_eq!(spaces.place(P, page as u64 * 4096), expected);
            }
            // Asked between the changes, with neighbours one after the other, as faults come.
            let mut spaces = AddressSpaces::new(&tables);
            for (moment, pages) in after_each.iter().enumerate() {
                for (page, expected) in pages.iter().enumerate() {
                    let expected = expected.map_or(AddressPlace::Anonymous, |(ino, offset)| file(ino, offset + 8));
                    prop_assert_eq!(spaces.place_at(Nanos(moment as u64), P, page as u64 * 4096 + 8), expected);
                }
            }
        }
    }
}

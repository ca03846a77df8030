//! Where processes had executable code, by what the probe `mapping` reported: not by what the kernel's side of stacks keeps, which an
//! audit is to check. Pure. Calls that only change protections are not reported by anyone.

use crate::events::{
    EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_MAPPING, FLAG_LAST_THREAD, FLAG_PRESENT, MAPPING_EXEC, event_header,
    exec_event, exit_event, fork_event, mapping_event, record,
};
use slowpath_tables::FileKey;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// `PROT_EXEC` (mmap(2)).
const EXECUTABLE: u32 = 4;

/// An executable mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeMapping {
    /// Addresses.
    pub addresses: Range<u64>,
    /// Offset of the first address in the file, in bytes.
    pub offset: u64,
    /// The file; `None` for the vdso.
    pub file: Option<FileKey>,
    /// Its path, where it is known.
    pub path: Option<PathBuf>,
}

/// The mappings of all processes that live.
#[derive(Default)]
pub(super) struct CodeMappings(HashMap<u32, Arc<Vec<CodeMapping>>>);

impl CodeMappings {
    /// Takes a record of any kind; `path` returns the name of a file.
    pub(super) fn learn(&mut self, kind: u32, bytes: &[u8], path: impl FnOnce(FileKey) -> Option<String>) {
        let Some(header) = record::<event_header>(bytes) else { return };
        match kind {
            EVENT_FORK => {
                if let Some(fork) = record::<fork_event>(bytes).filter(|fork| fork.child_pid == fork.child_tid)
                    && let Some(inherited) = self.0.get(&header.pid).cloned()
                {
                    self.0.insert(fork.child_pid, inherited);
                }
            }
            // Of a process that ran already the mappings may have been reported before.
            EVENT_EXEC if u32::from(header.flags) & FLAG_PRESENT == 0 && bytes.len() >= size_of::<exec_event>() => {
                self.0.remove(&header.pid);
            }
            EVENT_EXIT if u32::from(header.flags) & FLAG_LAST_THREAD != 0 && bytes.len() >= size_of::<exit_event>() => {
                self.0.remove(&header.pid);
            }
            EVENT_MAPPING => {
                if let Some(event) = record::<mapping_event>(bytes) {
                    self.map(&event, path);
                }
            }
            _ => {}
        }
    }

    /// What a process has now.
    pub(super) fn of(&self, pid: u32) -> Arc<Vec<CodeMapping>> {
        self.0.get(&pid).cloned().unwrap_or_default()
    }

    fn map(&mut self, event: &mapping_event, path: impl FnOnce(FileKey) -> Option<String>) {
        let addresses = event.address..event.address.saturating_add(event.length);
        let file = (event.ino != 0 || event.dev != 0).then_some(FileKey { dev: event.dev, ino: event.ino });
        // The one executable mapping without a file that a program begins with is the vdso.
        let is_code = event.prot & EXECUTABLE != 0 && (file.is_some() || event.op == MAPPING_EXEC);
        let known = self.0.entry(event.header.pid).or_default();
        let overlaps = |one: &CodeMapping| one.addresses.start < addresses.end && addresses.start < one.addresses.end;
        if !is_code && !known.iter().any(overlaps) {
            return;
        }
        let known = Arc::make_mut(known);
        let (cut, kept) = std::mem::take(known).into_iter().partition::<Vec<_>, _>(overlaps);
        *known = kept;
        for one in cut {
            known.extend(one.without(&addresses));
        }
        if is_code {
            let path = file.and_then(path).map(PathBuf::from);
            known.push(CodeMapping { addresses, offset: event.offset, file, path });
        }
    }
}

impl CodeMapping {
    /// What is left of it before and behind a range.
    fn without(self, gone: &Range<u64>) -> impl Iterator<Item = Self> {
        let Range { start, end } = self.addresses;
        let part = move |from: u64, to: u64| {
            let offset = self.offset.saturating_add(from.saturating_sub(start));
            (from < to).then(|| Self { addresses: from..to, offset, ..self.clone() })
        };
        [part(start, gone.start.min(end)), part(gone.end.max(start), end)].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{self, MAPPING_MAP, MAPPING_UNMAP};

    fn header(kind: u32, pid: u32, flags: u32) -> event_header {
        event_header { kind: kind as u16, pid, tid: pid, flags: flags as u16, ..Default::default() }
    }

    fn learn_mapping(
        known: &mut CodeMappings,
        pid: u32,
        op: u32,
        addresses: Range<u64>,
        offset: u64,
        ino: u64,
        prot: u32,
    ) {
        let event = mapping_event {
            header: header(EVENT_MAPPING, pid, 0),
            address: addresses.start,
            length: addresses.end - addresses.start,
            dev: u64::from(ino != 0),
            ino,
            offset,
            prot,
            op,
        };
        known.learn(EVENT_MAPPING, &events::bytes_of(&event), |file| Some(format!("/{}", file.ino)));
    }

    fn ranges(known: &CodeMappings, pid: u32) -> Vec<(Range<u64>, u64)> {
        let mut all: Vec<_> = known.of(pid).iter().map(|one| (one.addresses.clone(), one.offset)).collect();
        all.sort_by_key(|one| one.0.start);
        all
    }

    #[test]
    fn what_is_mapped_over_or_unmapped_leaves_the_parts_around_it() {
        let mut known = CodeMappings::default();
        learn_mapping(&mut known, 7, MAPPING_MAP, 0x1000..0x9000, 0x4000, 5, 5);
        // Data over the middle, then an end unmapped.
        learn_mapping(&mut known, 7, MAPPING_MAP, 0x3000..0x5000, 0, 6, 3);
        learn_mapping(&mut known, 7, MAPPING_UNMAP, 0x8000..0xa000, 0, 0, 0);
        assert_eq!(ranges(&known, 7), [(0x1000..0x3000, 0x4000), (0x5000..0x8000, 0x8000)]);
        assert_eq!(known.of(7)[0].path, Some(PathBuf::from("/5")));
        assert_eq!(known.of(8).len(), 0);
    }

    #[test]
    fn a_child_has_its_parents_code_until_it_executes_and_what_was_handed_out_stays() {
        let mut known = CodeMappings::default();
        learn_mapping(&mut known, 7, MAPPING_MAP, 0x1000..0x2000, 0, 5, 5);
        let handed_out = known.of(7);
        let fork = |child: u32, thread: u32| fork_event {
            header: header(EVENT_FORK, 7, 0),
            child_pid: child,
            child_tid: thread,
            ..Default::default()
        };
        let nothing = |_| None;
        known.learn(EVENT_FORK, &events::bytes_of(&fork(7, 71)), nothing);
        known.learn(EVENT_FORK, &events::bytes_of(&fork(8, 8)), nothing);
        learn_mapping(&mut known, 7, MAPPING_UNMAP, 0x1000..0x2000, 0, 0, 0);
        assert_eq!((ranges(&known, 7).len(), ranges(&known, 8).len(), handed_out.len()), (0, 1, 1));
        let exec = |flags: u32| exec_event { header: header(EVENT_EXEC, 8, flags), ..Default::default() };
        known.learn(EVENT_EXEC, &events::bytes_of(&exec(FLAG_PRESENT)), nothing);
        assert_eq!(ranges(&known, 8).len(), 1);
        known.learn(EVENT_EXEC, &events::bytes_of(&exec(0)), nothing);
        assert_eq!(ranges(&known, 8).len(), 0);
    }

    #[test]
    fn executable_memory_without_a_file_is_the_vdso_at_the_begin_and_generated_code_later() {
        let mut known = CodeMappings::default();
        learn_mapping(&mut known, 7, MAPPING_EXEC, 0x1000..0x3000, 0, 0, 5);
        learn_mapping(&mut known, 7, MAPPING_MAP, 0x8000..0x9000, 0, 0, 7);
        assert_eq!(ranges(&known, 7), [(0x1000..0x3000, 0)]);
        assert_eq!(known.of(7)[0].file, None);
    }
}

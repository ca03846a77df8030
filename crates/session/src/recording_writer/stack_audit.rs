//! Recorded stacks compared with what another library finds in copies of their memory, while they are recorded: the files and
//! their mappings are still as they were.
//!
//! What is compared are places of instructions: the recorder has of a caller the last byte of its call, and so has the oracle in
//! what it looks up.

use slowpath_capture::{CodeMapping, CodePlace, StackAudit, StackCopy, WalkFate};
use slowpath_symbols::audit::{Agreement, Files, Mapping, Oracle, compare_frames, vdso_image};
use slowpath_symbols::walk::Registers;
use slowpath_tables::FileKey;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counters of a manifest begin with this for copies of stacks: `same`, `truncated`, `wrong`, `unknown` (full unwinding stopped
/// before it came to a difference), and `left_out` (came faster than they could be compared, or belonged to a stack that was lost).
pub const COPIES: &str = "stack_audit.";

/// And with this for events by how the walk of their stack ended: see [`WalkFate::word`].
pub const EVENTS: &str = "stack_ends.";

/// Copies that wait to be compared: 64 MiB at most.
const WAITING: usize = 2048;

/// How long is compared at a time before other records are taken.
const SLICE: Duration = Duration::from_millis(10);

/// Sets of mappings of which an oracle is kept.
const ORACLES: usize = 16;

/// Files larger than this are not read.
const LARGEST_FILE: u64 = 1 << 30;

/// What the vdso is called among files.
const VDSO: &str = "[vdso]";

/// Compares copies as they come.
#[derive(Default)]
pub struct StackAuditor {
    waiting: VecDeque<StackCopy>,
    files: Files,
    /// The one used last is the last.
    oracles: Vec<(Arc<Vec<CodeMapping>>, Oracle)>,
    counts: BTreeMap<&'static str, u64>,
    events: BTreeMap<WalkFate, u64>,
}

impl StackAuditor {
    /// Takes what is new and compares for some milliseconds.
    pub fn take(&mut self, audit: StackAudit) {
        let room = WAITING.saturating_sub(self.waiting.len());
        let left_out = audit.unmatched + audit.copies.len().saturating_sub(room) as u64;
        *self.counts.entry("left_out").or_default() += left_out;
        self.waiting.extend(audit.copies.into_iter().take(room));
        self.events = audit.events;
        let since = Instant::now();
        while since.elapsed() < SLICE && self.compare_next() {}
    }

    /// Compares the rest. The counters for the manifest.
    pub fn finish(mut self) -> BTreeMap<String, u64> {
        while self.compare_next() {}
        let outcomes = ["same", "truncated", "wrong", "unknown", "left_out"];
        let copies = outcomes.map(|word| (format!("{COPIES}{word}"), self.counts.get(word).copied().unwrap_or(0)));
        let events = self.events.iter().map(|(fate, events)| (format!("{EVENTS}{}", fate.word()), *events));
        copies.into_iter().chain(events).collect()
    }

    /// False when nothing waits.
    fn compare_next(&mut self) -> bool {
        let Some(copy) = self.waiting.pop_front() else { return false };
        // The files are strangers': what makes a parser panic costs the stacks through it and no more.
        let agreement = catch_unwind(AssertUnwindSafe(|| self.compare(&copy))).unwrap_or_else(|_| {
            self.oracles.clear();
            Agreement::Unknown
        });
        let word = match agreement {
            Agreement::Same => "same",
            Agreement::Truncated => "truncated",
            Agreement::Wrong => "wrong",
            Agreement::Unknown => "unknown",
        };
        *self.counts.entry(word).or_default() += 1;
        true
    }

    fn compare(&mut self, copy: &StackCopy) -> Agreement {
        let registers = Registers { ip: copy.ip, sp: copy.sp, bp: copy.bp };
        let known = self.oracle(&copy.mappings).unwind(registers, &copy.memory);
        let places: Vec<CodePlace> = known.lookups.iter().map(|at| CodePlace::of(*at, &copy.mappings)).collect();
        compare_frames(&copy.frames, copy.fate == WalkFate::Whole, &places, known.complete)
    }

    fn oracle(&mut self, mappings: &Arc<Vec<CodeMapping>>) -> &mut Oracle {
        let known = self.oracles.iter().position(|(known, _)| Arc::ptr_eq(known, mappings) || known == mappings);
        let next = match known {
            Some(at) => self.oracles.remove(at),
            None => (Arc::clone(mappings), self.make(mappings)),
        };
        if self.oracles.len() >= ORACLES {
            self.oracles.remove(0);
        }
        self.oracles.push(next);
        let last = self.oracles.len() - 1;
        &mut self.oracles[last].1
    }

    fn make(&mut self, mappings: &[CodeMapping]) -> Oracle {
        let mut readable = Vec::new();
        for mapping in mappings {
            let path = match (mapping.file, &mapping.path) {
                (None, _) => {
                    self.files.learn(Path::new(VDSO), vdso_image);
                    Path::new(VDSO)
                }
                (Some(file), Some(path)) => {
                    self.files.learn(path, || content(path, file));
                    path
                }
                (Some(_), None) => continue,
            };
            readable.push(Mapping {
                path: path.to_owned(),
                addresses: mapping.addresses.clone(),
                offset: mapping.offset,
            });
        }
        Oracle::with(&readable, &self.files)
    }
}

/// The content of the file that was mapped, if it is still the one at its path. Devices have other numbers in some file systems
/// than the kernel's side sees, so the inode decides.
fn content(path: &Path, mapped: FileKey) -> Option<Vec<u8>> {
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.ino() != mapped.ino || metadata.len() > LARGEST_FILE {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

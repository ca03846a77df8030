//! First uses as they come, and the trace that they become.

use super::error::TraceError;
use super::machine::MACHINE;
use super::program::Programs;
use crate::trace_file::{Ended, FirstUse, MOST_USES, TRACE_SCHEMA, Trace, TracedProgram};
use slowpath_process::page_size;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

/// Programs that are listed.
const MOST_PROGRAMS: usize = 1 << 16;
/// Names that are asked for at once, so that no answer is longer than any message.
const AT_ONCE: usize = 1 << 12;

/// A first use by numbers.
#[derive(Clone, Copy, Debug)]
struct Use {
    object: u32,
    at_reader: u32,
    function: u32,
    process: i32,
    time: u64,
}

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Collected {
    all_objects: bool,
    began: Option<Instant>,
    uses: Vec<Use>,
    /// Object, function, process: a file that is mapped twice has its breakpoints twice.
    seen: HashSet<(u32, u32, i32)>,
    programs: Vec<TracedProgram>,
    lost: u64,
}

impl Collected {
    pub fn new(all_objects: bool) -> Self {
        Self { all_objects, began: None, uses: Vec::new(), seen: HashSet::new(), programs: Vec::new(), lost: 0 }
    }

    /// ns since the first exec, which is now if there was none.
    pub fn now(&mut self) -> u64 {
        let began = *self.began.get_or_insert_with(Instant::now);
        u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A program was executed. A process that executes begins anew.
    pub fn executed(&mut self, pid: i32, object: Option<u32>, time: u64) {
        self.seen.retain(|(_, _, process)| *process != pid);
        if self.programs.len() < MOST_PROGRAMS {
            self.programs.push(TracedProgram { pid: pid.cast_unsigned(), object, time });
        }
    }

    /// A function was used.
    pub fn used(&mut self, object: u32, at_reader: u32, function: u32, process: i32) {
        if !self.seen.insert((object, function, process)) {
            return;
        }
        if self.uses.len() >= MOST_USES {
            self.lost += 1;
            return;
        }
        let time = self.now();
        self.uses.push(Use { object, at_reader, function, process, time });
    }

    /// The trace, with the names that the reader knows.
    pub fn finish(self, mut programs: Programs, ended: Ended) -> Result<Trace, TraceError> {
        let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for one in &self.uses {
            wanted.entry(one.at_reader).or_default().push(one.function);
        }
        let mut named = HashMap::new();
        for (object, mut numbers) in wanted {
            numbers.sort_unstable();
            numbers.dedup();
            for some in numbers.chunks(AT_ONCE) {
                let names = programs.reader.names(object, some.to_vec()).map_err(TraceError::Reader)?;
                named.extend(some.iter().map(|number| (object, *number)).zip(names));
            }
        }
        let first_uses = self.uses.iter().map(|one| {
            let function = named.get(&(one.at_reader, one.function)).cloned().unwrap_or_default();
            FirstUse {
                object: one.object,
                address: function.address,
                size: function.size,
                name: function.name,
                time: one.time,
                pid: one.process.cast_unsigned(),
            }
        });
        Ok(Trace {
            schema: TRACE_SCHEMA.to_owned(),
            created: String::new(),
            command: Vec::new(),
            machine: MACHINE.to_owned(),
            page_size: page_size(),
            all_objects: self.all_objects,
            ended,
            first_uses: first_uses.collect(),
            programs: self.programs,
            left_out: programs.left_out(),
            objects: programs.objects,
            lost: self.lost,
        })
    }
}

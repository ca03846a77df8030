//! Densely touched spans that belong together.
//!
//! Owns which: those of processes of one program, from one place. What an allocator maps is one place, whoever called it: how large
//! its mappings are and when its heap grows is its own policy, and one setting concerns them all. Where the program maps memory
//! itself, each call stack is a place.

use crate::findings::allocating_stack::AllocatingStacks;
use crate::findings::heap_trim_churn::groups::MemoryManager;
use crate::memory::huge_page_advice::HugePageAdvice;
use crate::memory::huge_page_spans::{Mapping, Span, Spans};
use crate::processes::Processes;
use slowpath_tables::{Pages, ProcessKey};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Spans from which on a pattern is one: as many as the other patterns of memory demand. With pages of 4 KiB that is 16 MiB and some
/// 4000 faults; the heap of a small program has fewer.
pub const LEAST_SPANS: usize = 8;

/// To whom the machine gives huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To everybody.
    Always,
    /// To who asks for them.
    Asked,
    /// To nobody.
    Never,
}

impl Mode {
    /// The word of the kernel; `None` for one that is not known.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "always" => Some(Self::Always),
            "madvise" => Some(Self::Asked),
            "never" => Some(Self::Never),
            _ => None,
        }
    }

    /// The same.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Asked => "madvise",
            Self::Never => "never",
        }
    }
}

/// Why a span had no huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The machine gives none.
    SwitchedOff,
    /// The machine gives them to who asks, and nobody did.
    NotAsked,
    /// Its mapping did not hold it as a whole when it was touched first.
    GrewLater,
    /// The kernel could have given one and did not.
    NotGiven,
}

impl Cause {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SwitchedOff => "huge pages are switched off on this machine",
            Self::NotAsked => "the machine gives huge pages to who asks for them, and nobody did",
            Self::GrewLater => "the mapping was too small for one when it was touched first, and grew later",
            Self::NotGiven => {
                "the kernel gave none: no free one at that moment, a limit of the cgroup, or a setting of the process \
                 from before the recording (PR_SET_THP_DISABLE)"
            }
        }
    }

    fn of(span: &Span, mode: Mode) -> Self {
        match mode {
            Mode::Never => Self::SwitchedOff,
            Mode::Asked if span.request != HugePageAdvice::Asked => Self::NotAsked,
            _ if !span.was_whole => Self::GrewLater,
            _ => Self::NotGiven,
        }
    }
}

/// Memory of one place that was touched in small pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// Program of the processes. Foreign text.
    pub program: String,
    /// Who decides how it is mapped.
    pub place: MemoryManager,
    /// Spans that were touched densely: numbers, in their order.
    pub spans: Vec<u32>,
    /// For each of them the number of its stack in [`AllocatingStacks`].
    pub stacks: Vec<usize>,
    /// Why they had no huge pages, each with its spans.
    pub causes: BTreeMap<Cause, u64>,
    /// Their processes.
    pub processes: BTreeSet<ProcessKey>,
    /// Mappings that they lie in.
    pub mappings: u64,
    /// Pages of theirs that were not touched.
    pub untouched: Pages,
    /// The same of other spans of this place, which hold a huge page and were touched sparsely.
    pub untouched_elsewhere: Pages,
}

impl Missed {
    /// Whether nothing was asked for in any of the spans.
    pub fn is_unasked(&self) -> bool {
        self.causes.contains_key(&Cause::NotAsked)
    }
}

/// The groups that are large enough. Where the program refuses huge pages, it has decided so: such spans are left out.
pub(crate) fn groups(
    spans: &Spans,
    mode: Mode,
    processes: &Processes,
    stacks: &mut AllocatingStacks<'_>,
) -> Vec<Missed> {
    let mut programs: HashMap<ProcessKey, String> = HashMap::new();
    let mut members: BTreeMap<(String, MemoryManager), Vec<(u32, usize)>> = BTreeMap::new();
    let is_meant = |span: &Span| span.is_whole && !span.has_others && span.request != HugePageAdvice::Refused;
    for (number, span) in (0u32..).zip(&spans.spans).filter(|(_, span)| is_meant(span)) {
        let program = programs.entry(span.process).or_insert_with(|| processes.name(span.process));
        let stack = stacks.number(span.stack);
        let place = stacks.allocator(stack).map_or(MemoryManager::Stack(stack), MemoryManager::Allocator);
        members.entry((program.clone(), place)).or_default().push((number, stack));
    }
    let missed = |((program, place), members): ((String, MemoryManager), Vec<(u32, usize)>)| {
        let span = |number: u32| &spans.spans[number as usize];
        let (dense, others): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(number, _)| spans.is_dense(span(*number)));
        let untouched = |members: &[(u32, usize)]| -> Pages {
            members.iter().map(|(number, _)| spans.pages() - span(*number).touched).sum()
        };
        let mut causes: BTreeMap<Cause, u64> = BTreeMap::new();
        dense.iter().for_each(|(number, _)| *causes.entry(Cause::of(span(*number), mode)).or_default() += 1);
        let mappings: HashSet<Mapping> = dense.iter().map(|(number, _)| span(*number).mapping).collect();
        Missed {
            program,
            place,
            causes,
            processes: dense.iter().map(|(number, _)| span(*number).process).collect(),
            mappings: mappings.len() as u64,
            untouched: untouched(&dense),
            untouched_elsewhere: untouched(&others),
            stacks: dense.iter().map(|(_, stack)| *stack).collect(),
            spans: dense.into_iter().map(|(number, _)| number).collect(),
        }
    };
    members.into_iter().map(missed).filter(|missed| missed.spans.len() >= LEAST_SPANS).collect()
}

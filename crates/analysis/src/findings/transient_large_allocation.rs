//! Finding `transient_large_allocation`: a large block of memory is mapped, touched and released again and again.
//!
//! **What is bad.** Allocators hand large blocks straight to the kernel. Where the program asks for one for each frame, message
//! or file, every page of it is a page fault each time: the kernel finds a page and fills it with zeros, and the program
//! overwrites them. When it is freed, every page is taken away again. None of this stands at the line that allocates; part of
//! it shows in the function that first touches the block, the rest in the kernel, perhaps in another thread.
//!
//! **Cost.** Over all operations (blocks that were mapped, touched and released while recording): time in faults, in which Linux
//! zeroes pages; in mmap; in munmap. In ms, over the whole recording. What the interval says and what is not included stands in
//! [`bill`]. Durations hold what recording a fault itself costs, and lack entering and leaving the kernel, which can weigh more.
//!
//! **Predicted saving.** That of the operations without the first uses: as many blocks as exist at the same time must be mapped
//! once. Where the recording holds a measurement of what blocks cost on its machine, what durations lack or have too much is set
//! right, and the interval holds both what was recorded and what was measured ([`prediction`]). Else it is the cost.
//!
//! **Blocks** are followed by [`crate::memory_blocks`], told apart by [`groups`] and named by [`allocating_stack`]. The heap of
//! brk, which shrinks and grows, is another pattern, and so are mapped files and threads' stacks.
//!
//! **No finding** when there are fewer than [`groups::LEAST_OPERATIONS`] operations, or too many blocks at the same time
//! ([`groups::LEAST_REUSE`]): a large block at start, a growing collection. When blocks are smaller than
//! [`groups::LEAST_LENGTH`]: allocators keep those. When nothing was touched: mapping alone costs next to nothing. When the
//! allocator keeps the blocks itself: then there are no calls. When it costs less than [`LEAST_COST`] or [`LEAST_SHARE`].
//!
//! **Confidence.** The rule and its thresholds stand in [`confidence`].

pub mod allocating_stack;
pub mod bill;
pub mod confidence;
mod evidence;
pub mod groups;
pub mod prediction;

use crate::call_stacks::CallStacks;
use crate::cost_model::CostModel;
use crate::finding::Finding;
use crate::findings::Observation;
use crate::function_weights::{FunctionWeights, heaviest};
use crate::interval::summarize;
use crate::launch_facts::LaunchFacts;
use crate::memory_blocks::{Block, MemoryBlocks, follow};
use crate::shares::cpu_times;
use allocating_stack::{AllocatingStack, AllocatingStacks, Functions};
use bill::Bill;
use groups::Group;
use prediction::Prediction;
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Name of the finding.
pub const NAME: &str = "transient_large_allocation";

/// Least cost: below, a handful of preempted faults could be all of it.
pub const LEAST_COST: Nanos = Nanos(1_000_000);

/// Least share of the CPU time of the processes concerned (of the length of the recording where that is not known). A change
/// of 2 % of a quiet program's CPU time takes some 20 interleaved pairs of runs to be seen, one of 0.5 % some 320, which
/// nobody runs. The video call that taught this pattern paid 1.9 % for it.
pub const LEAST_SHARE: f64 = 0.005;

/// Functions that touch, at most.
const MOST_FUNCTIONS: usize = 10;

/// The pattern in one launch.
struct Found<'a> {
    facts: &'a LaunchFacts<'a>,
    memory: Rc<MemoryBlocks>,
    group: Group,
    bill: Bill,
    /// What keeping the blocks saves by more than durations, or why that is not known.
    prediction: Result<Prediction, &'static str>,
    stack: AllocatingStack,
    /// Share of the CPU time of the processes, or of the length of the recording.
    share: f64,
    is_share_of_cpu: bool,
    touching: Option<FunctionWeights>,
}

impl Found<'_> {
    fn operations(&self) -> impl Iterator<Item = &Block> {
        self.group.operations.iter().map(|number| &self.memory.blocks[*number as usize])
    }

    fn processes(&self) -> BTreeSet<ProcessKey> {
        self.group.peaks.keys().copied().collect()
    }

    fn saving(&self) -> Quantity {
        self.prediction.map_or(self.bill.saving, |prediction| prediction.saving)
    }

    /// What makes it the same in several launches.
    fn key(&self) -> (String, Functions, u32) {
        (self.group.program.clone(), self.stack.functions(), self.bill.length.max(1).ilog2())
    }
}

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub fn find(observation: &Observation<'_>) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<Found<'_>>> = BTreeMap::new();
    for found in observation.launches.iter().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    let most = by_place.into_values().filter(|found| found.len() * 2 > observation.launches.len());
    most.filter_map(finding).collect()
}

fn of_launch<'a>(facts: &'a LaunchFacts<'a>) -> Vec<Found<'a>> {
    let tables = &facts.tables;
    if tables.memory_calls.is_empty() {
        return Vec::new();
    }
    let call_stacks = CallStacks::new(tables);
    let mut stacks = AllocatingStacks::new(&call_stacks);
    let memory = Rc::new(follow(tables));
    let groups = groups::groups(&memory.blocks, &facts.processes, &mut stacks);
    if groups.is_empty() {
        return Vec::new();
    }
    let cpu_times = cpu_times(tables);
    let model = tables.manifest.memory_cost.as_ref().and_then(CostModel::new);
    let faults = bill::faults_of(&groups, &memory);
    let found = groups.into_iter().zip(faults).map(|(group, numbers)| {
        let bill = bill::bill(&group, &memory, &tables.faults, &numbers);
        let cpu: Option<Nanos> = group.peaks.keys().map(|one| cpu_times.get(one).copied().flatten()).sum();
        let whole = cpu.filter(|cpu| cpu.0 > 0).unwrap_or(facts.ended - facts.released);
        let rows = numbers.iter().map(|number| &tables.faults[*number]);
        let rows = rows.map(|fault| (fault.stack, fault.duration.map_or(bill.median_fault as u64, |time| time.0)));
        let touching = heaviest(&call_stacks, rows, MOST_FUNCTIONS);
        Found {
            facts,
            memory: Rc::clone(&memory),
            prediction: prediction::predict(&group, &memory, &bill, model.as_ref()),
            stack: stacks.get(group.stack),
            share: bill.total.value * 1e6 / whole.0.max(1) as f64,
            is_share_of_cpu: cpu.is_some_and(|cpu| cpu.0 > 0),
            group,
            bill,
            touching,
        }
    });
    found.filter(|found| found.bill.total.value >= LEAST_COST.as_ms() && found.share >= LEAST_SHARE).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<Found<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.bill.total.value.total_cmp(&b.bill.total.value));
    let several = (launches.len() > 1).then(|| {
        let values = |of: fn(&Found<'_>) -> f64| launches.iter().map(of).collect::<Vec<_>>();
        let cost = summarize(&values(|found| found.bill.total.value), Unit::Ms)?;
        Some((cost, summarize(&values(|found| found.saving().value), Unit::Ms)?))
    });
    let found = launches.get((launches.len() - 1) / 2)?;
    let several = several.flatten().map(|(cost, saving)| match &found.prediction {
        Ok(one) => (cost, prediction::widened(saving, &one.saving)),
        Err(_) => (cost, saving),
    });
    let (cost, saving) = several.unwrap_or((found.bill.total, found.saving()));

    let mut reasons = Vec::new();
    let confidence = confidence::judge(found.facts, &found.processes(), &found.stack, &found.bill, &mut reasons);
    reasons.extend(saving_reasons(found));
    let mut evidence = vec![
        evidence::bill(found),
        evidence::operations(found),
        evidence::stack(found),
        evidence::touching(found),
        evidence::lifetimes(found),
        evidence::processes(found),
        evidence::saving(found),
        evidence::fixes(found),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let fixes = evidence::ways_out(found).into_iter().map(|way| way.fix.to_owned()).collect();
    Some(Finding {
        name: NAME.to_owned(),
        title: title(found),
        subject: subject(found),
        cost,
        predicted_saving: Some(saving),
        confidence,
        reasons,
        evidence,
        fixes,
        see_by_hand: see_by_hand(found),
    })
}

/// What must be known to read the predicted saving.
fn saving_reasons(found: &Found<'_>) -> Vec<String> {
    let prediction = match &found.prediction {
        Ok(prediction) => prediction,
        Err(why) => {
            return vec![
                "durations hold what recording costs inside a fault, and lack entering and leaving the kernel, which can cost \
                 more: neither is calibrated on this machine"
                    .to_owned(),
                format!("the predicted saving comes from durations alone: {why}"),
                "not included: what zeroing and unmapping displace from caches, interruptions of other processors, work of the \
                 kernel later and elsewhere"
                    .to_owned(),
            ];
        }
    };
    let per_page = prediction.per_page;
    let mut reasons = vec![match prediction.unseen {
        Some(unseen) => format!(
            "the predicted saving has for each fault {:.0} ns ({:.0} to {:.0}) that its duration lacks, less what recording adds to \
             it, as measured before the recording; its interval also holds what as many pages cost then, {:.0} to {:.0} ns each",
            unseen.value, unseen.low, unseen.high, per_page.low, per_page.high
        ),
        None => format!(
            "the predicted saving is what as many pages cost when it was measured before the recording, {:.0} to {:.0} ns each; its \
             interval also holds the durations, which hold what recording costs inside a fault and lack entering and leaving the \
             kernel",
            per_page.low, per_page.high
        ),
    }];
    if prediction.disagrees() {
        reasons.push(format!(
            "durations say {:.1} ms and the measurement {:.1} ms: caches, other processors, scarce memory or a control group make \
             faults dearer or cheaper here than they were then, and threads may have been displaced in them",
            prediction.recorded.value, prediction.calibrated.value
        ));
    }
    reasons.push("not included: interruptions of other processors, work of the kernel later and elsewhere".to_owned());
    reasons
}

fn title(found: &Found<'_>) -> String {
    let (program, operations) = (&found.group.program, found.group.operations.len());
    let size = found.bill.length as f64 / f64::from(1 << 20);
    let who = found.stack.who_asked().map_or(String::new(), |caller| format!(" in {}", short(&caller.function)));
    let of = if found.is_share_of_cpu { "its CPU time" } else { "the recording" };
    format!(
        "{program} maps {size:.2} MiB anew{who}, {operations} times, and gives it back: {:.1} % of {of}",
        found.share * 100.0
    )
}

/// A name that can stand in a line: without parameters, which with templates fill screens.
pub fn short(name: &str) -> String {
    const MOST: usize = 48;
    let name = name.replace("(anonymous namespace)::", "");
    let bare = name.split('(').next().filter(|bare| !bare.is_empty() && !bare.ends_with("operator")).unwrap_or(&name);
    match bare.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &bare[..at]),
        None => bare.to_owned(),
    }
}

fn subject(found: &Found<'_>) -> BTreeMap<String, Value> {
    let mut subject = BTreeMap::from([
        ("process".to_owned(), Value::from(found.group.program.as_str())),
        ("size_bytes".to_owned(), Value::from(found.bill.length)),
        ("stack".to_owned(), Value::from(found.stack.folded())),
        ("share".to_owned(), Value::from((found.share * 1e4).round() / 1e4)),
        ("share_of".to_owned(), Value::from(if found.is_share_of_cpu { "cpu_time" } else { "recording" })),
    ]);
    if let Some(caller) = found.stack.who_asked() {
        subject.insert("function".to_owned(), Value::from(caller.function.as_str()));
        subject.insert("file".to_owned(), Value::from(caller.file.as_str()));
    }
    let processes = found.processes();
    if let (Some(process), 1) = (processes.first(), processes.len()) {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    subject
}

fn see_by_hand(found: &Found<'_>) -> String {
    let processes = found.processes();
    let target = match (processes.first(), processes.len()) {
        (Some(process), 1) => format!("-p {}", process.pid),
        _ => "-p PID".to_owned(),
    };
    format!(
        "as root, while it runs: perf trace -e mmap,munmap {target} lists the calls with their size and duration; \
         perf record -e page-faults --call-graph dwarf {target} shows who touches"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_without_their_parameters_and_cut() {
        assert_eq!(short("(anonymous namespace)::copy_frame(unsigned char const*)"), "copy_frame");
        assert_eq!(short("video::Sink::operator()(Frame&)"), "video::Sink::operator()(Frame&)");
        assert_eq!(short("copy"), "copy");
        assert_eq!(short(&"\u{e9}".repeat(60)), format!("{}...", "\u{e9}".repeat(48)));
    }
}

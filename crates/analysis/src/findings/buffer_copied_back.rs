//! Finding `buffer_copied_back`: data are copied into a block of memory and copied back out of it.
//!
//! **What is bad.** A copy is made to have something to work on or to hand on, and what it was made from is overwritten with it, or
//! filled again from it. Where the data can be looked at in place, neither copy is needed. In a profile both are one library function
//! among others, and two callers that have nothing to do with each other.
//!
//! **Evidence.** CPU samples of code that copies ([`super::copying_code`]: the list of functions, and which registers hold the two
//! places) with an address in a block that memory calls tell of ([`crate::memory::memory_blocks`]). A place that is written to lies in the
//! block: a copy in. A place that is read from: a copy back. Both must be of one block, or of blocks of one call stack that are seen
//! in both directions, in one process, at the same offsets: [`round_trips`]. Of blocks that live for less than a period of the samples it is
//! the faults, where their call stacks were recorded, that tell which of them the copy in filled before they were read.
//!
//! **Cost.** CPU time of both copies: samples in user code times their period, with the interval of [`super::sampled_time`]. Samples in
//! the kernel below a copy are not in it: they are page faults, which [`super::transient_large_allocation`] counts. So nothing is counted
//! twice.
//!
//! **Predicted saving.** The two copies; each stands in the evidence by itself. A copy in also brings data into caches, which whoever
//! looks at them in place has to do too, at worst at the price of that copy: the low end of the interval is that of the cheaper copy
//! alone.
//!
//! **No finding** with fewer than [`round_trips::LEAST_SAMPLES`] samples in a direction. Where copies go one way: into a block that is
//! consumed, out of one that is produced, from one block to the next (a queue: the memory that data come from and the memory that they go
//! to are known, and two). Where other offsets are read than were written ([`round_trips::LEAST_OVERLAP`]): a header. Where data
//! are moved inside a block. When it costs less than [`super::materiality`] demands. Nor where nothing is known: without memory calls,
//! CPU samples and the addresses in them; for blocks that were mapped before the recording, the heap of brk and mapped files; for
//! copies by code that is not known to copy (loops of a program's own, functions whose names are missing).
//!
//! **Confidence.** The rule stands in [`confidence`].

pub mod confidence;
mod evidence;
pub(crate) mod filled_blocks;
mod found;
pub mod round_trips;

use super::allocating_stack::AllocatingStack;
use super::doubts::Doubts;
use super::materiality;
use super::memory_evidence::{fix_inputs, perf_target, remedy_rows, short, stack, subject};
use super::memory_use::MemoryUse;
use super::sampled_time::sampled_time;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Finding};
use crate::interval::summarize;
use crate::memory::memory_fixes::AVOID_COPY;
use crate::needs::Need;
use found::CopiedBuffer;
use serde_json::Value;
use slowpath_tables::{Quantity, Unit};
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "buffer_copied_back";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "data copied into a buffer and back out",
    what: "Data are copied into a block to work on it, and copied back to where they came from.",
    why: "Both copies take CPU time and cache space; where the data can be used in place, neither is needed.",
    helps: "avoid_copy: work on the data where they are. Trade-off: the data's owner must not change them meanwhile.",
    by_hand: "perf record --call-graph dwarf -p PID shows the time in memcpy and its callers; the registers at its \
              entry (perf probe) show the two addresses",
    threshold: materiality::THRESHOLD,
    needs: &[Need::MemoryCalls, Need::CpuSamples],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.memory),
};

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<CopiedBuffer<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<CopiedBuffer<'a>> {
    let Some(hertz) = memory.facts.tables.manifest.cpu_sample_hz() else { return Vec::new() };
    let found = memory.round_trips.iter().map(|trip| {
        let cost = sampled_time(trip.copied_in.samples + trip.copied_back.samples, hertz);
        let share = memory.share_of(cost.value, trip.processes.iter().copied());
        CopiedBuffer { memory, trip, hertz, cost, share, allocates: memory.stacks.get(trip.stack) }
    });
    found.filter(|found| found.share.is_material()).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<CopiedBuffer<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.value.total_cmp(&b.cost.value));
    let found = launches.get((launches.len() - 1) / 2)?;
    let values: Vec<f64> = launches.iter().map(|found| found.cost.value).collect();
    let several = (launches.len() > 1).then(|| summarize(&values, Unit::Ms)).flatten();
    let cost = several.unwrap_or(found.cost);
    let low = launches.iter().filter_map(|found| found.saving().low).fold(f64::INFINITY, f64::min);
    let saving = Quantity { low: Some(low.min(cost.value)), ..cost };

    let Doubts { confidence, mut reasons } = confidence::judge(found);
    reasons.push(
        "the saving is that of both copies, its low end that of the cheaper one: a copy also brings data into caches, which looking at \
         them in place has to do too; not in the interval: samples come at regular times, with which work can keep step"
            .to_owned(),
    );
    let (copies_in, copies_back) = (found.main_site(&found.trip.copied_in), found.main_site(&found.trip.copied_back));
    let allocates = if found.trip.is_heap {
        "The call stack that mapped the heap that the block is in, for whatever it needed first; the innermost function first."
    } else {
        "The call stack that mapped the block, the innermost function first; asked marks the first that is not the allocator's."
    };
    let remedies = [evidence::remedy(found)];
    let mut evidence = vec![
        evidence::copies(found),
        evidence::sites(found),
        stack(allocates, &found.allocates),
        remedy_rows(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.trip.program, &found.trip.processes, &copies_back, &found.share);
    let functions = [("copied_in_by", &copies_in), ("allocated_by", &found.allocates)];
    for (name, stack) in functions.into_iter().filter(|(name, _)| !found.trip.is_heap || *name == "copied_in_by") {
        about.extend(stack.who_asked().map(|caller| (name.to_owned(), Value::from(caller.function.as_str()))));
    }
    if !found.trip.is_heap {
        about.insert("size_bytes".to_owned(), Value::from(found.trip.length.0));
    }
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: title(found, &copies_in, &copies_back, confidence),
        subject: about,
        cost,
        predicted_saving: Some(saving),
        confidence,
        reasons,
        evidence,
        fixes: vec![AVOID_COPY.to_owned()],
        fix_inputs: fix_inputs(&remedies),
        see_by_hand: see_by_hand(found),
    })
}

fn title(found: &CopiedBuffer<'_>, into: &AllocatingStack, back: &AllocatingStack, confidence: Confidence) -> String {
    let who =
        |stack: &AllocatingStack| stack.who_asked().map_or("unknown code".to_owned(), |caller| short(&caller.function));
    let size = found.trip.length.0 as f64 / 1024.0;
    let block = match size {
        _ if found.trip.is_heap => "blocks of its heap".to_owned(),
        _ if size < 1024.0 => format!("a block of {size:.0} KiB"),
        _ => format!("a block of {:.2} MiB", size / 1024.0),
    };
    let perhaps = if confidence == Confidence::Low { "possibly " } else { "" };
    let (program, share) = (&found.trip.program, found.share.words());
    format!("{program} {perhaps}copies into {block} ({}) and back out of it ({}): {share}", who(into), who(back))
}

fn see_by_hand(found: &CopiedBuffer<'_>) -> String {
    let target = perf_target(&found.trip.processes);
    let registers = if cfg!(target_arch = "aarch64") { "x0,x1" } else { "di,si" };
    format!(
        "as root, while it runs: perf record -e cpu-clock -F {} --user-regs={registers} --call-graph dwarf {target}, then perf script \
         -F tid,ip,sym,uregs: the registers of samples in memmove, beside the ranges of perf trace -e mmap,munmap {target}",
        found.hertz
    )
}

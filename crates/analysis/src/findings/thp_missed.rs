//! Finding `thp_missed`: memory that stays was touched densely in small pages where huge pages would have held it.
//!
//! **What is bad.** The first touch of each page of 4 KiB is a fault: the kernel is entered, finds a page, fills it with zeros. A huge
//! page is one fault for 2 MiB. Programs that fill hundreds of MiB and keep them pay hundreds of thousands of faults, and the kernel
//! would have spared them; but on most machines it gives huge pages only to who asks, and hardly any program does.
//!
//! **Cost.** The time of the first faults of all pages in such spans, with what their durations lack, where that was measured
//! ([`cost`]). In ms, over the whole recording.
//!
//! **Predicted saving.** The cost less what huge pages cost instead: they are zeroed too ([`prediction`]). Not predicted are fewer
//! misses of address translation, which can be worth more than the faults to programs that jump about in their memory. The price
//! is memory: pages that nobody touched become resident (`untouched_bytes`).
//!
//! **Spans** are followed by [`crate::memory::huge_page_spans`], which says when one is touched densely; they are distinguished by [`groups`].
//!
//! **No finding** for sparse touches, and mappings that hold no aligned huge page; for shared memory and files. For memory that has
//! huge pages: then there is one fault for each. For blocks that are mapped again and again
//! ([`super::transient_large_allocation`]), and spans of which pages were given back and touched again ([`super::heap_trim_churn`]):
//! they do not stay, and their faults are counted there. Where the program refuses huge pages, by `MADV_NOHUGEPAGE` or
//! `PR_SET_THP_DISABLE`: it has decided so. For fewer than [`groups::LEAST_SPANS`] spans, for a cost, or a saving where it is known,
//! below what [`super::materiality`] demands. Where the recording does not say how its machine gives huge pages.
//!
//! **Confidence.** The rule and its thresholds stand in [`super::memory_confidence`]; besides, it is medium at most where the saving is
//! not known, and where the kernel gave no huge pages though it could have: why is not recorded.

pub mod cost;
mod evidence;
mod found;
pub mod groups;
pub mod prediction;

use super::doubts::Doubts;
use super::materiality;
use super::memory_confidence::{Claim, judge, off_cpu};
use super::memory_evidence::{MOST_FUNCTIONS, in_function, perf_target, processes, stack, subject, touching};
use super::memory_use::MemoryUse;
use super::transient_large_allocation::prediction::widened;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Finding};
use crate::interval::summarize;
use crate::memory::cost_model::{CostModel, when_measured};
use crate::memory::memory_fixes::HUGE_PAGES;
use crate::needs::Need;
use crate::stacks::function_weights::heaviest;
use found::{MissedHugePages, stacks};
use groups::{Cause, Mode};
use serde_json::Value;
use slowpath_tables::{Nanos, Quantity, Unit};
use std::collections::BTreeMap;

/// Name of the finding.
pub const NAME: &str = "thp_missed";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "dense memory in 4 KiB pages that transparent huge pages (THP) would have held",
    what: "Long-lived memory is touched densely in 4 KiB pages, in ranges where aligned huge pages would fit.",
    why: "The first touch of each 4 KiB page is a fault; a huge page is one fault for 2 MiB. Most machines use THP only on request \
        (madvise).",
    helps: "huge_pages (glibc.malloc.hugetlb for malloc), advise_huge_pages in the source. Trade-off: untouched pages become resident too.",
    by_hand: "grep -E 'AnonHugePages|Rss' /proc/PID/smaps shows what is huge; perf stat -e \
              page-faults,dTLB-load-misses the difference with GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
    threshold: materiality::THRESHOLD,
    needs: &[Need::MemoryCalls, Need::Faults],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.memory),
};

/// Looks for the pattern in launches of one command; where there are several, in more than half of them.
pub(super) fn find<'a>(launches: &'a [Option<MemoryUse<'a>>]) -> Vec<Finding> {
    let mut by_place: BTreeMap<_, Vec<MissedHugePages<'_>>> = BTreeMap::new();
    for found in launches.iter().flatten().flat_map(of_launch) {
        by_place.entry(found.key()).or_default().push(found);
    }
    by_place.into_values().filter(|found| found.len() * 2 > launches.len()).filter_map(finding).collect()
}

fn of_launch<'a>(memory: &'a MemoryUse<'a>) -> Vec<MissedHugePages<'a>> {
    let Some(mode) = memory.huge_pages else { return Vec::new() };
    let tables = &memory.facts.tables;
    let faults = memory.faults();
    let model = tables.manifest.memory_cost.as_ref().and_then(CostModel::new);
    let numbers = cost::faults_of(&memory.missed, &memory.spans);
    let found = memory.missed.iter().zip(numbers).map(|(group, numbers)| {
        let cost = cost::cost(&memory.spans, &faults, &numbers, model.as_ref());
        let time = |row: usize| faults.time(row).map_or(cost.faults.median as u64, |time| time.0);
        let rows = numbers.iter().map(|row| (faults.rows[*row].stack, time(*row)));
        MissedHugePages {
            memory,
            mode,
            prediction: prediction::predict(group, &memory.spans, &cost, mode, model.as_ref()),
            stack: stacks(group, &cost).first().map(|(stack, _)| memory.stacks.get(*stack)).unwrap_or_default(),
            share: memory.share_of(cost.total.value, group.processes.iter().copied()),
            touching: heaviest(memory.call_stacks, rows, MOST_FUNCTIONS),
            group,
            cost,
        }
    });
    found.filter(MissedHugePages::is_material).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<MissedHugePages<'_>>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.total.value.total_cmp(&b.cost.total.value));
    let found = launches.get((launches.len() - 1) / 2)?;
    let several = |of: fn(&MissedHugePages<'_>) -> Option<Quantity>| {
        let values: Vec<f64> = launches.iter().filter_map(|found| Some(of(found)?.value)).collect();
        (values.len() > 1).then(|| summarize(&values, Unit::Ms)).flatten()
    };
    let cost = several(|found| Some(found.cost.total)).unwrap_or(found.cost.total);
    // What one launch is uncertain of by itself, several are too.
    let saving =
        found.saving().map(|one| several(|found| found.saving()).map_or(one, |several| widened(several, &one)));

    let pays = &found.group.processes;
    let claim = Claim {
        facts: found.memory.facts,
        processes: pays,
        stack: &found.stack,
        faults: &found.cost.faults,
        total: &found.cost.total,
        perhaps_huge: false,
    };
    let Doubts { mut confidence, mut reasons } = judge(&claim);
    if found.group.causes.contains_key(&Cause::NotGiven) {
        confidence = confidence.min(Confidence::Medium);
        reasons.push("why the kernel gave no huge pages though it could have is not recorded".to_owned());
    }
    if let Err(why) = found.prediction {
        confidence = confidence.min(Confidence::Medium);
        reasons.push(format!("what huge pages would save is not known: {why}"));
    }
    reasons.extend(off_cpu(&found.memory.facts.tables, &found.cost.faults, Nanos(0)));
    reasons.extend(figures(found));

    let remedies = evidence::remedies(found);
    let asked = "The call stack that mapped most of the memory, the innermost function first; asked marks the first that is not \
                 the allocator's.";
    let mut evidence = vec![
        evidence::cost(found),
        evidence::spans(found),
        evidence::causes(found),
        stack(asked, &found.stack),
        evidence::places(found),
        touching("The functions that touched the pages first, by time in faults.", found.touching.as_ref()),
        processes(found.group.spans.iter().map(|span| {
            let time = found.cost.of_span.get(span).copied().unwrap_or_default();
            (found.memory.spans.spans[*span as usize].process, time)
        })),
        evidence::saving(found),
        super::memory_evidence::remedy_rows(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut about = subject(&found.group.program, pays, &found.stack, &found.share);
    let bytes = found.group.spans.len() as u64 * found.memory.spans.size.0;
    about.insert("size_bytes".to_owned(), Value::from(bytes));
    about.insert("mode".to_owned(), Value::from(found.mode.as_str()));
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: title(found),
        subject: about,
        cost,
        predicted_saving: saving,
        confidence,
        reasons,
        evidence,
        fixes: remedies.iter().map(|remedy| remedy.fix.to_owned()).collect(),
        fix_inputs: super::memory_evidence::fix_inputs(&remedies),
        see_by_hand: see_by_hand(found, remedies.iter().any(|remedy| remedy.fix == HUGE_PAGES)),
    })
}

/// What must be known to read the figures.
fn figures(found: &MissedHugePages<'_>) -> Vec<String> {
    let mut reasons = vec![match found.cost.unseen {
        Some(unseen) => format!(
            "the cost has for each fault {:.0} ns ({:.0} to {:.0}) that its duration lacks, less what recording adds to it, as measured {}",
            unseen.value,
            unseen.low,
            unseen.high,
            when_measured(&found.memory.facts.tables.manifest)
        ),
        None => "durations hold what recording costs inside a fault, and lack entering and leaving the kernel, which can cost more: \
                 neither is calibrated on this machine"
            .to_owned(),
    }];
    if found.mode == Mode::Never {
        reasons.push(
            "huge pages are switched off for the whole machine: to have them, root writes madvise to \
             /sys/kernel/mm/transparent_hugepage/enabled, and the memory of programs that ask for them grows"
                .to_owned(),
        );
    }
    reasons.push(
        "the predicted saving holds no effect on address translation (fewer misses), nor that one page is given back faster than \
         hundreds: the measured one of a trial does"
            .to_owned(),
    );
    let (within, elsewhere) = (found.group.untouched.bytes().0, found.group.untouched_elsewhere.bytes().0);
    reasons.push(format!(
        "the price is memory: {within} bytes of these spans were not touched and would become resident, and {elsewhere} bytes of \
         sparsely touched ones of the same place where those have huge pages too"
    ));
    reasons
}

fn title(found: &MissedHugePages<'_>) -> String {
    let (program, spans) = (&found.group.program, found.group.spans.len());
    let size = (spans as u64 * found.memory.spans.size.0) as f64 / f64::from(1 << 20);
    let (who, share) = (in_function(&found.stack), found.share.words());
    let faults = found.cost.faults.count;
    format!(
        "{program} maps {size:.0} MiB{who} and touches them in {faults} small pages, where {spans} huge ones fit: {share}"
    )
}

/// Settings of glibc are of use only where they are offered.
fn see_by_hand(found: &MissedHugePages<'_>, heeds_glibc: bool) -> String {
    let target = perf_target(&found.group.processes);
    let pid = target.trim_start_matches("-p ");
    let with = if heeds_glibc { ", as it is and with GLIBC_TUNABLES=glibc.malloc.hugetlb=1" } else { "" };
    format!(
        "while it runs: Rss beside AnonHugePages in /proc/{pid}/smaps shows which mappings have none; perf stat -e minor-faults {target} \
         counts the faults{with}"
    )
}

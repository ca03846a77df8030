//! Finding `background_reclaim`: kernel threads work for the memory of a program, and nobody sees that at the program.
//!
//! **What is bad.** A program that allocates much, or asks for huge pages late, leaves work behind: kswapd reclaims pages, kcompactd
//! moves them together, khugepaged copies small pages into a huge one. It is paid by threads that belong to nobody.
//!
//! **Cost.** CPU time of these threads while recording went on, times the share that the program's processes caused. How shares are got,
//! and what is nobody's, stands in [`crate::memory::background_reclaim`]. In ms, over the whole recording; the interval is that of the shares.
//! Threads of the kernel take no fault of a program, so nothing of it is in any other finding.
//!
//! **Not part of it**: what a thread of the program reclaims, moves or collapses itself (direct reclaim, a cgroup at its limit,
//! `MADV_COLLAPSE`). That time is in its own faults and calls, which other findings count; it is reported as evidence only.
//!
//! **Predicted saving.** None: what is left of it when the program allocates less depends on how much memory is free then.
//!
//! **No finding** when the share is not known: a thread that nobody woke, or without the probe that reports wake-ups. When it costs
//! less than [`super::materiality`] demands, beside the CPU time of the program.
//!
//! **Confidence.** The rule stands in [`confidence`].

mod confidence;
mod evidence;
mod found;

use super::doubts::Doubts;
use super::kept_blocks::kept;
use super::materiality::{self, CostShare, CpuTimes};
use super::memory_evidence::{perf_target, rounded};
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Finding, row};
use crate::fix_inputs::FixInputs;
use crate::interval::summarize;
use crate::launch_facts::LaunchFacts;
use crate::memory::background_reclaim::{BackgroundReclaim, Task, sum};
use crate::needs::Need;
use crate::time::usage::own_cpu_times;
use found::ReclaimCost;
use serde_json::Value;
use slowpath_tables::{ProcessKey, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the finding.
pub const NAME: &str = "background_reclaim";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &["deferred_memory_cost"],
    title: "reclaim and compaction by kernel threads",
    what: "Memory that the program uses makes kswapd reclaim pages, kcompactd move them, or khugepaged copy them into \
           huge pages.",
    why: "The work is charged to kernel threads, so no profile of the program shows it; it takes CPU time from all processes.",
    helps: "Use less memory at once, keep buffers instead of freeing them (reuse_buffer), ask for huge pages before \
            the first touch. Trade-off: see the finding.",
    by_hand: "before and after the run: cat /proc/$(pgrep -x kswapd0)/schedstat (the first number, ns) and grep -E \
              'pgscan_kswapd|compact_|thp_collapse' /proc/vmstat",
    threshold: materiality::THRESHOLD,
    needs: &[Need::KernelThreads],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.observation.launches, &kept(input.found)),
};

/// Looks for it in launches of one command; where there are several, in more than half of them. `kept` are the programs of which
/// another finding says which blocks to keep, and where they are asked for.
pub(super) fn find(launches: &[LaunchFacts<'_>], kept: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut by_program: BTreeMap<String, Vec<ReclaimCost<'_>>> = BTreeMap::new();
    for found in launches.iter().flat_map(of_launch) {
        by_program.entry(found.program.clone()).or_default().push(found);
    }
    let found = by_program.into_values().filter(|found| found.len() * 2 > launches.len());
    found.filter_map(|found| finding(found, kept)).collect()
}

fn of_launch<'a>(facts: &'a LaunchFacts<'a>) -> Vec<ReclaimCost<'a>> {
    let Some(memory) = BackgroundReclaim::of(facts) else { return Vec::new() };
    let mut programs: BTreeMap<String, BTreeSet<ProcessKey>> = BTreeMap::new();
    for process in memory.processes() {
        programs.entry(facts.processes.name(*process)).or_default().insert(*process);
    }
    let costs = programs.into_iter().map(|(program, processes)| {
        let threads = memory.costs(&processes);
        let cost = sum(&threads);
        (program, processes, threads, cost)
    });
    let costs: Vec<_> = costs.filter(|(.., cost)| cost.value > 0.0).collect();
    // Most recordings end here.
    let times = if costs.is_empty() { CpuTimes::default() } else { own_cpu_times(facts) };
    let found = costs.into_iter().map(|(program, processes, threads, cost)| {
        let share = CostShare::new(cost.value, processes.iter().copied(), &times, facts);
        ReclaimCost { facts, memory: memory.clone(), program, processes, threads, cost, share }
    });
    found.filter(|found| found.share.is_material()).collect()
}

/// Details are those of the launch in the middle: figures of several launches would not add up.
fn finding(mut launches: Vec<ReclaimCost<'_>>, kept: &BTreeMap<String, String>) -> Option<Finding> {
    launches.sort_by(|a, b| a.cost.value.total_cmp(&b.cost.value));
    let found = launches.get((launches.len() - 1) / 2)?;
    let values: Vec<f64> = launches.iter().map(|found| found.cost.value).collect();
    let several = (launches.len() > 1).then(|| summarize(&values, Unit::Ms)).flatten();

    let Doubts { confidence, reasons } = confidence::judge(found);
    let remedies = evidence::remedies(found, kept.get(&found.program).map(String::as_str));
    let mut evidence = vec![
        evidence::threads(found),
        evidence::shares(found),
        evidence::counters(found),
        evidence::processes(found),
        evidence::direct(found),
        evidence::reducing(&remedies),
    ];
    evidence.retain(|evidence| !evidence.rows.is_empty());
    let mut fixes: Vec<String> = remedies.iter().filter_map(|(fix, _)| fix.map(str::to_owned)).collect();
    fixes.dedup();
    let by_fix = remedies.iter().filter_map(|(fix, how)| Some(((*fix)?.to_owned(), how.clone())));
    let fix_inputs = FixInputs { ways: by_fix.collect(), ..FixInputs::default() };
    let mut subject = row([
        ("process", Value::from(found.program.as_str())),
        ("threads", Value::from(found.charged().map(|thread| thread.thread.as_str()).collect::<Vec<_>>().join(", "))),
        ("share", rounded(found.share.share, 4)),
        ("share_of", Value::from(found.share.of())),
    ]);
    if let (Some(process), 1) = (found.processes.first(), found.processes.len()) {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    Some(Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: title(found),
        subject,
        cost: several.unwrap_or(found.cost),
        predicted_saving: None,
        confidence,
        reasons,
        evidence,
        fixes,
        fix_inputs,
        see_by_hand: see_by_hand(found),
    })
}

fn title(found: &ReclaimCost<'_>) -> String {
    let made = found.charged().flat_map(|thread| &thread.ways);
    let made: f64 =
        made.filter(|way| way.way == crate::memory::background_reclaim::Attribution::HugePages).map(|way| way.of).sum();
    let mut done = Vec::new();
    if found.charges(Task::Reclaim) {
        done.push("kswapd reclaim pages".to_owned());
    }
    if found.charges(Task::Compaction) {
        done.push("kcompactd move pages".to_owned());
    }
    match (found.charges(Task::HugePages), made as u64) {
        (true, 0) => done.push("khugepaged look for huge pages".to_owned()),
        (true, 1) => done.push("khugepaged make a huge page of small ones".to_owned()),
        (true, made) => done.push(format!("khugepaged make {made} huge pages of small ones")),
        (false, _) => {}
    }
    let ms = found.cost.value;
    format!("{} has {}: {ms:.1} ms of others' time, as much as {}", found.program, done.join(", "), found.share.words())
}

fn see_by_hand(found: &ReclaimCost<'_>) -> String {
    let threads: Vec<&str> = found.charged().map(|thread| thread.thread.as_str()).collect();
    let event = match (found.charges(Task::HugePages), found.charges(Task::Reclaim)) {
        (true, _) => "huge_memory:mm_collapse_huge_page",
        (false, true) => "vmscan:mm_vmscan_wakeup_kswapd",
        (false, false) => "compaction:mm_compaction_wakeup_kcompactd",
    };
    format!(
        "before and after the run: cat /proc/$(pgrep -x {})/schedstat (the first number, ns) and grep -E 'pgalloc|pgscan_kswapd|\
         compact_|thp_collapse' /proc/vmstat; as root, while it runs ({}): perf record -a -e {event} shows on whose behalf",
        threads.first().copied().unwrap_or("kswapd0"),
        perf_target(&found.processes),
    )
}

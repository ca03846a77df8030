//! Adding up one recording.

use super::sources::sources;
use super::{FindingCost, FindingKey, Measure, RecordedMetrics, Source};
use crate::declaration::ShowsIn;
use crate::findings::{self, Observation, of_observation};
use crate::io::demand::NeededUnknown;
use crate::launch_facts::LaunchFacts;
use crate::memory::background_reclaim::{BackgroundReclaim, sum};
use crate::memory::memory_calls::DISCARDS;
use crate::processes::kernel_threads;
use crate::stacks::attribution::{AttributedFunction, Attribution};
use crate::stacks::call_stacks::CallStacks;
use crate::time::ledger::ledger;
use crate::time::usage::{Usage, stale_ends, usage};
use slowpath_recording::{Manifest, ProbeState, Tables};
use slowpath_tables::{MemoryCall, MemoryCallKind, Nanos, ProcessKey};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::slice::from_ref;

/// Flag of mmap: address space alone, as allocators reserve it for a thread (`include/uapi/asm-generic/mman-common.h`).
const MAP_NORESERVE: u32 = 0x4000;

/// Unknown durations and stacks are shown from this share on.
const LEAST_DOUBT: f64 = 0.01;

/// Everything that a recording cost. Rows may be in any order.
pub fn recorded_metrics(tables: &Tables) -> RecordedMetrics {
    let facts = LaunchFacts::new(tables);
    let tables = &*facts.tables;
    let manifest = &tables.manifest;
    let usage = usage(tables);
    let kernel_threads = kernel_threads(tables);
    let names: HashMap<ProcessKey, String> = usage
        .processes
        .iter()
        .map(|one| (one.process, program(&one.name, kernel_threads.contains(&one.process))))
        .collect();
    let mut costs = RecordedMetrics {
        command: manifest.command.clone(),
        program: recorded_program(manifest),
        length: length(&facts),
        is_launch: facts.ready.is_some(),
        sources: sources(tables, &usage),
        probes: manifest
            .probes
            .iter()
            .filter(|probe| probe.state == ProbeState::Attached)
            .map(|probe| probe.name.clone())
            .collect(),
        losses: manifest.losses.clone(),
        unavailable: manifest.unavailable.iter().cloned().chain(stale_ends(tables)).collect(),
        host: manifest.host.clone(),
        ..RecordedMetrics::default()
    };
    if !kernel_threads.is_empty() {
        costs.sources.insert(Source::KernelThreads);
    }
    add_totals(&mut costs, &facts, &usage, &kernel_threads);
    add_programs(&mut costs, tables, &usage, &names);
    add_functions(&mut costs, tables);
    add_ledger(&mut costs, tables, &names);
    add_findings(&mut costs, &facts);
    add_doubts(&mut costs, tables, &usage);
    costs
}

/// A process's name; that of a kernel thread as `ps` shows it, without its number: `[kworker]` for `kworker/0:1`.
fn program(name: &str, is_kernel: bool) -> String {
    if is_kernel { format!("[{}]", name.split('/').next().unwrap_or(name)) } else { name.to_owned() }
}

/// What was recorded: the command's base name, or the words for running processes without their pids: `video (77)`.
fn recorded_program(manifest: &Manifest) -> String {
    if manifest.launch.is_some() {
        let path = manifest.command.first().map_or("", String::as_str);
        return path.rsplit('/').next().unwrap_or(path).to_owned();
    }
    let is_pid = |word: &str| {
        let digits = word.trim_end_matches(',').strip_prefix('(').and_then(|word| word.strip_suffix(')'));
        digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
    };
    let words = manifest.command.join(" ");
    words.split(' ').filter(|word| !is_pid(word)).collect::<Vec<_>>().join(" ")
}

fn length(facts: &LaunchFacts<'_>) -> Nanos {
    let manifest = &facts.tables.manifest;
    if manifest.launch.is_some() { facts.duration() } else { facts.ended - manifest.started }
}

fn milliseconds(time: Nanos) -> f64 {
    time.as_ms()
}

/// Milliseconds of one CPU sample.
fn per_sample(manifest: &Manifest) -> Option<f64> {
    Some(1000.0 / manifest.cpu_sample_hz()? as f64)
}

/// Whether a call gives memory back.
fn releases(call: &MemoryCall) -> bool {
    match call.call {
        MemoryCallKind::Munmap => true,
        MemoryCallKind::Brk => call.shrinks,
        MemoryCallKind::Madvise => DISCARDS.contains(&call.argument),
        MemoryCallKind::Mmap | MemoryCallKind::Mremap | MemoryCallKind::Prctl => false,
    }
}

fn calls(tables: &Tables, is_meant: fn(&MemoryCall) -> bool) -> impl Iterator<Item = &MemoryCall> {
    tables.memory_calls.iter().filter(move |call| is_meant(call))
}

fn time_in(tables: &Tables, is_meant: fn(&MemoryCall) -> bool) -> f64 {
    milliseconds(calls(tables, is_meant).map(|call| call.duration).sum())
}

/// Whether a call lets the address space grow by more than a reservation (`MAP_NORESERVE`), which is no memory.
pub fn takes_memory(call: &MemoryCall) -> bool {
    let is_reservation = call.call == MemoryCallKind::Mmap && call.argument & MAP_NORESERVE != 0;
    call.growth().0 > 0 && !is_reservation
}

fn succeeds(call: &MemoryCall) -> bool {
    call.result == 0 && releases(call)
}

/// What all recorded processes together had the kernel's threads do for memory.
fn background_reclaim(facts: &LaunchFacts<'_>) -> Option<f64> {
    let memory = BackgroundReclaim::of(facts)?;
    Some(sum(&memory.costs(memory.processes())).value)
}

fn add_totals(
    costs: &mut RecordedMetrics,
    facts: &LaunchFacts<'_>,
    usage: &Usage,
    kernel_threads: &HashSet<ProcessKey>,
) {
    let (tables, total) = (&*facts.tables, &usage.total);
    let per_sample = per_sample(&tables.manifest);
    let samples = |count: u64| per_sample.map(|ms| count as f64 * ms);
    let in_kernel = tables.cpu_samples.iter().filter(|row| row.kernel).count() as u64;
    let of_kernel = usage.processes.iter().filter(|one| kernel_threads.contains(&one.process));
    let figures = [
        (Measure::TimeToReady, facts.ready.map(|ready| milliseconds(ready - facts.released))),
        (Measure::CpuTime, total.cpu_time.map(milliseconds)),
        (Measure::SampledCpuTime, total.cpu_samples.and_then(samples)),
        (Measure::SampledKernelTime, samples(in_kernel)),
        (Measure::KernelThreadTime, Some(milliseconds(of_kernel.filter_map(|one| one.sums.cpu_time).sum()))),
        (Measure::Faults, Some(total.faults() as f64)),
        (Measure::FaultsByKernel, total.counted.map(|faults| faults as f64)),
        (Measure::FaultTime, Some(milliseconds(total.fault_time))),
        (Measure::Allocations, Some(calls(tables, takes_memory).count() as f64)),
        (Measure::AllocatedBytes, Some(calls(tables, takes_memory).map(|call| call.growth().0 as f64).sum())),
        (Measure::MapTime, Some(time_in(tables, |call| !releases(call)))),
        (Measure::Releases, Some(calls(tables, succeeds).count() as f64)),
        (Measure::ReleaseTime, Some(time_in(tables, releases))),
        (Measure::OffCpuTime, total.off_cpu.map(milliseconds)),
        (Measure::RunnableTime, total.runnable.map(milliseconds)),
        (Measure::BackgroundReclaim, background_reclaim(facts)),
    ];
    let known = figures.into_iter().filter_map(|(measure, value)| Some((measure, value?)));
    let known = known.filter(|(measure, _)| costs.sources.contains(&measure.source()));
    costs.totals = known.collect();
}

fn add_programs(costs: &mut RecordedMetrics, tables: &Tables, usage: &Usage, names: &HashMap<ProcessKey, String>) {
    let per_sample = per_sample(&tables.manifest);
    let mut allocated: HashMap<ProcessKey, f64> = HashMap::new();
    for call in calls(tables, takes_memory) {
        *allocated.entry(call.process()).or_default() += call.growth().0 as f64;
    }
    for one in &usage.processes {
        let sums = &one.sums;
        let figures = [
            (Measure::CpuTime, sums.cpu_time.map(milliseconds)),
            (Measure::SampledCpuTime, sums.cpu_samples.zip(per_sample).map(|(count, ms)| count as f64 * ms)),
            (Measure::Faults, Some(sums.faults() as f64)),
            (Measure::FaultTime, Some(milliseconds(sums.fault_time))),
            (Measure::AllocatedBytes, sums.allocated.map(|_| allocated.get(&one.process).copied().unwrap_or(0.0))),
            (Measure::OffCpuTime, sums.off_cpu.map(milliseconds)),
        ];
        let name = names.get(&one.process).unwrap_or(&one.name);
        for (measure, value) in figures {
            if let Some(value) = value.filter(|_| costs.sources.contains(&measure.source())) {
                *costs.programs.entry((name.clone(), measure)).or_default() += value;
            }
        }
    }
}

fn add_functions(costs: &mut RecordedMetrics, tables: &Tables) {
    let stacks = CallStacks::new(tables);
    let charged = Attribution::new(&stacks);
    let sources = costs.sources.clone();
    let mut without_stack: BTreeMap<Measure, (f64, f64)> = BTreeMap::new();
    let mut add = |measure: Measure, scale: f64, rows: &mut dyn Iterator<Item = (Option<u32>, u64)>| {
        if !measure.sources_of_functions().is_some_and(|needed| needed.iter().all(|one| sources.contains(one))) {
            return;
        }
        for (function, weight) in charged.add_up(rows).unwrap_or_default() {
            let value = weight as f64 * scale;
            let sums = without_stack.entry(measure).or_default();
            sums.0 += if is_unknown(function) { value } else { 0.0 };
            sums.1 += value;
            *costs.functions.entry((function.clone(), measure)).or_default() += value;
        }
    };
    let ns = 1e-6;
    if let Some(ms) = per_sample(&tables.manifest) {
        add(Measure::SampledCpuTime, ms, &mut tables.cpu_samples.iter().map(|row| (row.stack, 1)));
    }
    let faults = &tables.faults;
    add(Measure::Faults, 1.0, &mut faults.iter().map(|row| (row.stack, 1)));
    add(Measure::FaultTime, ns, &mut faults.iter().map(|row| (row.stack, row.duration.unwrap_or_default().0)));
    add(Measure::Allocations, 1.0, &mut calls(tables, takes_memory).map(|call| (call.stack, 1)));
    add(Measure::AllocatedBytes, 1.0, &mut calls(tables, takes_memory).map(|call| (call.stack, call.growth().0)));
    add(Measure::Releases, 1.0, &mut calls(tables, succeeds).map(|call| (call.stack, 1)));
    add(Measure::ReleaseTime, ns, &mut calls(tables, releases).map(|call| (call.stack, call.duration.0)));
    add(Measure::OffCpuTime, ns, &mut tables.off_cpu.iter().map(|row| (row.stack, row.duration.0)));
    // One sentence for each kind of events.
    let kinds = [
        (Measure::SampledCpuTime, "CPU samples"),
        (Measure::FaultTime, "the time in page faults"),
        (Measure::AllocatedBytes, "the allocated bytes"),
    ];
    for (measure, words) in kinds {
        let (unknown, all) = without_stack.get(&measure).copied().unwrap_or_default();
        if unknown > all * LEAST_DOUBT {
            let percent = unknown / all * 100.0;
            costs.doubts.push(format!("{percent:.1} % of {words} have no function: their call stacks are cut off"));
        }
    }
}

/// Whether a row's stack did not tell its function.
fn is_unknown(charged: &AttributedFunction) -> bool {
    matches!(charged.place.as_str(), "[truncated]" | "[unknown]" | "[no stack]")
}

fn add_ledger(costs: &mut RecordedMetrics, tables: &Tables, names: &HashMap<ProcessKey, String>) {
    let Ok(Some(found)) = ledger(tables) else { return };
    costs.sources.insert(Source::Ledger);
    for process in &found.processes {
        let name = names.get(&process.process).map_or("", String::as_str);
        let mut add = |row, ms: f64| *costs.ledger.entry((name.to_owned(), row)).or_default() += ms;
        for (category, time) in process.account.iter().filter(|(_, time)| time.0 > 0) {
            add(Some(category), milliseconds(time));
        }
        if let Some(unexplained) = process.unexplained {
            add(None, unexplained as f64 / 1e6);
        }
    }
    if found.incomplete_threads > 0 {
        let count = found.incomplete_threads;
        costs.doubts.push(format!("{count} threads are not in the time ledger: their begin or end was not recorded"));
    }
}

fn add_findings(costs: &mut RecordedMetrics, facts: &LaunchFacts<'_>) {
    let observation = Observation { launches: from_ref(facts), needed: Err(NeededUnknown::NoTraining) };
    for finding in of_observation(&observation) {
        let text = |name: &str| finding.subject.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        let key = FindingKey {
            name: finding.name.clone(),
            program: text("process").unwrap_or_default(),
            function: text("function"),
        };
        let cost = FindingCost {
            title: finding.title,
            cost: finding.cost,
            // A launch from storage waits until ready, and no longer.
            grows_with_time: findings::named(&finding.name).is_none_or(|one| one.shows_in != ShowsIn::ColdLaunches),
        };
        let same = |known: &mut FindingCost| {
            known.cost = slowpath_tables::Quantity::exact(known.cost.value + cost.cost.value, known.cost.unit);
        };
        costs.findings.entry(key).and_modify(same).or_insert(cost.clone());
    }
}

fn add_doubts(costs: &mut RecordedMetrics, tables: &Tables, usage: &Usage) {
    if tables.manifest.ended.is_none() {
        costs.doubts.push("it has no end: its length is that until its last row".to_owned());
    }
    if usage.without_counters > 0 && costs.sources.contains(&Source::Counters) {
        let (without, all) = (usage.without_counters, usage.processes.len());
        costs.doubts.push(format!("of {without} of {all} processes the kernel's counters are not known"));
    }
    let (untimed, faults) = (usage.total.untimed as f64, usage.total.faults() as f64);
    if untimed > faults * LEAST_DOUBT && costs.sources.contains(&Source::FaultTimes) {
        costs.doubts.push(format!("{:.1} % of the page faults have no known duration", untimed / faults * 100.0));
    }
}

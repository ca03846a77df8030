//! What follows a wait on the critical path: without the wait it would start sooner, by the length of the wait at most.
//!
//! Owns which step that is and how it is called: what the thread does, and in which function, or in which program where no stack is
//! known. The time from the wake-up until the thread has a CPU is left out, for the wait ends there too. Leaves which waits count to
//! [`super`], and the chain to [`crate::time::critical_path`].

use crate::findings::memory_evidence::short;
use crate::findings::wait_place::WaitPlace;
use crate::launch_facts::LaunchFacts;
use crate::stacks::call_stacks::CallStacks;
use crate::time::critical_path::Step;
use crate::time::ledger::Category;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::BTreeMap;

/// What follows a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NextStep {
    /// What it does, and the function or the program that it is in. Foreign text.
    pub words: String,
    /// Its length.
    pub time: Nanos,
}

/// What follows each of these waits, which are numbers of steps; nothing for the last one before the end of the chain.
pub(super) fn next_steps(
    facts: &LaunchFacts<'_>,
    call_stacks: Option<&CallStacks<'_>>,
    chain: &[Step],
    waits: impl Iterator<Item = usize>,
) -> BTreeMap<usize, NextStep> {
    let following: BTreeMap<usize, Step> = waits.filter_map(|wait| Some((wait, following(chain, wait)?))).collect();
    // Later waits are followed by later steps.
    let steps: Vec<Step> = following.values().copied().collect();
    let functions = functions(facts, call_stacks, &steps);
    let named = following.into_iter().zip(functions).map(|((wait, step), function)| {
        let place = function.unwrap_or_else(|| facts.processes.name(step.process));
        (wait, NextStep { words: format!("{} in {place}", words(&step)), time: step.time() })
    });
    named.collect()
}

/// The most common of them, those with most time of several; how long the one in the middle is.
pub(super) fn most_common<'a>(steps: impl Iterator<Item = &'a NextStep>) -> Option<NextStep> {
    let mut times: BTreeMap<&str, Vec<Nanos>> = BTreeMap::new();
    for step in steps {
        times.entry(&step.words).or_default().push(step.time);
    }
    let (words, mut times) =
        times.into_iter().max_by_key(|(_, times)| (times.len(), times.iter().copied().sum::<Nanos>()))?;
    times.sort_unstable();
    Some(NextStep { words: words.to_owned(), time: times[(times.len() - 1) / 2] })
}

fn following(chain: &[Step], wait: usize) -> Option<Step> {
    let waited = chain.get(wait)?;
    let is_wake_up = |step: &Step| {
        step.category == Some(Category::Runnable) && (step.process, step.tid) == (waited.process, waited.tid)
    };
    chain.get(wait + 1..)?.iter().copied().find(|step| !is_wake_up(step))
}

fn words(step: &Step) -> &'static str {
    match step.category {
        Some(Category::OnCpu) => "on CPU",
        Some(category) => category.words(),
        None => "unexplained",
    }
}

/// The function that each of these steps is in, which are in order: the most frequent one of its samples, or that of the wait. Rows may
/// be in any order.
fn functions(facts: &LaunchFacts<'_>, call_stacks: Option<&CallStacks<'_>>, steps: &[Step]) -> Vec<Option<String>> {
    let mut counts: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); steps.len()];
    let Some(stacks) = call_stacks.filter(|_| !steps.is_empty()) else { return vec![None; steps.len()] };
    let step_at = |process: ProcessKey, tid: u32, ts: Nanos| {
        let number = steps.partition_point(|step| step.from <= ts).checked_sub(1)?;
        let step = &steps[number];
        ((step.process, step.tid) == (process, tid) && ts < step.to).then_some(number)
    };
    let mut count = |number: usize, category: Category, stack: Option<u32>| {
        let place = WaitPlace::of(category, -1, stacks.path(stack), call_stacks);
        // In brackets stands what is no function: an import of another library that has no name of its own.
        if let Some(function) = place.by_name().filter(|function| !function.starts_with('[')) {
            *counts[number].entry(short(function)).or_default() += 1;
        }
    };
    for row in &facts.tables.cpu_samples {
        let Some(number) = step_at(row.process(), row.tid, row.ts) else { continue };
        if steps[number].category == Some(Category::OnCpu) {
            count(number, Category::OnCpu, row.stack);
        }
    }
    for row in &facts.tables.off_cpu {
        let Some(number) = step_at(row.process(), row.tid, row.ts) else { continue };
        let category = Category::of_wait(row.reason);
        if steps[number].from == row.ts && steps[number].category == Some(category) {
            count(number, category, row.stack);
        }
    }
    let most = |counts: BTreeMap<String, u64>| counts.into_iter().max_by_key(|(_, count)| *count);
    counts.into_iter().map(|counts| most(counts).map(|(function, _)| function)).collect()
}

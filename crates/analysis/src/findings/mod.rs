//! One module a finding.
//!
//! Owns the list of findings ([`ALL`]) and their common input; what several need stands beside them. A finding is a pure function of
//! recordings; it never measures.

pub(crate) mod allocating_stack;
pub mod background_reclaim;
pub mod block_places;
pub mod buffer_copied_back;
pub mod cold_file_reads;
mod copying_code;
mod doubts;
mod fallback_cost;
mod fallback_finding;
pub mod fault_sums;
pub mod heap_trim_churn;
mod loader_findings;
pub mod many_libraries;
pub mod materiality;
pub mod memory_confidence;
pub mod memory_evidence;
pub(crate) mod memory_use;
pub mod missing_artifact;
mod never_used;
mod other_allocators;
pub mod relocation_cost;
pub mod repeated_child_work;
mod rust_names;
mod sampled_time;
pub mod slow_ipc_reply;
pub mod stale_artifact;
pub mod thp_missed;
pub mod timed_wait;
pub mod transient_large_allocation;
pub mod unreadable_artifact;
pub mod unused_touched_pages;
mod wait_place;

use crate::declaration::{Declaration, Input};
use crate::finding::Finding;
use crate::io::demand::{Demand, NeededUnknown};
use crate::launch_facts::LaunchFacts;
use crate::memory::memory_fixes::REUSE_BUFFER;
use crate::stacks::call_stacks::CallStacks;
use memory_use::MemoryUse;
use slowpath_recording::Tables;
use std::collections::BTreeMap;

/// What findings look at.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Launches of one command under the same conditions.
    pub launches: &'a [LaunchFacts<'a>],
    /// What a training launch of the command demanded, or why that is not known.
    pub needed: Result<&'a Demand, NeededUnknown>,
}

/// Every finding. One that goes by what others found comes after them.
pub const ALL: [Declaration; 15] = [
    cold_file_reads::FINDING,
    timed_wait::FINDING,
    slow_ipc_reply::FINDING,
    relocation_cost::FINDING,
    many_libraries::FINDING,
    unreadable_artifact::FINDING,
    stale_artifact::FINDING,
    missing_artifact::FINDING,
    repeated_child_work::FINDING,
    transient_large_allocation::FINDING,
    heap_trim_churn::FINDING,
    unused_touched_pages::FINDING,
    thp_missed::FINDING,
    buffer_copied_back::FINDING,
    background_reclaim::FINDING,
];

/// All findings of an observation, most costly first.
pub fn of_observation(observation: &Observation<'_>) -> Vec<Finding> {
    of_declarations(&ALL, observation)
}

/// Those of one declaration in launches without a training, most costly first. It must be one that does not go by what others found.
pub(crate) fn of_declaration(declaration: &Declaration, launches: &[LaunchFacts<'_>]) -> Vec<Finding> {
    let observation = Observation { launches, needed: Err(NeededUnknown::NoTraining) };
    of_declarations(std::slice::from_ref(declaration), &observation)
}

fn of_declarations(declarations: &[Declaration], observation: &Observation<'_>) -> Vec<Finding> {
    let launches = observation.launches;
    let call_stacks: Vec<Option<CallStacks<'_>>> = launches.iter().map(call_stacks).collect();
    let memory = launches.iter().zip(&call_stacks).map(|(facts, call_stacks)| {
        let is_recorded = !facts.tables.memory_calls.is_empty();
        call_stacks.as_ref().filter(|_| is_recorded).map(|call_stacks| MemoryUse::new(facts, call_stacks))
    });
    let memory: Vec<Option<MemoryUse<'_>>> = memory.collect();
    let mut findings: Vec<Finding> = Vec::new();
    for declaration in declarations {
        let input = Input { observation, call_stacks: &call_stacks, memory: &memory, found: &findings };
        let more = (declaration.find)(&input);
        let former_name = former_name(declaration.name);
        findings.extend(more.into_iter().map(|finding| Finding { former_name: former_name.clone(), ..finding }));
    }
    findings.sort_by(|a, b| b.cost.value.total_cmp(&a.cost.value));
    findings
}

/// The declaration of a name.
pub(crate) fn named(name: &str) -> Option<&'static Declaration> {
    ALL.iter().find(|declaration| declaration.name == name)
}

/// What a finding of this name was called in the version before; `None` where it had no other name.
pub fn former_name(name: &str) -> Option<String> {
    named(name)?.former.first().map(|&former| former.to_owned())
}

/// Resolved where a finding needs them, which takes time.
fn call_stacks<'a>(facts: &'a LaunchFacts<'a>) -> Option<CallStacks<'a>> {
    let tables = &facts.tables;
    let are_needed = !tables.memory_calls.is_empty() || tables.off_cpu.iter().any(|row| row.stack.is_some());
    are_needed.then(|| CallStacks::new(tables))
}

/// Programs of which a finding says which blocks to keep, and its name.
fn kept(findings: &[Finding]) -> BTreeMap<String, String> {
    let keeps = findings.iter().filter(|finding| finding.fixes.iter().any(|fix| fix == REUSE_BUFFER));
    keeps
        .filter_map(|finding| Some((finding.subject.get("process")?.as_str()?.to_owned(), finding.name.clone())))
        .collect()
}

/// All findings of recorded launches of one command; `training` is a launch of it at readahead 0.
pub fn of_recordings(launches: &[&Tables], training: Option<&Tables>) -> Vec<Finding> {
    let facts: Vec<LaunchFacts<'_>> = launches.iter().map(|tables| LaunchFacts::new(tables)).collect();
    of_launches(&facts, training)
}

/// The same of launches whose facts are known.
pub(crate) fn of_launches(launches: &[LaunchFacts<'_>], training: Option<&Tables>) -> Vec<Finding> {
    let demand = training.map_or(Err(NeededUnknown::NoTraining), |t| Demand::of_training(&LaunchFacts::new(t)));
    let needed = match &demand {
        Ok(demand) => Ok(demand),
        Err(reason) => Err(reason.clone()),
    };
    of_observation(&Observation { launches, needed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_renamed_finding_has_its_former_name_and_no_other_has_one() {
        let renamed = ALL.iter().filter_map(|one| Some((one.name, former_name(one.name)?)));
        let renamed: BTreeSet<(&str, String)> = renamed.collect();
        let expected = [
            (background_reclaim::NAME, "deferred_memory_cost".to_owned()),
            (unused_touched_pages::NAME, "oversized_first_touch".to_owned()),
        ];
        assert_eq!(renamed, BTreeSet::from(expected));
        assert_eq!(former_name("no such finding"), None);
        assert!(ALL.iter().flat_map(|one| one.former).all(|former| ALL.iter().all(|other| other.name != *former)));
    }
}

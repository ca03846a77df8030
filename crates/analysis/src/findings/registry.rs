//! Which findings there are, and looking for them. What one is declared as is in [`crate::declaration`].

use super::memory_use::MemoryUse;
use super::observation::Observation;
use super::{
    background_reclaim, buffer_copied_back, cold_file_reads, heap_trim_churn, many_libraries, missing_artifact,
    relocation_cost, repeated_child_work, slow_ipc_reply, stale_artifact, thp_missed, timed_wait,
    transient_large_allocation, unreadable_artifact, unused_touched_pages,
};
use crate::declaration::{Declaration, Input};
use crate::finding::Finding;
use crate::io::demand::{Demand, NeededUnknown};
use crate::launch_facts::LaunchFacts;
use crate::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;

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

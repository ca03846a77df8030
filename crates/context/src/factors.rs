//! All factors; one module each.

mod affinity;
mod audit;
mod autogroup;
pub(crate) mod capabilities;
pub(crate) mod control_groups;
mod core_scheduling;
pub(crate) mod credentials;
pub mod environment;
pub(crate) mod file_systems;
mod huge_pages;
mod io_priority;
mod limits;
pub mod loaded_libraries;
mod machine;
mod memory_policy;
mod namespaces;
mod no_new_privs;
mod personality;
mod scheduling;
pub(crate) mod seccomp;
mod security_label;
pub mod speculation;
mod timer_slack;
mod tracer;
mod utilization_clamp;

use crate::factor::{Factor, Scope};
use machine::{hardware, kernel, memory, mitigations, proactive_reclaim, scheduler, selinux};

/// Every factor, in the order in which they are shown.
pub const ALL: [Factor; 37] = [
    seccomp::SECCOMP,
    speculation::STORE_BYPASS,
    speculation::INDIRECT_BRANCH,
    scheduling::SCHEDULING,
    affinity::AFFINITY,
    utilization_clamp::UTILIZATION_CLAMP,
    core_scheduling::CORE_SCHEDULING,
    timer_slack::TIMER_SLACK,
    io_priority::IO_PRIORITY,
    tracer::TRACER,
    security_label::SECURITY_LABEL,
    no_new_privs::NO_NEW_PRIVS,
    credentials::CREDENTIALS,
    capabilities::CAPABILITIES,
    control_groups::CONTROL_GROUPS,
    control_groups::PRESSURE,
    autogroup::AUTOGROUP,
    environment::ENVIRONMENT,
    loaded_libraries::LOADED_LIBRARIES,
    file_systems::FILE_SYSTEMS,
    huge_pages::HUGE_PAGES,
    memory_policy::MEMORY_POLICY,
    limits::LIMITS,
    personality::PERSONALITY,
    namespaces::NAMESPACES,
    audit::AUDIT,
    selinux::SELINUX,
    mitigations::MITIGATIONS,
    mitigations::PARAMETERS,
    kernel::KERNEL,
    hardware::CPU_MODEL,
    hardware::CPUFREQ,
    hardware::CLOCK,
    memory::MACHINE_HUGE_PAGES,
    memory::MEMORY,
    proactive_reclaim::PROACTIVE_RECLAIM,
    scheduler::SCHEDULER,
];

/// Those of one scope.
pub fn of(scope: Scope) -> impl Iterator<Item = &'static Factor> {
    ALL.iter().filter(move |factor| factor.scope == scope)
}

/// The factor with this name.
pub fn named(name: &str) -> Option<&'static Factor> {
    ALL.iter().find(|factor| factor.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_each_is_there_once() {
        for factor in &ALL {
            assert!(factor.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", factor.name);
            assert_eq!(ALL.iter().filter(|other| other.name == factor.name).count(), 1, "{}", factor.name);
            assert!(named(factor.name).is_some() && !factor.title.is_empty());
            assert!(factor.what.ends_with('.') && factor.why.ends_with('.'), "{}: no sentences", factor.name);
            assert_eq!(factor.by_hand.matches('`').count() % 2, 0, "{}", factor.name);
            assert!(factor.by_hand.contains('`'), "{}: no command", factor.name);
            let remedies = factor.remedies(factor.name);
            assert!(!remedies.is_empty(), "{}: nothing helps", factor.name);
            assert!(remedies.iter().all(|one| !one.what.is_empty() && !one.price.is_empty()), "{}", factor.name);
        }
    }

    #[test]
    fn parts_have_remedies_of_their_own() {
        let first = |factor: &str, part: &str| named(factor).unwrap().remedies(&format!("{factor} {part}")).remove(0);
        assert!(first("control_groups", "cpu.max").what.contains("quota"));
        assert!(first("control_groups", "cpu.weight").what.contains("weight"));
        assert!(first("control_groups", "cpuset.mems").what.contains("nodes"));
        assert!(first("control_groups", "io_read_bps").what.contains("I/O"));
        assert!(first("control_groups", "memory.high").price.starts_with("memory"));
        assert!(first("environment", "LD_PRELOAD").what.contains("LD_PRELOAD"));
        assert!(named("seccomp").unwrap().remedies("seccomp")[0].price.starts_with("work"));
    }
}

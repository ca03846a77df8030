//! `slowpath ipc doctor` in a terminal.

use crate::terminal::escape_terminal;
use slowpath_ipc::conditions::Conditions;
use slowpath_ipc::doctor::IpcDoctor;
use std::fmt::Write;

/// The whole result.
pub fn text(doctor: &IpcDoctor) -> String {
    let mut text = String::new();
    for transport in &doctor.transports {
        let state = if transport.available { "yes" } else { "no" };
        let _ = writeln!(text, "{:<16} {state:<4} {}", transport.name, transport.title);
    }
    let real_time = if doctor.real_time { "yes  callers can be SCHED_FIFO 99" } else { "no" };
    let _ = writeln!(text, "{:<16} {real_time}", "real-time");
    let trace = if doctor.trace { "yes  a missed deadline can be explained" } else { "no" };
    let _ = writeln!(text, "{:<16} {trace}\n", "trace");
    for (name, fact) in facts(&doctor.conditions) {
        let _ = writeln!(text, "{name:<16} {}", escape_terminal(&fact));
    }
    for gap in &doctor.unavailable {
        let _ =
            writeln!(text, "\n{} unavailable: {}\n  remedy: {}", gap.what, escape_terminal(&gap.reason), gap.remedy);
    }
    for warning in &doctor.warnings {
        let _ = writeln!(text, "\nwarning: {}", escape_terminal(&warning.text));
    }
    text
}

/// What the kernel shows of this machine, and where it shows nothing.
fn facts(conditions: &Conditions) -> Vec<(&'static str, String)> {
    let not_shown = || "not shown by this kernel".to_owned();
    let Conditions { cpus, offline_cpus, possible_cpus, removable_cpus, .. } = conditions;
    let capacities = |list: &[(u64, usize)]| {
        list.iter().map(|(capacity, cpus)| format!("{cpus} of {capacity}")).collect::<Vec<_>>().join(", ")
    };
    let energy = match (conditions.energy_aware, conditions.energy_domains) {
        (None, _) => "not in this kernel".to_owned(),
        (Some(false), _) => "off".to_owned(),
        (Some(true), Some(domains)) => format!("allowed, {domains} domains with an energy model"),
        (Some(true), None) => "allowed; debugfs shows no energy model".to_owned(),
    };
    let throttling = match (conditions.rt_runtime_us, conditions.rt_period_us) {
        (Some(..0), _) => "none".to_owned(),
        (Some(runtime), Some(period)) => format!("{runtime} us of {period} us"),
        (Some(runtime), None) => format!("{runtime} us"),
        (None, _) => not_shown(),
    };
    let budget = conditions.group_rt_runtime_us.map_or("none is needed".to_owned(), |budget| format!("{budget} us"));
    let idle = conditions.deepest_idle.as_ref();
    let range = |(low, high): &(u64, u64)| format!("{} to {} MHz", low / 1000, high / 1000);
    vec![
        (
            "CPUs",
            format!(
                "{cpus} usable, {offline_cpus} offline, {possible_cpus} possible, {removable_cpus} can be switched off"
            ),
        ),
        ("capacities", if conditions.capacities.is_empty() { not_shown() } else { capacities(&conditions.capacities) }),
        ("EAS", energy),
        ("preemption", conditions.preemption.clone().unwrap_or_else(not_shown)),
        ("governor", conditions.governor.clone().unwrap_or_else(not_shown)),
        ("frequency", conditions.frequency_khz.as_ref().map_or_else(not_shown, range)),
        ("deepest idle", idle.map_or_else(not_shown, |(name, latency)| format!("{name}, {latency} us to leave"))),
        ("RT throttling", throttling),
        ("cgroup RT budget", budget),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_does_not_show_is_said() {
        let of = |conditions: &Conditions, name: &str| {
            facts(conditions).into_iter().find(|(one, _)| *one == name).map(|(_, fact)| fact).unwrap()
        };
        let nothing = Conditions::default();
        assert_eq!(of(&nothing, "capacities"), "not shown by this kernel");
        assert_eq!(of(&nothing, "EAS"), "not in this kernel");
        let phone = Conditions {
            cpus: 3,
            possible_cpus: 4,
            offline_cpus: 1,
            capacities: vec![(1024, 1), (446, 2)],
            energy_aware: Some(true),
            energy_domains: Some(2),
            rt_runtime_us: Some(950_000),
            rt_period_us: Some(1_000_000),
            frequency_khz: Some((300_000, 2_841_600)),
            ..nothing
        };
        assert_eq!(of(&phone, "CPUs"), "3 usable, 1 offline, 4 possible, 0 can be switched off");
        assert_eq!(of(&phone, "capacities"), "1 of 1024, 2 of 446");
        assert_eq!(of(&phone, "EAS"), "allowed, 2 domains with an energy model");
        assert_eq!(of(&phone, "RT throttling"), "950000 us of 1000000 us");
        assert_eq!(of(&phone, "frequency"), "300 to 2841 MHz");
    }
}

//! What of this machine makes results of IPC benchmarks worse or useless: read once, judged by a pure function.

use crate::scheduling::allowed_cpus;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_process::cpu_list;
use std::collections::BTreeMap;

/// What was read; `None` is what this kernel does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conditions {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// CPUs that exist and are switched off.
    pub offline_cpus: usize,
    /// CPUs that can be there at most: what is beyond the present ones can be plugged in while the kernel runs.
    pub possible_cpus: usize,
    /// CPUs that the running kernel lets one switch off.
    pub removable_cpus: usize,
    /// `none`, `voluntary`, `full`, `lazy`, or `rt`: the kernel's preemption model.
    pub preemption: Option<String>,
    /// Debug options of the kernel that slow down locks or allocations.
    pub debug_options: Vec<String>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Lowest and highest frequency of the first CPU in kHz.
    pub frequency_khz: Option<(u64, u64)>,
    /// Deepest idle state of the first CPU that is not disabled, and its exit latency in us.
    pub deepest_idle: Option<(String, u64)>,
    /// Capacities of the CPUs differ (HMP, big.LITTLE; the scheduler may be energy-aware).
    pub asymmetric: bool,
    /// Capacities that CPUs have, of 1024, and how many have each, the largest first; empty where the kernel shows none.
    pub capacities: Vec<(u64, usize)>,
    /// `kernel.sched_energy_aware`: whether energy-aware scheduling (EAS) may be used; null where the kernel cannot.
    pub energy_aware: Option<bool>,
    /// Performance domains with an energy model, without which there is no EAS; null where debugfs does not show them.
    pub energy_domains: Option<usize>,
    /// `kernel.sched_rt_runtime_us`; -1 is no throttling.
    pub rt_runtime_us: Option<i64>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Option<i64>,
    /// Real-time budget of the cpu cgroup in us, where cgroup v1 with RT_GROUP_SCHED has one.
    pub group_rt_runtime_us: Option<i64>,
}

/// Something that a reader must know before using the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What it is about: `overload` (more busy threads than CPUs), `preemption` (the kernel preempts late), `debug` (options of the kernel
    /// that slow it down), `frequency` (a governor that lets CPUs run slowly), `idle` (deep idle states, which wake late), `asymmetric` (CPUs
    /// of several capacities), `energy_aware` (the scheduler places threads by energy), `offline` (CPUs are switched off),
    /// `rt_throttling` (real-time threads are stopped at their budget), `rt_budget` (the cgroup may run no real-time threads).
    #[schemars(extend("enum" = [
        "overload", "preemption", "debug", "frequency", "idle", "asymmetric", "energy_aware", "offline", "rt_throttling", "rt_budget",
    ]))]
    pub about: &'static str,
    /// The cause, then what to do.
    pub text: String,
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

impl Conditions {
    /// Of this machine and the calling process.
    pub fn here() -> Self {
        let cpu = "/sys/devices/system/cpu";
        let listed = |which: &str| read(&format!("{cpu}/{which}")).and_then(|list| cpu_list(&list)).unwrap_or_default();
        let (online, present, possible) = (listed("online"), listed("present"), listed("possible"));
        let version = read("/proc/sys/kernel/version").unwrap_or_default();
        let dynamic = read("/sys/kernel/debug/sched/preempt");
        let config = configuration();
        let of_online = |file: &str| -> Vec<String> {
            online.iter().filter_map(|number| read(&format!("{cpu}/cpu{number}/{file}"))).collect()
        };
        let capacities = counted(of_online("cpu_capacity").iter().filter_map(|text| text.parse().ok()));
        let frequency = |which: &str| read(&format!("{cpu}/cpu0/cpufreq/cpuinfo_{which}_freq"))?.parse().ok();
        let idle = (0..16)
            .map_while(|state| {
                let of = |what: &str| read(&format!("{cpu}/cpu0/cpuidle/state{state}/{what}"));
                Some((of("name")?, of("latency")?.parse().ok()?, of("disable")? == "1"))
            })
            .filter(|(_, _, disabled)| !disabled)
            .last();
        Self {
            cpus: allowed_cpus().map_or(online.len(), |allowed| allowed.len()),
            offline_cpus: present.len().saturating_sub(online.len()),
            possible_cpus: possible.len(),
            // Who cannot be switched off has no such file.
            removable_cpus: of_online("online").len(),
            preemption: preemption(&version, dynamic.as_deref(), config.as_deref()),
            debug_options: config.as_deref().map(debug_options).unwrap_or_default(),
            governor: read(&format!("{cpu}/cpu0/cpufreq/scaling_governor")),
            frequency_khz: frequency("min").zip(frequency("max")),
            deepest_idle: idle.map(|(name, latency, _)| (name, latency)),
            asymmetric: capacities.len() > 1,
            capacities,
            energy_aware: read("/proc/sys/kernel/sched_energy_aware").map(|text| text == "1"),
            energy_domains: std::fs::read_dir("/sys/kernel/debug/energy_model")
                .ok()
                .map(|domains| domains.flatten().count()),
            rt_runtime_us: read("/proc/sys/kernel/sched_rt_runtime_us").and_then(|text| text.parse().ok()),
            rt_period_us: read("/proc/sys/kernel/sched_rt_period_us").and_then(|text| text.parse().ok()),
            group_rt_runtime_us: group_rt_runtime(),
        }
    }
}

/// How many of each, the largest first.
fn counted(values: impl Iterator<Item = u64>) -> Vec<(u64, usize)> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().rev().collect()
}

/// The kernel's own configuration: `/boot/config-RELEASE`; the packed one in /proc is left to other tools.
fn configuration() -> Option<String> {
    let release = read("/proc/sys/kernel/osrelease")?;
    read(&format!("/boot/config-{release}"))
}

/// The model in force: what debugfs marks, else what the build says (`PREEMPT_DYNAMIC` alone leaves it open).
fn preemption(version: &str, dynamic: Option<&str>, config: Option<&str>) -> Option<String> {
    if version.contains("PREEMPT_RT") {
        return Some("rt".to_owned());
    }
    let marked = dynamic.and_then(|text| Some(text.split_once('(')?.1.split_once(')')?.0.to_owned()));
    let configured = || {
        let config = config?;
        let set = |option: &str| config.lines().any(|line| line == format!("CONFIG_{option}=y"));
        let model = [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ];
        model.iter().find(|(option, _)| set(option)).map(|(_, name)| (*name).to_owned())
    };
    let built = || (!version.contains("DYNAMIC") && version.contains(" PREEMPT ")).then(|| "full".to_owned());
    marked.or_else(configured).or_else(built)
}

fn debug_options(config: &str) -> Vec<String> {
    // Options whose help texts say that they slow down locking, scheduling or allocation.
    const SLOW: &[&str] = &[
        "PROVE_LOCKING",
        "LOCK_STAT",
        "DEBUG_MUTEXES",
        "DEBUG_SPINLOCK",
        "DEBUG_RT_MUTEXES",
        "DEBUG_ATOMIC_SLEEP",
        "KASAN",
        "KCSAN",
        "KMSAN",
        "UBSAN",
        "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
        "SLUB_DEBUG_ON",
        "DEBUG_KMEMLEAK",
        "DEBUG_PREEMPT",
        "IRQSOFF_TRACER",
        "PREEMPT_TRACER",
    ];
    let set = |option: &&&str| config.lines().any(|line| line == format!("CONFIG_{option}=y"));
    SLOW.iter().filter(set).map(|option| (*option).to_owned()).collect()
}

/// The budget of the caller's group in the cgroup v1 hierarchy of the cpu controller.
fn group_rt_runtime() -> Option<i64> {
    let own = read("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|controller| controller == "cpu").then(|| fields.next()).flatten()
    })?;
    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .iter()
        .find_map(|mount| read(&format!("{mount}{path}/cpu.rt_runtime_us"))?.parse().ok())
}

/// What to say beside results of `busy` threads at a time, `real_time` of them under SCHED_FIFO.
pub fn warnings(conditions: &Conditions, busy: usize, real_time: usize) -> Vec<Warning> {
    let mut list = Vec::new();
    let mut warn = |about, text: String| list.push(Warning { about, text });
    let cpus = conditions.cpus;
    if busy > cpus || real_time > cpus {
        let what = if real_time > cpus { "real-time callers" } else { "pairs and load processes" };
        let number = if real_time > cpus { real_time } else { busy };
        warn(
            "overload",
            format!("{number} {what} on {cpus} CPUs: they wait for each other, which says nothing of IPC; use fewer"),
        );
    }
    if let Some(model @ ("none" | "voluntary")) = conditions.preemption.as_deref() {
        warn(
            "preemption",
            format!(
                "the kernel's preemption model is {model}: a real-time thread waits for kernel code of others; boot with preempt=full"
            ),
        );
    }
    if !conditions.debug_options.is_empty() {
        let options = conditions.debug_options.join(", ");
        warn(
            "debug",
            format!("the kernel was built with {options}: locks and allocations are slower; use a kernel without them"),
        );
    }
    if let Some(governor) = conditions.governor.as_deref().filter(|governor| *governor != "performance") {
        warn(
            "frequency",
            format!("frequency governor {governor}: the clock may change within the run; use the governor performance"),
        );
    }
    if let Some((name, latency)) = conditions.deepest_idle.as_ref().filter(|(_, latency)| *latency >= 50) {
        warn(
            "idle",
            format!(
                "idle state {name} takes {latency} us to leave, and each wake-up of an idle CPU waits for that; hold /dev/cpu_dma_latency \
                 open with 0"
            ),
        );
    }
    if conditions.asymmetric {
        warn(
            "asymmetric",
            "CPUs of different capacity: results depend on where threads run; pin them with taskset".to_owned(),
        );
    }
    // sched_is_eas_possible of kernel/sched/topology.c.
    if conditions.asymmetric && conditions.energy_aware == Some(true) && conditions.energy_domains != Some(0) {
        warn(
            "energy_aware",
            "energy-aware scheduling puts woken threads where they cost the least energy, not where they run first; \
             kernel.sched_energy_aware=0 switches it off"
                .to_owned(),
        );
    }
    if conditions.offline_cpus > 0 {
        warn(
            "offline",
            format!(
                "{} CPUs are offline: hot-plug may move threads in the run; set them online",
                conditions.offline_cpus
            ),
        );
    }
    if let Some(runtime) = conditions.rt_runtime_us.filter(|runtime| *runtime >= 0)
        && real_time > 0
        && busy > cpus
    {
        warn(
            "rt_throttling",
            format!(
                "real-time threads may use {runtime} us a period (kernel.sched_rt_runtime_us) and are stopped beyond"
            ),
        );
    }
    if conditions.group_rt_runtime_us == Some(0) {
        warn("rt_budget", "this cpu cgroup has no real-time budget (cpu.rt_runtime_us is 0): SCHED_FIFO is refused, even to root; give it one or leave the group".to_owned());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calm_machine_has_no_warning_and_each_condition_has_its_own() {
        let calm = Conditions { cpus: 4, preemption: Some("full".to_owned()), ..Conditions::default() };
        assert_eq!(warnings(&calm, 4, 4), []);
        let about = |conditions: &Conditions, busy, real_time| -> Vec<&str> {
            warnings(conditions, busy, real_time).iter().map(|warning| warning.about).collect()
        };
        assert_eq!(about(&calm, 5, 0), ["overload"]);
        assert_eq!(
            about(&Conditions { rt_runtime_us: Some(950_000), ..calm.clone() }, 5, 5),
            ["overload", "rt_throttling"]
        );
        assert_eq!(about(&Conditions { preemption: Some("none".to_owned()), ..calm.clone() }, 1, 1), ["preemption"]);
        assert_eq!(about(&Conditions { governor: Some("powersave".to_owned()), ..calm.clone() }, 1, 1), ["frequency"]);
        assert_eq!(about(&Conditions { deepest_idle: Some(("C6".to_owned(), 133)), ..calm.clone() }, 1, 1), ["idle"]);
        assert_eq!(about(&Conditions { group_rt_runtime_us: Some(0), ..calm.clone() }, 1, 1), ["rt_budget"]);
        let little = Conditions { asymmetric: true, capacities: counted([446, 1024, 446].into_iter()), ..calm.clone() };
        assert_eq!(
            (about(&little, 1, 1), little.capacities.as_slice()),
            (vec!["asymmetric"], &[(1024, 1), (446, 2)][..])
        );
        let aware = Conditions { energy_aware: Some(true), energy_domains: Some(2), ..little.clone() };
        assert_eq!(about(&aware, 1, 1), ["asymmetric", "energy_aware"]);
        assert_eq!(about(&Conditions { energy_domains: Some(0), ..aware }, 1, 1), ["asymmetric"], "without a model");
        assert_eq!(about(&Conditions { debug_options: debug_options("CONFIG_KASAN=y\n"), ..calm }, 1, 1), ["debug"]);
    }

    #[test]
    fn the_preemption_model_is_what_is_in_force_and_else_what_is_configured() {
        let model = |version, dynamic, config| preemption(version, dynamic, config);
        assert_eq!(model("#1 SMP PREEMPT_DYNAMIC", Some("none voluntary (full) lazy"), None).as_deref(), Some("full"));
        assert_eq!(model("#1 SMP PREEMPT_DYNAMIC", None, Some("CONFIG_PREEMPT_NONE=y")).as_deref(), Some("none"));
        assert_eq!(model("#1 SMP PREEMPT_DYNAMIC", None, None), None);
        assert_eq!(model("#1 SMP PREEMPT_RT", None, None).as_deref(), Some("rt"));
        assert_eq!(model("#1 SMP PREEMPT Mon", None, None).as_deref(), Some("full"));
    }
}

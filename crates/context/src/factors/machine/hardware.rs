//! The CPUs: model, microcode, siblings, frequency governor, clock.

use super::parts_of_files;
use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;
use std::collections::BTreeMap;

/// Model, microcode, number, siblings.
pub const CPU_MODEL: Factor = Factor {
    name: "cpu_model",
    former: Former { names: &["processors"], ..Former::NONE },
    title: "CPU model, microcode, SMT",
    what: "Model, microcode and cache of the CPUs, which of them are online or isolated, and whether SMT is on.",
    why: "Other CPUs are faster or slower by any factor: times of two machines do not compare, ratios within one \
          do. With SMT, threads on siblings share the units and caches of a core.",
    by_hand: "`lscpu`; `grep . /sys/devices/system/cpu/{online,isolated,smt/control}`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "compare on one machine, or on machines with the same CPU and microcode",
        "work: the measurement has to be repeated",
    )]),
    toggle: OF_MACHINE,
};

/// Who chooses the frequency, within which bounds.
pub const CPUFREQ: Factor = Factor {
    name: "cpufreq",
    former: Former { names: &["frequency"], ..Former::NONE },
    title: "CPU frequency",
    what: "Who chooses the CPU frequency (the governor), within which bounds, and whether the CPU may boost.",
    why: "Computing scales with the frequency. Low bounds, and governors that keep it low or raise it late, make \
          short work up to several times slower.",
    by_hand: "`grep . /sys/devices/system/cpu/cpufreq/policy*/scaling_{driver,governor,min_freq,max_freq}`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read: read_cpufreq,
    known: known_cpufreq,
    remedies: Remedies::Of(&[("set the governor of the fast machine", "energy")]),
    toggle: OF_MACHINE,
};

/// What the time is read from.
pub const CLOCK: Factor = Factor {
    name: "clock_source",
    former: Former::NONE,
    title: "clock source",
    what: "What the kernel reads the time from: tsc, kvm-clock, arch_sys_counter, hpet, acpi_pm and others.",
    why: "With tsc, kvm-clock and arch_sys_counter clock_gettime takes 20 ns without a syscall (vDSO). With hpet \
          and acpi_pm it is a syscall that accesses a device: 0.5 to 2 us.",
    by_hand: "`cat /sys/devices/system/clocksource/clocksource0/current_clocksource`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read: read_clock,
    known: known_clock,
    remedies: Remedies::Of(&[(
        "use the TSC where it is stable (clocksource=tsc; in a virtual machine one that the host offers); the \
         kernel's log says why it chose another",
        "correctness: a TSC that is not stable shows wrong times",
    )]),
    toggle: OF_MACHINE,
};

/// Lines of `/proc/cpuinfo` that tell which CPU it is: x86 and Arm.
const LINES: [(&str, &str); 7] = [
    ("model name", "model"),
    ("microcode", "microcode"),
    ("stepping", "stepping"),
    ("cache size", "cache"),
    ("CPU implementer", "implementer"),
    ("CPU part", "part"),
    ("CPU revision", "revision"),
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let kernel_files = task.kernel_files();
    let parts = kernel_files.read("proc/cpuinfo").map(|text| {
        let mut parts: BTreeMap<String, String> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            if let Some((_, name)) = LINES.iter().find(|(line, _)| *line == key.trim()) {
                let known = kinds.entry(name).or_default();
                // Phones have several kinds of CPU.
                if !known.contains(&value.trim()) {
                    known.push(value.trim());
                }
            }
        }
        parts.extend(kinds.into_iter().map(|(name, values)| (name.to_owned(), values.join(", "))));
        for (name, path) in [
            ("online", "sys/devices/system/cpu/online"),
            ("siblings", "sys/devices/system/cpu/smt/control"),
            ("isolated", "sys/devices/system/cpu/isolated"),
        ] {
            if let Ok(text) = kernel_files.read(path)
                && !text.trim().is_empty()
            {
                parts.insert(name.to_owned(), text.trim().to_owned());
            }
        }
        Value::Table(parts)
    });
    Reading::of(parts, "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "other CPUs are faster or slower by any factor; times of two machines do not compare, ratios within one do",
        "none needed",
    )
}

fn read_cpufreq(task: &TaskFiles<'_>) -> Reading {
    let policies = match task.kernel_files().list("sys/devices/system/cpu/cpufreq") {
        Ok(policies) => policies,
        Err(missing @ (Missing::Absent | Missing::NotSaved)) => {
            return Reading::missing(&missing, "the kernel does not choose the frequency here (virtual machines)");
        }
        Err(missing) => return Reading::missing(&missing, ""),
    };
    let mut parts = BTreeMap::new();
    for policy in policies.iter().filter(|name| name.starts_with("policy")) {
        for (name, file) in
            [("governor", "scaling_governor"), ("least kHz", "scaling_min_freq"), ("most kHz", "scaling_max_freq")]
        {
            if let Ok(text) = task.kernel_files().read(&format!("sys/devices/system/cpu/cpufreq/{policy}/{file}")) {
                parts.insert(format!("{policy} {name}"), text.trim().to_owned());
            }
        }
    }
    if let Ok(text) = task.kernel_files().read("sys/devices/system/cpu/cpufreq/boost") {
        parts.insert("boost".to_owned(), text.trim().to_owned());
    }
    if parts.is_empty() {
        return Reading::absent("the kernel does not choose the frequency here (virtual machines)");
    }
    Reading::known(Value::Table(parts))
}

fn known_cpufreq(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "computing scales with the frequency: `powersave` and low bounds make short work up to several times slower",
        "Documentation/admin-guide/pm/cpufreq.rst",
    )
}

fn read_clock(task: &TaskFiles<'_>) -> Reading {
    let file = ("current", "sys/devices/system/clocksource/clocksource0/current_clocksource");
    parts_of_files(task.kernel_files(), &[file], "this kernel does not report it")
}

fn known_clock(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "reading the time is 20 ns without a system call (tsc, kvm-clock, arch_sys_counter), and a system call with access to a device (hpet, \
         acpi_pm) else: 0.5 to 2 us",
        "Documentation/timers/timekeeping.rst; vdso(7)",
    )
}

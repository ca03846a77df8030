//! Policy, real-time priority and nice value of a thread (sched(7); fields of `/proc/PID/stat`, proc_pid_stat(5)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, Here, How, SYS_NICE, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;
use slowpath_process::StatLine;

/// The factor.
pub const SCHEDULING: Factor = Factor {
    name: "scheduling",
    former: Former::NONE,
    title: "scheduling policy, priority, nice",
    what: "Scheduling policy of the thread (SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR, \
           SCHED_DEADLINE), its real-time priority and its nice value. Children inherit them, unless \
           SCHED_RESET_ON_FORK is set.",
    why: "Where CPUs are contended, each step of nice is a factor of 1.25 in the share of CPU time, SCHED_IDLE gets \
          what others leave, and real-time threads run before all others. On an idle CPU it costs nothing.",
    by_hand: "`chrt -p PID`; `ps -o cls,rtprio,ni -p PID`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "start it with the policy and the nice value of the fast context",
        "fairness: other processes get less CPU time",
    )]),
    toggle: Toggle::Parts(parts),
};

/// Policies (include/uapi/linux/sched.h).
const POLICIES: [(u32, &str); 7] =
    [(0, "other"), (1, "fifo"), (2, "rr"), (3, "batch"), (5, "idle"), (6, "deadline"), (7, "ext")];

fn read(task: &TaskFiles<'_>) -> Reading {
    let text = match task.file("stat") {
        Ok(text) => text,
        Err(missing) => return Reading::missing(&missing, ""),
    };
    let stat = StatLine::parse(text.as_bytes());
    let nice = stat.as_ref().and_then(|stat| stat.field::<i32>(19));
    let (Some(stat), Some(nice)) = (stat, nice) else {
        return Reading::missing(&Missing::Failed("its stat is not one".to_owned()), "");
    };
    let policy = stat.field::<u32>(41).map(|number| {
        POLICIES
            .iter()
            .find(|(one, _)| *one == number)
            .map_or_else(|| number.to_string(), |(_, word)| (*word).to_owned())
    });
    let real_time = stat.field::<u32>(40).filter(|priority| *priority > 0).map(|priority| priority.to_string());
    let parts = [("policy", policy), ("nice", Some(nice.to_string())), ("real_time_priority", real_time)];
    Reading::known(Value::table(parts.into_iter().filter_map(|(name, value)| Some((name, value?)))))
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "where CPUs are contended: each step of nice is 1.25 times the share, SCHED_IDLE gets what others leave, real-time threads \
         go before all; nothing where a CPU is free",
        "sched(7); kernel/sched/core.c, sched_prio_to_weight",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay, Metric::InvoluntarySwitches],
    mechanism: "on contended CPUs the thread waits longer for its turn, and is preempted sooner",
    sham: "the policy, priority and nice value of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| Ok(vec![Setting::Step(step(value, contrast.here)?)]))
}

/// What sets a value.
fn step(value: Option<&Value>, here: &Here) -> Result<ContextStep, String> {
    let value = value.ok_or("its scheduling is not known")?;
    let number =
        |part: &str| value.part(part).map_or(Ok(0), |text| text.parse::<i32>().map_err(|error| error.to_string()));
    let word = value.part("policy").unwrap_or("other");
    let policy = POLICIES.iter().find(|(_, name)| *name == word).map(|(number, _)| *number);
    let (nice, priority) = (number("nice")?, number("real_time_priority")?);
    let policy = match policy {
        Some(policy @ (0..=3 | 5)) => policy,
        _ => return Err(format!("a thread asks for the policy {word} itself, with a budget that is not reported")),
    };
    let own = here.value("scheduling").and_then(|own| own.part("nice")).and_then(|nice| nice.parse().ok()).unwrap_or(0);
    if (priority > 0 || nice < own) && !here.may(SYS_NICE) {
        return Err(here.lacks(SYS_NICE, "CAP_SYS_NICE"));
    }
    Ok(ContextStep::Scheduling { policy, priority: u32::try_from(priority).unwrap_or(0), nice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::KernelFiles;

    #[test]
    fn policy_nice_and_priority_are_taken_from_stat_whatever_the_name_holds() {
        let tail = "S 1 1 1 0 -1 4194560 100 0 0 0 1 2 0 0 20 5 1 0 100 1000000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0";
        let directory = tempfile::tempdir().unwrap();
        let kernel_files = KernelFiles::Saved(directory.path().to_owned());
        let value = |priority: u32, policy: u32| {
            let text = format!("7 (a) b 9) {tail} {policy} 0 0 0 0 0 0 0 0 0 0 0\n")
                .replace("17 1 0", &format!("17 1 {priority}"));
            std::fs::write(directory.path().join("stat"), text).unwrap();
            read(&TaskFiles::process(&kernel_files, "", None))
        };
        assert_eq!(value(0, 5), Reading::known(Value::table([("policy", "idle"), ("nice", "5")])));
        let fifo = [("policy", "fifo"), ("nice", "5"), ("real_time_priority", "40")];
        assert_eq!(value(40, 1), Reading::known(Value::table(fifo)));
    }

    #[test]
    fn a_copied_stat_without_a_nice_value_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let kernel_files = KernelFiles::Saved(directory.path().to_owned());
        for text in ["7 (a)", "(a) S 1", ")7 (a", "7 )( S", "\u{e9}(a) S", "7 (a)\u{e9} S", "", "("] {
            std::fs::write(directory.path().join("stat"), text).unwrap();
            assert!(
                matches!(read(&TaskFiles::process(&kernel_files, "", None)), Reading::Unavailable { .. }),
                "{text:?}"
            );
        }
    }
}

//! Whether a thread runs with the CPU's speculation restricted: memory accesses that overtake stores, and indirect branches
//! (Documentation/userspace-api/spec_ctrl.rst; the words are those of fs/proc/array.c, `task_seccomp`).
//!
//! What a kernel does on its own account follows from its parameters and not from its version: changes of the default were
//! carried back to older kernels, and are missing in newer ones. So only the thread's own state counts.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::system_calls;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::Metric;
use slowpath_launch::{ContextStep, Speculation, SpeculationState};

/// What can be done about either restriction.
const SPECULATION_REMEDIES: &[(&str, &str)] = &[
    (
        "install seccomp filters with SECCOMP_FILTER_FLAG_SPEC_ALLOW, or do not ask for the restriction (PR_SET_SPECULATION_CTRL)",
        "security: code that runs in the process can read its memory by speculative execution",
    ),
    (
        "start the kernel with spec_store_bypass_disable=prctl and spectre_v2_user=prctl",
        "security: filters then restrict no program by themselves",
    ),
];

/// Loads that overtake stores (Spectre variant 4).
pub const STORE_BYPASS: Factor = Factor {
    name: "speculative_store_bypass",
    former: Former::NONE,
    title: "speculative store bypass",
    what: "Whether a load may run before earlier stores whose addresses are not known yet; SSBD is the restriction. \
           A thread sets it with prctl(PR_SET_SPECULATION_CTRL), or the kernel sets it with a seccomp filter.",
    why: "Restricted, each load waits for the addresses of all earlier stores: 2 to 8 % in ordinary programs, more \
          where values are stored and soon loaded again. It shows as CPU time in user mode for the same \
          instructions.",
    by_hand: "`grep Speculation_Store_Bypass /proc/PID/status`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read: read_store_bypass,
    known: known_store_bypass,
    remedies: Remedies::Of(SPECULATION_REMEDIES),
    toggle: Toggle::Parts(|contrast| parts(contrast, Speculation::StoreBypass)),
};

/// Prediction of indirect branches (Spectre variant 2, between user programs).
pub const INDIRECT_BRANCH: Factor = Factor {
    name: "indirect_branch_speculation",
    former: Former::NONE,
    title: "indirect branch speculation",
    what: "Whether indirect branches of the thread may use predictions that other tasks trained; STIBP and IBPB are \
           the restriction. A thread sets it with prctl(PR_SET_SPECULATION_CTRL), or the kernel sets it with a \
           seccomp filter.",
    why: "Restricted, predictors are not shared with the SMT sibling and are flushed at switches between tasks: \
          code with many calls through pointers (interpreters, virtual functions) mispredicts more often.",
    by_hand: "`grep SpeculationIndirectBranch /proc/PID/status`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read: read_indirect_branch,
    known: known_indirect_branch,
    remedies: Remedies::Of(SPECULATION_REMEDIES),
    toggle: Toggle::Parts(|contrast| parts(contrast, Speculation::IndirectBranch)),
};

/// Spellings of the field: the first is that of mainline.
const STORE_BYPASS_FIELDS: [&str; 1] = ["Speculation_Store_Bypass"];
const INDIRECT_BRANCH_FIELDS: [&str; 2] = ["SpeculationIndirectBranch", "Speculation_Indirect_Branch"];

/// Whether a state makes a program slower than it could be; `None` for a word that the documentation does not have.
pub fn is_restricted(state: &str) -> Option<bool> {
    match state {
        "thread force mitigated" | "thread mitigated" | "globally mitigated" => Some(true),
        "conditional force disabled" | "conditional disabled" | "always disabled" => Some(true),
        "not vulnerable" | "thread vulnerable" | "vulnerable" => Some(false),
        "not affected" | "conditional enabled" | "always enabled" => Some(false),
        _ => None,
    }
}

/// Whether the state was forced, which a seccomp filter without `SECCOMP_FILTER_FLAG_SPEC_ALLOW` does and a program itself can do
/// (`PR_SPEC_FORCE_DISABLE`).
pub fn is_forced(state: &str) -> bool {
    state.contains("force")
}

fn first(task: &TaskFiles<'_>, fields: &[&str]) -> Reading {
    let mut missing = Missing::Absent;
    for field in fields {
        match task.status(field) {
            Ok(state) if state == "unknown" || state == "unsupported" => {
                return Reading::absent(format!("the kernel says {state}"));
            }
            Ok(state) => return Reading::known(Value::Text(state)),
            Err(why) => missing = why,
        }
    }
    Reading::missing(&missing, "this kernel does not report it")
}

fn read_store_bypass(task: &TaskFiles<'_>) -> Reading {
    first(task, &STORE_BYPASS_FIELDS)
}

fn read_indirect_branch(task: &TaskFiles<'_>) -> Reading {
    first(task, &INDIRECT_BRANCH_FIELDS)
}

fn restricts(a: &Value, b: &Value) -> bool {
    let of = |value: &Value| matches!(value, Value::Text(state) if is_restricted(state) == Some(true));
    of(a) != of(b)
}

const UNRESTRICTED: &str = "both states let the CPU speculate, or both do not";
const DOCUMENTED: &str = "Documentation/userspace-api/spec_ctrl.rst";

fn known_store_bypass(a: &Value, b: &Value) -> Known {
    if !restricts(a, b) {
        return Known::new(Weight::Harmless, UNRESTRICTED, DOCUMENTED);
    }
    Known::new(
        Weight::Heavy,
        "without it each load waits for the addresses of all earlier stores: 2 to 8 % of ordinary programs, more where values are \
         stored and loaded again soon",
        "L. Culbertson, Intel, \"Addressing New Research for Side-Channel Analysis\", May 2018; Documentation/userspace-api/spec_ctrl.rst",
    )
}

fn known_indirect_branch(a: &Value, b: &Value) -> Known {
    if !restricts(a, b) {
        return Known::new(Weight::Harmless, UNRESTRICTED, DOCUMENTED);
    }
    Known::new(
        Weight::Heavy,
        "predictors are not shared with the sibling CPU and are emptied at switches between tasks: programs with many calls \
         through pointers (interpreters, virtual functions) pay most",
        "Documentation/admin-guide/hw-vuln/spectre.rst, \"Mitigation control\"",
    )
}

const HOW: How = How {
    irreversible: true,
    counters: &[Metric::User, Metric::Cpu],
    mechanism: "the CPU waits for what it would otherwise speculate on",
    sham: "the same call with the state of the fast context",
};

/// `PR_SPEC_PRCTL`: each thread can choose (Documentation/userspace-api/spec_ctrl.rst).
const CHOSEN_BY_THREAD: i32 = 1;

fn parts(contrast: &Contrast<'_>, of: Speculation) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let Some(Value::Text(state)) = value else { return Err("it is not known".to_owned()) };
        let number = match of {
            Speculation::StoreBypass => 0,
            Speculation::IndirectBranch => 1,
        };
        match system_calls::speculation(number) {
            Ok(answer) if answer & CHOSEN_BY_THREAD != 0 => {}
            Ok(answer) => {
                return Err(format!(
                    "it cannot be realised here: threads have no choice on this machine (prctl(PR_GET_SPECULATION_CTRL) = {answer})"
                ));
            }
            Err(error) => return Err(format!("it cannot be realised here: {error}")),
        }
        let state = match state.as_str() {
            "thread vulnerable" | "conditional enabled" => SpeculationState::Enabled,
            "thread mitigated" | "conditional disabled" => SpeculationState::Disabled,
            "thread force mitigated" | "conditional force disabled" => SpeculationState::ForceDisabled,
            state => return Err(format!("{state:?} is a state of the machine and not of a thread")),
        };
        Ok(vec![Setting::Step(ContextStep::Speculation { of, state })])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::KernelFiles;

    fn reading(line: &str, factor: &Factor) -> Reading {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("status"), format!("Name:\tx\n{line}\nCpus_allowed:\t3\n")).unwrap();
        let kernel_files = KernelFiles::Saved(directory.path().to_owned());
        (factor.read)(&TaskFiles::process(&kernel_files, "", None))
    }

    #[test]
    fn all_documented_states_are_known_in_both_spellings() {
        for (state, restricted) in [
            ("thread force mitigated", true),
            ("thread mitigated", true),
            ("globally mitigated", true),
            ("thread vulnerable", false),
            ("vulnerable", false),
            ("not vulnerable", false),
        ] {
            let read = reading(&format!("Speculation_Store_Bypass:\t{state}"), &STORE_BYPASS);
            assert_eq!(read, Reading::known(Value::text(state)));
            assert_eq!(is_restricted(state), Some(restricted), "{state}");
        }
        for (state, restricted) in [
            ("conditional force disabled", true),
            ("conditional disabled", true),
            ("always disabled", true),
            ("conditional enabled", false),
            ("always enabled", false),
            ("not affected", false),
        ] {
            for field in INDIRECT_BRANCH_FIELDS {
                let read = reading(&format!("{field}:\t{state}"), &INDIRECT_BRANCH);
                assert_eq!(read, Reading::known(Value::text(state)), "{field}");
            }
            assert_eq!(is_restricted(state), Some(restricted), "{state}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_know_is_absent_and_never_a_state() {
        for line in ["Speculation_Store_Bypass:\tunknown", "SpeculationIndirectBranch:\tunsupported", "Seccomp:\t0"] {
            let factor = if line.starts_with("SpeculationI") { &INDIRECT_BRANCH } else { &STORE_BYPASS };
            assert!(matches!(reading(line, factor), Reading::Absent { .. }), "{line}");
        }
    }

    #[test]
    fn only_a_change_of_what_the_processor_may_do_is_heavy() {
        let known = |a: &str, b: &str| known_store_bypass(&Value::text(a), &Value::text(b)).weight;
        assert_eq!(known("thread force mitigated", "thread vulnerable"), Weight::Heavy);
        assert_eq!(known("vulnerable", "thread vulnerable"), Weight::Harmless);
    }
}

//! What a thread is given before it is measured, and whether it got that.

use crate::state::ThreadState;
use nix::errno::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_context::factors::speculation::{is_forced, is_restricted};
use slowpath_seccomp::Program;
use slowpath_seccomp::install::{Speculation, forbid_new_privileges, install};
use std::io;

/// An arm: one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// As the process is.
    None,
    /// The same once more: what differs here is what the measurement cannot resolve.
    NoneAgain,
    /// With the filter, which says that it does not mind speculation (`SECCOMP_FILTER_FLAG_SPEC_ALLOW`).
    FilterSpeculationAllowed,
    /// With the filter, installed without a flag.
    Filter,
    /// Without a filter, and with the CPU's speculation restricted as far as this machine offers it to a thread.
    SpeculationDisabled,
}

/// Restricts the speculation of the calling thread (include/uapi/linux/prctl.h; libc has these for some architectures only).
const PR_SET_SPECULATION_CTRL: libc::c_int = 53;
const PR_SPEC_DISABLE: libc::c_ulong = 1 << 2;
/// What a thread can restrict, and what that is called.
const MISFEATURES: [(libc::c_ulong, &str); 2] = [(0, "store bypass"), (1, "indirect branches")];

/// What could not be done, in numbers: a thread with a filter must not allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// `PR_SET_NO_NEW_PRIVS`.
    Privileges(i32),
    /// The filter with this number.
    Filter(usize, i32),
    /// Each state of speculation: the error, or 0.
    Speculation([i32; 2]),
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Arm {
    /// All of them; the first is what the others are compared with.
    pub const ALL: [Self; 5] =
        [Self::None, Self::NoneAgain, Self::FilterSpeculationAllowed, Self::Filter, Self::SpeculationDisabled];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NoneAgain => "none_again",
            Self::FilterSpeculationAllowed => "filter_speculation_allowed",
            Self::Filter => "filter",
            Self::SpeculationDisabled => "speculation_disabled",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NoneAgain => "none again: resolution",
            Self::FilterSpeculationAllowed => "filter, SPEC_ALLOW",
            Self::Filter => "filter",
            Self::SpeculationDisabled => "speculation disabled",
        }
    }

    /// Whether it has the filter.
    pub fn is_filtered(self) -> bool {
        matches!(self, Self::FilterSpeculationAllowed | Self::Filter)
    }

    /// Gives the calling thread what the arm has, for good. All arms go through the same first step, which filters need.
    pub(crate) fn apply(self, programs: &[Program]) -> Result<(), Refused> {
        forbid_new_privileges().map_err(|error| Refused::Privileges(number(&error)))?;
        let speculation = match self {
            Self::FilterSpeculationAllowed => Speculation::Allowed,
            _ => Speculation::AsTheKernelLikes,
        };
        if self.is_filtered() {
            for (place, program) in programs.iter().enumerate() {
                install(program, speculation).map_err(|error| Refused::Filter(place, number(&error)))?;
            }
        }
        if self == Self::SpeculationDisabled {
            let errors =
                MISFEATURES.map(|(misfeature, _)| disable(misfeature).map_or_else(|error| number(&error), |()| 0));
            // One of the two is something to be measured; the state says which.
            if errors.iter().all(|error| *error != 0) {
                return Err(Refused::Speculation(errors));
            }
        }
        Ok(())
    }

    /// Whether a thread is what the arm should be, when the first arm is `base`.
    ///
    /// # Errors
    /// What is not as it should be, in words.
    pub fn judge(self, base: &ThreadState, state: &ThreadState, programs: usize) -> Result<(), String> {
        let added = if self.is_filtered() { u32::try_from(programs).unwrap_or(u32::MAX) } else { 0 };
        let mode = if self.is_filtered() { Some(2) } else { base.seccomp };
        if state.seccomp != mode || state.filters != base.filters.map(|filters| filters.saturating_add(added)) {
            return Err(format!(
                "the kernel says {state}, where {added} filters more than in the first arm were given ({base})"
            ));
        }
        let pairs = base.speculation().into_iter().zip(state.speculation());
        let mut changed = pairs.filter(|(before, now)| before != now).peekable();
        match self {
            // What the kernel does to a thread with a filter is what is to be found.
            Self::Filter => Ok(()),
            Self::SpeculationDisabled => match changed.any(|(_, (_, now))| now.and_then(is_restricted) == Some(true)) {
                true => Ok(()),
                false => Err(format!("the kernel accepted it, and says {state} as before")),
            },
            _ => match changed.peek() {
                None => Ok(()),
                Some(((factor, before), (_, now))) => {
                    let shown = |state: &Option<&str>| state.unwrap_or("nothing").to_owned();
                    Err(format!("{factor} is {:?}, where {:?} was to stay", shown(now), shown(before)))
                }
            },
        }
    }
}

/// The factors that a filter has switched off by force: free in `base`, forced in `state`.
pub(crate) fn forced(base: &ThreadState, state: &ThreadState) -> Vec<&'static str> {
    let pairs = base.speculation().into_iter().zip(state.speculation());
    pairs
        .filter(|((_, before), (_, now))| {
            before.and_then(is_restricted) == Some(false)
                && now.is_some_and(|now| is_restricted(now) == Some(true) && is_forced(now))
        })
        .map(|((factor, _), _)| factor)
        .collect()
}

fn disable(misfeature: libc::c_ulong) -> io::Result<()> {
    const ZERO: libc::c_ulong = 0;
    // SAFETY: takes integers and touches no memory of ours.
    let result = unsafe { libc::prctl(PR_SET_SPECULATION_CTRL, misfeature, PR_SPEC_DISABLE, ZERO, ZERO) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Refused {
    /// Why, and what would change it.
    pub(crate) fn reason_and_remedy(self) -> (String, String) {
        let text = |error: i32| Errno::from_raw(error).to_string();
        match self {
            Self::Privileges(error) => {
                (format!("PR_SET_NO_NEW_PRIVS: {}", text(error)), "a kernel with seccomp filters".to_owned())
            }
            Self::Filter(place, error) => {
                (format!("the kernel refuses filter {}: {}", place + 1, text(error)), filter_remedy(error).to_owned())
            }
            Self::Speculation(errors) => {
                let each = MISFEATURES.iter().zip(errors).map(|((_, name), error)| format!("{name}: {}", text(error)));
                (
                    format!("cannot be realised here: the kernel lets a thread change neither ({})", each.collect::<Vec<_>>().join("; ")),
                    "a CPU and a kernel that offer it to a thread: \"via prctl\" in /sys/devices/system/cpu/vulnerabilities/\
                     spec_store_bypass, \"conditional\" in spectre_v2; parameters spec_store_bypass_disable=prctl spectre_v2_user=prctl, and \
                     in a virtual machine a host that shows the CPU's control"
                        .to_owned(),
                )
            }
        }
    }
}

fn filter_remedy(error: i32) -> &'static str {
    match error {
        libc::EINVAL => {
            "check that the instructions are a filter (jumps within it, a return at its end, this machine's order of bytes), and that the \
             kernel knows the flag (SPEC_ALLOW: Linux 4.17)"
        }
        libc::ENOMEM => "fewer or shorter filters: a thread has 32768 instructions in all of them",
        _ => "run it where the caller's own filter or security module allows seccomp",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(filters: u32, store: &str, branch: &str) -> ThreadState {
        ThreadState {
            seccomp: Some(if filters > 0 { 2 } else { 0 }),
            filters: Some(filters),
            store_bypass: Some(store.to_owned()),
            indirect_branch: Some(branch.to_owned()),
        }
    }

    /// Linux 5.10 with `spec_store_bypass_disable=seccomp`, as its documentation has the words.
    fn old(filters: u32, is_forced: bool) -> ThreadState {
        match is_forced {
            false => state(filters, "thread vulnerable", "conditional enabled"),
            true => state(filters, "thread force mitigated", "conditional force disabled"),
        }
    }

    #[test]
    fn names_are_those_of_json() {
        for arm in Arm::ALL {
            assert_eq!(serde_json::to_value(arm).unwrap(), arm.name());
        }
    }

    #[test]
    fn each_arm_has_its_filters_more_than_the_first_and_no_others() {
        let base = old(1, false);
        for arm in [Arm::FilterSpeculationAllowed, Arm::Filter] {
            assert_eq!(arm.judge(&base, &old(4, false), 3), Ok(()));
            let wrong = arm.judge(&base, &old(3, false), 3).unwrap_err();
            assert!(wrong.contains("filters 3") && wrong.contains("3 filters more"), "{wrong}");
        }
        assert_eq!(Arm::NoneAgain.judge(&base, &old(1, false), 3), Ok(()));
        assert!(Arm::NoneAgain.judge(&base, &old(2, false), 3).is_err());
        // A kernel that does not tell the number: the mode counts.
        let without = |mode| ThreadState { seccomp: Some(mode), ..ThreadState::default() };
        assert_eq!(Arm::Filter.judge(&without(0), &without(2), 3), Ok(()));
        assert!(Arm::Filter.judge(&without(0), &without(0), 3).is_err());
    }

    #[test]
    fn a_filter_may_be_forced_and_one_that_allows_speculation_may_not() {
        let base = old(0, false);
        assert_eq!(Arm::Filter.judge(&base, &old(1, true), 1), Ok(()));
        assert_eq!(forced(&base, &old(1, true)), ["speculative_store_bypass", "indirect_branch_speculation"]);
        let wrong = Arm::FilterSpeculationAllowed.judge(&base, &old(1, true), 1).unwrap_err();
        assert!(wrong.contains("thread force mitigated"), "{wrong}");
        assert!(forced(&base, &old(1, false)).is_empty());
        // The context itself is forced already, or the machine restricts everybody: not the filter's doing.
        assert!(forced(&old(1, true), &old(2, true)).is_empty());
        let global = |filters| state(filters, "globally mitigated", "always disabled");
        assert!(forced(&global(0), &global(1)).is_empty());
    }

    #[test]
    fn disabled_speculation_must_be_seen_in_one_state_at_least() {
        let base = old(0, false);
        let judge = |store, branch| Arm::SpeculationDisabled.judge(&base, &state(0, store, branch), 1);
        assert_eq!(judge("thread mitigated", "conditional disabled"), Ok(()));
        assert_eq!(judge("thread mitigated", "conditional enabled"), Ok(()));
        assert!(judge("thread vulnerable", "conditional enabled").unwrap_err().contains("as before"));
    }

    #[test]
    fn what_is_refused_says_what_would_change_it() {
        let (why, remedy) = Refused::Speculation([libc::ENXIO, libc::EPERM]).reason_and_remedy();
        assert!(why.contains("cannot be realised here") && why.contains("store bypass: ENXIO"), "{why}");
        assert!(remedy.contains("spec_store_bypass_disable=prctl"), "{remedy}");
        assert!(Refused::Filter(1, libc::EINVAL).reason_and_remedy().0.contains("filter 2: EINVAL"));
    }
}

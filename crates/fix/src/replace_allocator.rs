//! The fix `replace_allocator`: an allocator that keeps more of what was freed, put before the C library's by `LD_PRELOAD`.
//!
//! Owns its plan and which programs cannot have it. Leaves finding one to [`crate::installed_allocator`].

use crate::allocator_tunables::OTHER_ALLOCATORS;
use crate::case::Case;
use crate::declaration::Declaration;
use crate::path_list::before;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::program::Program;
use crate::proposal::{Proposal, gap, places};
use crate::treatment::Treatment;
use slowpath_analysis::memory::memory_fixes::REPLACE_ALLOCATOR;
use std::ffi::OsStr;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: REPLACE_ALLOCATOR,
    former: &["another_allocator"],
    title: "an allocator that keeps more, in front of the C library's",
    what: "LD_PRELOAD loads jemalloc, tcmalloc or mimalloc before the C library; their malloc is used then.",
    why: "They return memory to the kernel late, or never, so that blocks are reused without a page fault.",
    price: "resident memory that the allocator keeps, and loading its library at each start",
    by_hand: "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 COMMAND; without the variable nothing is changed",
    trial: "in warm launches, where such a library is installed and the program heeds the variable",
    propose: Some(proposals),
};

/// The variable of ld.so(8).
pub const VARIABLE: &str = "LD_PRELOAD";

/// What would install the first of them, on Debian and its kin.
const REMEDY: &str = "apt install libjemalloc2";

/// At most one proposal, for all findings together.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let (willing, reasons) = case.willing(refuses);
    let library = case.machine.allocator.as_deref();
    let (gap, trial) = match (library, reasons.first()) {
        (None, _) => {
            let reason = "none of jemalloc, tcmalloc and mimalloc is installed";
            let trial = Trial { possible: false, how: format!("{reason}; {REMEDY}") };
            (Some(gap(REPLACE_ALLOCATOR, reason, REMEDY)), trial)
        }
        (Some(_), Some(reason)) if willing.is_empty() => {
            let remedy = "none from outside: link the program with the allocator";
            (Some(gap(REPLACE_ALLOCATOR, reason, remedy)), Trial { possible: false, how: reason.clone() })
        }
        (Some(_), _) => (None, Trial { possible: true, how: "in the environment of the launch".to_owned() }),
    };
    let is_possible = trial.possible;
    let value = before(OsStr::new(library.unwrap_or("libjemalloc.so.2")), case.variable(VARIABLE));
    vec![Proposal {
        plan: plan(case, library, &value, trial),
        findings: places(if is_possible { &willing } else { case.findings }),
        // What another allocator keeps is up to that allocator.
        predicted: None,
        gap,
        caution: None,
        needs: None,
    }]
}

fn refuses(program: &Program) -> Option<String> {
    let other =
        || Some(format!("{} has another allocator already: {}", program.name, program.maps(&OTHER_ALLOCATORS)?));
    program.unreachable_allocator().or_else(other)
}

fn plan(case: &Case<'_>, library: Option<&str>, value: &OsStr, trial: Trial) -> FixPlan {
    let name = library.and_then(|path| path.rsplit('/').next()).unwrap_or("jemalloc, tcmalloc or mimalloc");
    FixPlan {
        fix: REPLACE_ALLOCATOR.to_owned(),
        name: REPLACE_ALLOCATOR.to_owned(),
        title: format!("{name} instead of the C library's allocator"),
        changes: vec![Change {
            what: format!("{VARIABLE} in the environment of the program"),
            from: case.variable(VARIABLE).map(|value| value.to_string_lossy().into_owned()),
            to: value.to_string_lossy().into_owned(),
        }],
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects: vec![
            "programs that it starts inherit the variable".to_owned(),
            "every allocation of the program takes another code path: its speed, its memory and its crashes can change"
                .to_owned(),
            "mallopt, malloc_trim and mallinfo of the C library have no effect on it".to_owned(),
        ],
        price: "resident memory that the allocator keeps, and loading its library at each start".to_owned(),
        security_cost:
            "the checks of the C library's allocator are replaced by those of the other; the library has to be \
                        trusted and kept up to date"
                .to_owned(),
        undo: format!("start the program without {VARIABLE}, or with the value before"),
        trial,
        treatment: if library.is_some() { Treatment::variable(VARIABLE, value) } else { Treatment::None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, program, proposed};
    use std::ffi::OsString;

    fn one(mapped: &[&str], environment: &[(&str, &str)], allocator: Option<&str>) -> Proposal {
        let machine = Machine { allocator: allocator.map(str::to_owned), ..Machine::default() };
        let findings = [finding(REPLACE_ALLOCATOR, 10.0)];
        proposed(&FIX, &findings, &program(mapped), environment, &machine).remove(0)
    }

    const LIBC: &str = "/usr/lib/libc.so.6";
    const JEMALLOC: &str = "/usr/lib/libjemalloc.so.2";

    #[test]
    fn an_installed_one_stands_before_what_the_user_loads() {
        let made = one(&[LIBC], &[], Some(JEMALLOC));
        assert_eq!(made.plan.tried().environment(), [(VARIABLE.into(), OsString::from(JEMALLOC))]);
        assert!(made.plan.trial.possible && made.predicted.is_none() && made.gap.is_none());
        let both = one(&[LIBC], &[(VARIABLE, "/opt/own.so")], Some(JEMALLOC));
        assert_eq!(both.plan.tried().environment()[0].1, "/usr/lib/libjemalloc.so.2:/opt/own.so");
        assert_eq!(both.plan.changes[0].from.as_deref(), Some("/opt/own.so"));
    }

    #[test]
    fn without_one_the_remedy_is_shown_and_programs_that_cannot_have_it_are_refused() {
        let missing = one(&[LIBC], &[], None);
        assert!(!missing.plan.trial.possible && missing.plan.tried().environment().is_empty());
        assert_eq!(missing.gap.unwrap().remedy, "apt install libjemalloc2");
        for (mapped, words) in
            [(vec![], "maps no libc.so.6"), (vec![LIBC, "/x/libmimalloc.so.2"], "another allocator already")]
        {
            let refused = one(&mapped, &[], Some(JEMALLOC));
            assert!(!refused.plan.trial.possible && refused.plan.tried().environment().is_empty(), "{mapped:?}");
            assert!(refused.plan.trial.how.contains(words), "{}", refused.plan.trial.how);
        }
    }
}

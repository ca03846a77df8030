//! The fix `huge_pages`: glibc's malloc asks the kernel for huge pages (`glibc.malloc.hugetlb=1`, glibc 2.35 and later): one fault
//! brings 2 MiB.
//!
//! Owns when that changes anything: where transparent huge pages are given to who asks (`madvise`). Where every mapping has them
//! (`always`) it changes nothing, and where none has (`never`) it cannot.

use crate::allocator_tunables::{VARIABLE, with};
use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::program::Program;
use crate::proposal::{Proposal, gap, places, predicted};
use crate::treatment::Treatment;
use slowpath_analysis::Finding;
use slowpath_analysis::memory::memory_fixes::HUGE_PAGES;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: HUGE_PAGES,
    former: &[],
    title: "huge pages for what malloc maps",
    what: "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 makes glibc ask for transparent huge pages (MADV_HUGEPAGE) for its \
           heaps and blocks.",
    why: "One fault brings 2 MiB instead of 4 KiB.",
    price: "resident memory: a huge page is resident as a whole once one byte of it is used",
    by_hand: "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 COMMAND (glibc 2.35 and later); without the variable nothing is \
              changed",
    trial: "in warm launches, where /sys/kernel/mm/transparent_hugepage/enabled is madvise",
    propose: Some(proposals),
};

/// The setting: 1 is `madvise(MADV_HUGEPAGE)` on what malloc maps (manual of glibc, Memory Allocation Tunables).
const SETTING: (&str, u64) = ("glibc.malloc.hugetlb", 1);

/// Where the kernel says to whom it gives huge pages (admin-guide/mm/transhuge.rst).
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// At most one proposal, for all findings together.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let (willing, reasons) = case.willing(Program::unreachable_allocator);
    let refusal = match case.machine.huge_pages.as_deref() {
        Some("madvise") if !willing.is_empty() => None,
        Some("madvise") => Some((reasons.first().cloned().unwrap_or_default(), "none from outside")),
        Some("always") => Some((
            "THP is already enabled for all memory on this machine".to_owned(),
            "none is needed; to compare, write madvise to /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        Some(_) => Some((
            format!("huge pages are switched off ({ENABLED})"),
            "as root: write madvise to /sys/kernel/mm/transparent_hugepage/enabled",
        )),
        None => {
            Some(("this kernel has no transparent huge pages".to_owned(), "a kernel with CONFIG_TRANSPARENT_HUGEPAGE"))
        }
    };
    let value = with(case.variable(VARIABLE), [SETTING].into_iter());
    let trial = match &refusal {
        None => Trial { possible: true, how: "in the environment of the launch".to_owned() },
        Some((reason, _)) => Trial { possible: false, how: reason.clone() },
    };
    let plan = FixPlan {
        fix: HUGE_PAGES.to_owned(),
        name: HUGE_PAGES.to_owned(),
        title: "glibc's malloc asks for huge pages: glibc.malloc.hugetlb=1".to_owned(),
        changes: vec![Change {
            what: format!("{VARIABLE} in the environment of the program"),
            from: case.variable(VARIABLE).map(|value| value.to_string_lossy().into_owned()),
            to: value.to_string_lossy().into_owned(),
        }],
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects: vec![
            "programs that it starts inherit the variable".to_owned(),
            "a fault zeroes 2 MiB at once: fewer waits, longer ones; the kernel may move memory to find such pages"
                .to_owned(),
            "no effect with a glibc before 2.35, and on programs that refuse huge pages themselves".to_owned(),
        ],
        price: "resident memory: a huge page is resident as a whole once one byte of it is used".to_owned(),
        security_cost: "none: the variable is the user's own; programs in secure mode ignore it".to_owned(),
        undo: format!("start the program without {VARIABLE}, or with the value before"),
        trial,
        treatment: Treatment::variable(VARIABLE, value),
    };
    let gap = refusal.as_ref().map(|(reason, remedy)| gap(HUGE_PAGES, reason, remedy));
    let findings = places(if gap.is_none() { &willing } else { case.findings });
    // Fewer faults that take longer each: only findings that say how much predict it.
    let all = || if willing.is_empty() { case.findings.iter() } else { willing.iter() };
    let predicted =
        all().all(|(_, finding)| is_predicted(finding)).then(|| predicted(&all().copied().collect::<Vec<_>>()));
    vec![Proposal { plan, findings, predicted: predicted.flatten(), gap, caution: None, needs: None }]
}

/// Whether a finding's predicted saving is that of this fix.
fn is_predicted(finding: &Finding) -> bool {
    finding.fix_inputs.is_predicted_for(HUGE_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, program, proposed};

    fn one(mode: Option<&str>, mapped: &[&str], environment: &[(&str, &str)]) -> Proposal {
        let machine = Machine { huge_pages: mode.map(str::to_owned), ..Machine::default() };
        proposed(&FIX, &[finding(HUGE_PAGES, 10.0)], &program(mapped), environment, &machine).remove(0)
    }

    #[test]
    fn a_change_is_predicted_where_every_finding_says_that_its_saving_is_of_this_fix() {
        let machine = Machine { huge_pages: Some("madvise".to_owned()), ..Machine::default() };
        let mut known = finding(HUGE_PAGES, 10.0);
        known.fix_inputs.predicted_for.push(HUGE_PAGES.to_owned());
        let unknown = finding(HUGE_PAGES, 5.0);
        let value = |findings: &[Finding]| {
            let made = proposed(&FIX, findings, &program(&["/lib/libc.so.6"]), &[], &machine).remove(0);
            made.predicted.map(|change| change.value)
        };
        assert_eq!(value(std::slice::from_ref(&known)), Some(-10.0));
        assert_eq!(value(&[known.clone(), known.clone()]), Some(-20.0));
        assert_eq!(value(&[known, unknown]), None);
    }

    #[test]
    fn it_is_tried_where_the_kernel_gives_them_to_who_asks() {
        let made =
            one(Some("madvise"), &["/lib/libc.so.6"], &[(VARIABLE, "glibc.malloc.hugetlb=2:glibc.malloc.check=1")]);
        assert_eq!(made.plan.tried().environment()[0].1, "glibc.malloc.check=1:glibc.malloc.hugetlb=1");
        assert!(made.plan.trial.possible && made.gap.is_none() && made.predicted.is_none());
    }

    #[test]
    fn elsewhere_the_reason_and_the_remedy_are_shown() {
        for (mode, mapped, words) in [
            (Some("always"), "libc.so.6", "already"),
            (Some("never"), "libc.so.6", "switched off"),
            (None, "libc.so.6", "no transparent huge pages"),
            (Some("madvise"), "libmusl", "maps no libc.so.6"),
        ] {
            let made = one(mode, &[&format!("/lib/{mapped}")], &[]);
            assert!(!made.plan.trial.possible && made.plan.tried().environment().is_empty(), "{mode:?}");
            let gap = made.gap.unwrap();
            assert!(gap.reason.contains(words) && !gap.remedy.is_empty(), "{gap:?}");
        }
    }
}

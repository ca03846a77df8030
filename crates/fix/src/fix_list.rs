//! Every fix, and what is asked of all of them: which is meant by a name, what each proposes for findings, which need a lab.
//!
//! A diagnosis, and the record of what was applied, may be of an earlier version: names of then mean the same fix. Leaves what a fix says
//! of itself, and its plans, to its own file.

use crate::declaration::Declaration;
use crate::machine::Machine;
use crate::program::Program;
use crate::proposal::Proposal;
use crate::{
    advise_huge_pages, allocator_tunables, avoid_copy, drop_isolation, grant_read, huge_pages, populate_at_map,
    preload_in_zygote, preload_plan, readahead_size, regenerate_artifact, replace_allocator, reuse_buffer,
    right_size_buffer, share_artifact,
};
use slowpath_analysis::Finding;
use std::borrow::Cow;
use std::ffi::OsString;

/// Every fix, in the order in which it is explained: those of cold launches, of a launch's environment, of the source, of files.
pub const ALL: [Declaration; 15] = [
    preload_plan::FIX,
    readahead_size::FIX,
    allocator_tunables::FIX,
    replace_allocator::FIX,
    huge_pages::FIX,
    populate_at_map::FIX,
    reuse_buffer::FIX,
    right_size_buffer::FIX,
    advise_huge_pages::FIX,
    avoid_copy::FIX,
    preload_in_zygote::FIX,
    grant_read::FIX,
    regenerate_artifact::FIX,
    share_artifact::FIX,
    drop_isolation::FIX,
];

/// Whether two plans have the same name, be it that of an earlier version.
pub fn is_same_name(one: &str, other: &str) -> bool {
    current_name(one) == current_name(other)
}

/// What a fix, or a plan of it, is called in this version. Where a fix has several plans their numbers follow its name (`reuse_buffer 2`).
fn current_name(name: &str) -> Cow<'_, str> {
    let fix = name.split(' ').next().unwrap_or(name);
    match ALL.iter().find(|declaration| declaration.former.contains(&fix)) {
        Some(declaration) => Cow::Owned(format!("{}{}", declaration.name, &name[fix.len()..])),
        None => Cow::Borrowed(name),
    }
}

/// All fixes for these findings. `program` returns the program of a finding; `unrecorded` is as in [`crate::Case`].
pub fn propose(
    findings: &[Finding],
    program: impl Fn(&Finding) -> Program,
    environment: &[(OsString, OsString)],
    machine: &Machine,
    unrecorded: f64,
) -> Vec<Proposal> {
    let programs: Vec<Program> = findings.iter().map(program).collect();
    ALL.iter().flat_map(|fix| fix.proposals(findings, &programs, environment, machine, unrecorded)).collect()
}

/// Names of fixes that findings give and that nothing here makes: those that need a lab, and unknown ones.
pub fn fixes_not_made_here(findings: &[Finding]) -> Vec<String> {
    let named = findings.iter().flat_map(|finding| &finding.fixes);
    let is_made = |name: &str| ALL.iter().any(|fix| fix.name == name && fix.propose.is_some());
    let mut others: Vec<String> = named.filter(|fix| !is_made(fix)).cloned().collect();
    others.sort();
    others.dedup();
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::finding;
    use slowpath_analysis::memory::memory_fixes;
    use std::collections::BTreeSet;

    fn proposed(findings: &[Finding]) -> Vec<Proposal> {
        propose(findings, |_| Program::default(), &[], &Machine::default(), 1.0)
    }

    #[test]
    fn fixes_are_asked_about_the_findings_that_name_it() {
        let made =
            proposed(&[finding("avoid_copy", 1.0), finding("preload_plan", 1.0), finding("populate_at_map", 1.0)]);
        let shown: Vec<_> = made.iter().map(|one| (one.plan.fix.as_str(), one.findings.clone())).collect();
        assert_eq!(shown, [("populate_at_map", vec![2]), ("avoid_copy", vec![0])]);
    }

    #[test]
    fn findings_that_name_nothing_that_is_made_here_have_no_proposal_and_need_a_lab() {
        let findings = [finding("preload_plan", 1.0), finding("nothing", 1.0), finding("preload_plan", 1.0)];
        assert!(proposed(&findings).is_empty());
        assert_eq!(fixes_not_made_here(&findings), ["nothing", "preload_plan"]);
        assert!(fixes_not_made_here(&[finding(memory_fixes::REUSE_BUFFER, 1.0)]).is_empty());
    }

    #[test]
    fn a_plan_is_known_by_its_name_and_by_that_of_earlier_versions() {
        for (name, former) in [
            ("avoid_copy", "look_in_place"),
            ("right_size_buffer", "size_to_use"),
            ("reuse_buffer", "keep_buffer"),
            ("reuse_buffer 2", "keep_buffer 2"),
            ("replace_allocator", "another_allocator"),
        ] {
            assert!(
                is_same_name(name, former) && is_same_name(former, name) && is_same_name(former, former),
                "{former}"
            );
        }
        for (one, other) in [("reuse_buffer", "keep_buffer 2"), ("reuse_buffer", "look_in_place"), ("x", "y")] {
            assert!(!is_same_name(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_former_name_is_that_of_one_fix_and_of_none_today() {
        let today: BTreeSet<&str> = ALL.iter().map(|fix| fix.name).collect();
        let former: Vec<&str> = ALL.iter().flat_map(|fix| fix.former).copied().collect();
        assert_eq!(former.iter().collect::<BTreeSet<_>>().len(), former.len());
        assert!(former.iter().all(|name| !today.contains(name)), "{former:?}");
    }
}

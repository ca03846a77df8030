//! Texts that people hand around: plans, contexts, filters, diagnoses, budgets, lists of pages.

use crate::recordings::harmless;
use slowpath_context::{Snapshot, differences};
use slowpath_fix::apply::permissions::{self, PermissionChange};
use slowpath_fix::apply::{self, FileNeed, Keeps};
use slowpath_fix::preload_plan::program::ReplayProgram;
use slowpath_fix::preload_plan::{PreloadPlan, file};
use slowpath_fix::{FixPlan, Treatment};
use slowpath_report::terminal::{self, Style};
use slowpath_report::{ContextComparison, Diagnosis, Machine, REPORT_SCHEMA, ReportData, ShownContext, html};
use std::path::Path;

/// A plan that is read again as it was written, and whose ranges lie in their files.
pub fn preload_plan(bytes: &[u8]) {
    let Ok(plan) = file::read(bytes) else { return };
    for range in &plan.ranges {
        let (from, to) = plan.byte_range(range);
        assert!(from < to, "{range:?} is empty");
        assert!(to <= plan.files[range.file as usize].size, "{range:?} ends outside its file");
    }
    plan.fix_plan("");
    plan.schedule();
    let mut written = Vec::new();
    file::write(&plan, &mut written).expect("memory takes everything");
    assert_eq!(file::read(written.as_slice()).ok(), Some(plan));
}

/// A file that somebody wrote, with each fix kept in it that it can keep: nothing but whole additions.
pub fn changed_file(bytes: &[u8]) {
    let variable = Treatment::variable("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=2097152");
    let replay = Treatment::PreloadPlan { file: "preload_plan.plan".to_owned(), sha256: None };
    for treatment in [variable, replay] {
        let plan = FixPlan { treatment, ..PreloadPlan::default().fix_plan("") };
        for target in apply::TARGETS.iter().filter(|kind| apply::refusal(kind, &plan).is_none()) {
            let Keeps::Content(kind) = &target.keeps else { continue };
            let rendered = (kind.render)(&apply::Input {
                plan: &plan,
                command: &["/usr/bin/true".into()],
                before: Some(bytes),
                plan_file: Path::new("/home/u/a b.plan"),
                replay: &ReplayProgram::slowpath(Path::new("/usr/bin/slowpath")),
            });
            let Ok(rendered) = rendered else { continue };
            // A kind that writes the whole file takes nothing from one that is there.
            if kind.file != FileNeed::New {
                assert!(is_within(bytes, &rendered.content), "{}: bytes of the file are gone", target.name);
            }
            apply::diff::unified("/home/u/file", Some(bytes), Some(&rendered.content));
        }
    }
}

/// Whether `all` is `part` with something inserted.
fn is_within(part: &[u8], all: &[u8]) -> bool {
    let mut left = all.iter();
    part.iter().all(|byte| left.any(|other| other == byte))
}

/// Two contexts, one a line: shown, and laid beside each other.
pub fn saved_context(bytes: &[u8]) {
    let (one, other) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()));
    let Ok(one) = Snapshot::of_json(one) else { return };
    let other = Snapshot::of_json(other.trim_ascii()).unwrap_or_else(|_| one.clone());
    contexts(one, &other);
}

/// Everything that `context` shows of contexts.
pub(crate) fn contexts(one: Snapshot, other: &Snapshot) {
    differences(&one, other);
    let Ok(here) = slowpath_context::Here::now() else { return };
    let comparison = ContextComparison::new(&one, other, &slowpath_context::plan(&one, other, &here));
    harmless(&terminal::context_comparison(&comparison, &Style::PLAIN));
    harmless(&terminal::context(&ShownContext::new(one), &Style::PLAIN));
}

/// A filter that is the same after a way through its bytes.
pub fn seccomp_profile(bytes: &[u8]) {
    for name in [None, Some("vmm")] {
        if let Ok(parsed) = slowpath_seccomp::parse(bytes, name) {
            let again = slowpath_seccomp::Program::from_bytes(&parsed.program.bytes());
            assert_eq!(again.ok(), Some(parsed.program));
        }
    }
}

/// What `report` and `fix` make of diagnosis.json.
pub fn diagnosis(bytes: &[u8]) {
    let Ok(diagnosis) = Diagnosis::of_json(bytes) else { return };
    for file in diagnosis.fixes.iter().flat_map(|plan| plan.treatment.files()) {
        // No mode that a diagnosis names lets more be written, or changes more than permission bits.
        if let Ok(change) = PermissionChange::of(file, 0) {
            let (before, after) = (change.before.mode, change.after.mode);
            let more = if before & 0o170_000 == 0o040_000 { 0o222 } else { 0o333 };
            assert!(after & !before & more == 0 && (before ^ after) & !0o777 == 0, "{before:o} to {after:o}");
        }
        permissions::text(file.uid, file.gid, &file.after);
    }
    harmless(&terminal::diagnosis(&diagnosis, &Style::PLAIN));
    let report = ReportData {
        schema: REPORT_SCHEMA.to_owned(),
        title: String::new(),
        generated: String::new(),
        machine: Machine { kernel: String::new(), cpus: 1, memory_bytes: 1, page_size: 4096, storage: String::new() },
        unavailable: diagnosis.unavailable.clone(),
        findings: diagnosis.findings.clone(),
        losses: diagnosis.losses.clone(),
        diagnosis: Some(diagnosis),
        io_map: None,
        ledger: None,
        flame_graphs: None,
        timeline: None,
        launches: None,
        siblings: None,
    };
    html::render(&report).expect("the data of a page are JSON");
}

/// A budget whose limits are numbers.
pub fn budget(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match slowpath_budget::parse(text) {
        Ok(budget) => {
            assert!(
                !budget.limits.is_empty() && budget.limits.iter().all(|limit| limit.budget.is_finite()),
                "{budget:?}"
            );
        }
        Err(problem) => drop(problem.to_string()),
    }
}

/// A list of pages in a directory that does not exist, so that no path leads anywhere.
pub fn page_list(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        slowpath_browse::foreign::page_list(Path::new("/nonexistent"), text);
    }
}

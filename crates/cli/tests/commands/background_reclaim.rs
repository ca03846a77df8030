//! Finding `background_reclaim` and its row of `slowpath compare` on the real program of `cases/late-huge-pages`, and reclaim in a
//! cgroup at its limit, which is the program's own.

use crate::memory_group::Group;
use crate::recorded_case::{RecordedCase, analyzed, built, rows};
use crate::running::*;
use crate::traces::{command_name, processes};
use serde_json::Value;
use slowpath_tables::{MemoryWorkKind, Nanos};
use std::fs;
use std::os::unix::fs::FileExt;

const FINDING: &str = "background_reclaim";
const HUGE_PAGES: u64 = 8;

/// The CPU time of khugepaged until now, in ms.
fn khugepaged_ms() -> f64 {
    let pid = processes().find(|pid| command_name(*pid) == "khugepaged").unwrap();
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Whether a finding charges khugepaged's time.
fn has_huge_pages_made(finding: &Value) -> bool {
    finding["subject"]["threads"].as_str().unwrap().split(", ").any(|thread| thread == "khugepaged")
}

#[test]
fn huge_pages_that_are_asked_for_late_are_found_where_they_are_paid_and_those_made_at_once_are_not() {
    if !root() {
        return;
    }
    let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if mode.is_empty() || mode.contains("[never]") {
        println!("skipped: this machine gives no huge pages ({mode})");
        return;
    }
    let place = built("late-huge-pages");
    let program = place.path().join("late-huge-pages");
    let path = |name: &str| place.path().join(name);

    let case = |variant: &str| {
        let target = [program.to_str().unwrap(), variant, &HUGE_PAGES.to_string()];
        RecordedCase::record(&path(variant), &["--quiet", "--memory-calls"], &target, &[FINDING])
    };
    let began = khugepaged_ms();
    let late = case("late");
    let in_all = khugepaged_ms() - began;
    assert_eq!(late.number("made_later") as u64, HUGE_PAGES, "khugepaged came to it: {:?}", late.numbers);
    let finding = late.one();
    // On a machine that is short of memory other threads have work too.
    assert_eq!(finding["subject"]["process"], "late-huge-pages");
    assert!(has_huge_pages_made(finding), "{finding:#}");
    let made = *rows(finding, "by").iter().find(|row| row["by"] == "huge pages made").unwrap();
    assert_eq!(made["of_program"].as_f64(), Some(HUGE_PAGES as f64), "{made}");
    // The program reads the same counter later than the recorder begins and earlier than it ends, and this test the other way round:
    // meanwhile the thread may work for others.
    let threads = rows(finding, "cpu_ms");
    let khugepaged = threads.iter().find(|row| row["thread"] == "khugepaged").unwrap();
    let (recorded, by_program) = (khugepaged["cpu_ms"].as_f64().unwrap(), late.number("khugepaged_ms"));
    assert!(recorded >= by_program - 0.001 && recorded <= in_all + 0.001, "{by_program}, {recorded}, {in_all} ms");
    let (cost, whole) = (khugepaged["cost_ms"].as_f64().unwrap(), finding["cost"]["value"].as_f64().unwrap());
    assert!(cost > 0.0 && cost <= recorded + 0.001 && whole >= cost - 0.001, "{cost} of {recorded} ms, {whole} in all");
    assert!(finding["predicted_saving"].is_null() && finding["fixes"] == serde_json::json!([]), "{finding:#}");

    // Near miss: the same work in its own context.
    let collapse = case("collapse");
    assert_eq!(collapse.number("huge_pages") as u64, HUGE_PAGES, "{:?}", collapse.numbers);
    assert!(!collapse.findings.iter().any(has_huge_pages_made), "{:#?}", collapse.findings);
    let own = tables(&path("collapse")).memory_work;
    let own = own.iter().filter(|row| row.work == MemoryWorkKind::OwnCollapse && row.succeeded && row.in_tree);
    assert_eq!(own.count() as u64, HUGE_PAGES);

    // Its twin asks before it touches.
    let early = case("early");
    assert!(!early.findings.iter().any(has_huge_pages_made), "{:#?}", early.findings);
    assert_eq!(early.number("huge_pages") as u64, HUGE_PAGES, "{:?}", early.numbers);
    let compared =
        run(slowpath(["compare", "--json", path("late").to_str().unwrap(), path("early").to_str().unwrap()]));
    compared.succeeds();
    let comparison = compared.json();
    let totals = comparison["totals"].as_array().unwrap();
    let reclaim = totals.iter().find(|one| one["measure"] == FINDING).unwrap_or_else(|| panic!("{totals:#?}"));
    let side = |side: &str| reclaim["change"][side]["value"].as_f64().unwrap();
    assert!((side("before") - whole).abs() < 1e-6, "{whole}: {reclaim:#}");
    let shown = run(slowpath(["compare", path("late").to_str().unwrap(), path("early").to_str().unwrap()]));
    assert!(shown.stdout.lines().any(|line| line.starts_with("background reclaim")), "{}", shown.stdout);
}

#[test]
fn reclaim_in_a_control_group_at_its_limit_is_the_programs_own_and_no_background_reclaim() {
    if !root() {
        return;
    }
    let Some(group) = Group::new("4M") else {
        println!("skipped: no cgroup v1 memory controller");
        return;
    };
    let place = place();
    // A file whose pages are not in memory: each page that is read is charged to the group.
    let (path, size) = (place.path().join("file"), 24u64 << 20);
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(&vec![7u8; size as usize], 0).unwrap();
    file.sync_all().unwrap();
    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
    let script = format!("echo $$ > {}/cgroup.procs; exec cat {} > /dev/null", group.path.display(), path.display());
    let out = place.path().join("out");
    record(&out, &["--quiet"], &["/bin/sh", "-c", &script]).succeeds();
    let found = tables(&out);
    let own: Vec<_> = found.memory_work.iter().filter(|row| row.work == MemoryWorkKind::GroupReclaim).collect();
    let pages: u64 = own.iter().filter(|row| row.succeeded).map(|row| row.pages.0).sum();
    println!("{} times, {pages} pages", own.len());
    // All but what fits must have been reclaimed; whoever tried in vain tried again.
    let (read, fits) = (size / 4096, (4u64 << 20) / 4096);
    assert!(pages >= (read - fits) * 9 / 10, "{pages} of {read} pages: {own:?}");
    assert!(own.iter().all(|row| row.in_tree && row.duration.is_some_and(|time| time > Nanos(0))), "{own:?}");
    let cat = found.execs.iter().find(|exec| exec.filename.ends_with("cat")).unwrap();
    assert!(own.iter().any(|row| row.process() == cat.process()), "{own:?}");
    // Nothing of it is charged a second time: background reclaim, on a machine that is short of memory, is that of the kernel's threads.
    let threads = found.manifest.memory_threads.unwrap().threads;
    let theirs: f64 = threads.iter().map(|thread| thread.cpu_time.as_ms()).sum();
    let findings = analyzed(&out)["findings"].as_array().unwrap().clone();
    let reclaim = findings.iter().filter(|finding| finding["name"] == FINDING);
    let charged: f64 = reclaim.map(|finding| finding["cost"]["value"].as_f64().unwrap()).sum();
    assert!(charged <= theirs, "{charged} of {theirs} ms: {findings:#?}");
}

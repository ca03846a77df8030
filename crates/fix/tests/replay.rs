//! Replays of plans on real files.

mod support;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use slowpath_fix::preload_plan::check::check;
use slowpath_fix::preload_plan::open::SkipReason;
use slowpath_fix::preload_plan::replay::{ReplayLimits, ReplayReport, Skipped, replay, replay_and_wait};
use slowpath_fix::preload_plan::{PlanOptions, PlannedFile, PreloadPlan};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use support::{
    beside_one_that_never_answers, cold_file, directory, evict, plan, planned, resident, wait_for_resident,
    with_options,
};

fn run(plan: &PreloadPlan) -> ReplayReport {
    replay(plan, &ReplayLimits::default())
}

fn skipped(reason: SkipReason) -> BTreeMap<SkipReason, Skipped> {
    BTreeMap::from([(reason, Skipped { files: 1, ranges: 1 })])
}

/// Replays a plan of one whole file and a second, untouched one, and expects the first to be left out.
fn expect_skip(file: PlannedFile, reason: SkipReason) {
    let plan = plan(vec![file], &[(0, 0, 1)]);
    let report = run(&plan);
    assert_eq!((report.ranges, report.bytes.0), (0, 0));
    assert_eq!(report.skipped, skipped(reason));
    let checked = check(&plan, false);
    assert_eq!(checked.unusable.iter().map(|file| file.reason).collect::<Vec<_>>(), [reason]);
    assert_eq!(checked.usable_bytes.0, 0);
}

#[test]
fn exactly_the_planned_pages_are_brought_into_the_page_cache() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 300);
    assert!(resident(&path).iter().all(|page| !page), "the file is not cold to begin with");
    let plan = plan(vec![planned(&path)], &[(0, 200, 3), (0, 10, 64)]);
    let report = run(&plan);
    assert_eq!((report.ranges, report.bytes.0), (2, 67 * 4096));
    assert!(report.skipped.is_empty());
    let pages = wait_for_resident(&path, 67);
    let expected: Vec<bool> = (0..300).map(|page| (200..203).contains(&page) || (10..74).contains(&page)).collect();
    assert_eq!(pages, expected);
    assert_eq!(check(&plan, false).usable_bytes.0, 67 * 4096);
}

#[test]
fn a_range_longer_than_the_kernel_takes_at_once_arrives_whole() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 8192);
    let report = run(&plan(vec![planned(&path)], &[(0, 0, 8192)]));
    assert!(report.requests > 1, "32 MiB went in one request");
    let pages = wait_for_resident(&path, 8192);
    assert_eq!(pages.iter().position(|page| !page), None, "{report:?}");
}

#[test]
fn a_dry_run_ends_when_the_last_page_is_there() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 2048);
    let report =
        replay_and_wait(&plan(vec![planned(&path)], &[(0, 1024, 1024), (0, 0, 512)]), &ReplayLimits::default());
    let there = resident(&path).into_iter().filter(|page| *page).count();
    assert_eq!(there, 1536);
    assert!(report.arrived_ns.unwrap() >= report.elapsed_ns);
}

#[test]
fn no_more_than_the_window_is_still_on_its_way_when_all_is_asked_for() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 16 * 1024);
    // From the end to the start: nothing but the plan's own order brings these pages.
    let ranges: Vec<(u32, u64, u64)> = (0..256).rev().map(|range| (0, range * 64, 64)).collect();
    let options = PlanOptions { in_flight_bytes: Some(4 * 64 * 4096), ..PlanOptions::default() };
    let report = run(&with_options(plan(vec![planned(&path)], &ranges), options));
    let pages = resident(&path);
    assert_eq!(report.ranges, 256);
    assert!(pages[4 * 64..].iter().all(|page| *page), "more than four ranges were on their way");
    assert!(wait_for_resident(&path, 16 * 1024).iter().all(|page| *page));
}

#[test]
fn a_window_smaller_than_a_range_still_brings_every_range() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 64);
    let options = PlanOptions { in_flight_bytes: Some(0), threads: 2, ..PlanOptions::default() };
    let report = run(&with_options(plan(vec![planned(&path)], &[(0, 32, 32), (0, 0, 8)]), options));
    assert_eq!(report.ranges, 2);
    wait_for_resident(&path, 40);
}

#[test]
fn several_pipelines_and_early_opening_ask_for_the_same() {
    let (_guard, directory) = directory();
    let paths: Vec<_> = (0..20).map(|i| directory.join(format!("f{i}"))).collect();
    paths.iter().for_each(|path| cold_file(path, 16));
    let ranges: Vec<(u32, u64, u64)> = (0..20).flat_map(|file| [(file, 12, 2), (file, 0, 3)]).collect();
    let options = PlanOptions { threads: 4, metadata: true, ..PlanOptions::default() };
    let report = run(&with_options(plan(paths.iter().map(|path| planned(path)).collect(), &ranges), options));
    assert_eq!((report.ranges, report.bytes.0), (40, 20 * 5 * 4096));
    for path in paths {
        let expected: Vec<bool> = (0..16).map(|page| page < 3 || (12..14).contains(&page)).collect();
        assert_eq!(wait_for_resident(&path, 5), expected);
    }
}

#[test]
fn a_symbolic_link_swapped_in_anywhere_in_the_path_is_not_followed() {
    let (_guard, directory) = directory();
    fs::create_dir(directory.join("d")).unwrap();
    let path = directory.join("d/a");
    cold_file(&path, 4);
    let file = planned(&path);
    fs::rename(&path, directory.join("d/real")).unwrap();
    symlink(directory.join("d/real"), &path).unwrap();
    expect_skip(file.clone(), SkipReason::SymbolicLink);
    fs::remove_file(&path).unwrap();
    fs::rename(directory.join("d/real"), &path).unwrap();
    fs::rename(directory.join("d"), directory.join("elsewhere")).unwrap();
    symlink(directory.join("elsewhere"), directory.join("d")).unwrap();
    expect_skip(file, SkipReason::SymbolicLink);
    assert!(resident(&directory.join("elsewhere/a")).iter().all(|page| !page));
}

#[test]
fn a_fifo_a_directory_and_a_device_are_not_opened() {
    let (_guard, directory) = directory();
    let fifo = directory.join("fifo");
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    expect_skip(planned(&fifo), SkipReason::NotRegular);
    expect_skip(planned(&directory), SkipReason::NotRegular);
    expect_skip(planned(std::path::Path::new("/dev/zero")), SkipReason::NotRegular);
}

#[test]
fn a_changed_and_a_missing_file_are_left_out_and_the_others_are_not() {
    let (_guard, directory) = directory();
    let [cut, gone, kept] = ["cut", "gone", "kept"].map(|name| directory.join(name));
    for path in [&cut, &gone, &kept] {
        cold_file(path, 4);
    }
    let plan = plan([&cut, &gone, &kept].map(|path| planned(path)).to_vec(), &[(0, 0, 4), (1, 0, 4), (2, 0, 4)]);
    fs::File::options().write(true).open(&cut).unwrap().set_len(100).unwrap();
    fs::remove_file(&gone).unwrap();
    let report = run(&plan);
    assert_eq!((report.ranges, report.bytes.0), (1, 4 * 4096));
    let one = Skipped { files: 1, ranges: 1 };
    assert_eq!(report.skipped, BTreeMap::from([(SkipReason::Missing, one), (SkipReason::Changed, one)]));
    assert!(wait_for_resident(&kept, 4).iter().all(|page| *page));
}

#[test]
fn a_file_of_the_same_size_with_another_time_counts_as_changed() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 4);
    let mut file = planned(&path);
    file.mtime_ns -= 1;
    expect_skip(file, SkipReason::Changed);
}

#[test]
fn the_byte_cap_holds_and_what_is_beyond_is_counted() {
    let (_guard, directory) = directory();
    let path = directory.join("a");
    cold_file(&path, 64);
    let plan = plan(vec![planned(&path)], &[(0, 0, 4), (0, 10, 8), (0, 30, 2)]);
    let report = replay(&plan, &ReplayLimits { bytes: 7 * 4096, ..ReplayLimits::default() });
    assert_eq!((report.ranges, report.bytes.0), (2, 6 * 4096));
    assert_eq!(report.skipped, skipped(SkipReason::OverByteCap));
}

#[test]
fn a_file_that_another_user_may_not_read_is_left_out() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can take another identity");
        return;
    }
    // The directory must be reachable for the other user; the build directory need not be.
    let guard = tempfile::tempdir().unwrap();
    let directory = guard.path().canonicalize().unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let [secret, open] = ["secret", "open"].map(|name| directory.join(name));
    cold_file(&secret, 4);
    cold_file(&open, 4);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    evict(&secret);
    let plan = plan(vec![planned(&secret), planned(&open)], &[(0, 0, 4), (1, 0, 4)]);
    // Credentials belong to a thread for the kernel; the raw calls change those of this thread only.
    let report = std::thread::spawn(move || {
        // SAFETY: two system calls with integers; the thread ends with these credentials.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_setresgid, 65534, 65534, 65534), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534), 0);
        }
        run(&plan)
    })
    .join()
    .unwrap();
    assert_eq!(report.skipped, skipped(SkipReason::Unreadable));
    // This also shows that O_NOATIME, which a stranger may not use, is given up rather than the file.
    assert_eq!(report.ranges, 1);
    assert!(resident(&secret).iter().all(|page| !page));
}

#[test]
fn nothing_is_looked_up_where_a_file_system_never_answers_and_no_link_leads_there() {
    let (_guard, directory) = directory();
    let (hangs, at) = (directory.join("hangs"), directory.clone());
    symlink("hangs", directory.join("link")).unwrap();
    let report = beside_one_that_never_answers(&hangs, move || {
        let file = |name: &str| PlannedFile {
            path: at.join(name).to_str().unwrap().to_owned(),
            size: 4096,
            mtime_ns: 0,
            build_id: None,
        };
        run(&plan(vec![file("hangs/a"), file("link/a")], &[(0, 0, 1), (1, 0, 1)]))
    });
    let one = Skipped { files: 1, ranges: 1 };
    let expected = BTreeMap::from([(SkipReason::NetworkFileSystem, one), (SkipReason::SymbolicLink, one)]);
    assert!(report.is_none_or(|report| report.skipped == expected));
}

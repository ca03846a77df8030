//! Sums of intervals against the kernel's own accounts: run time and time on the run queue of a thread (schedstat), and the
//! throttling of a cgroup (cpu.stat).

use crate::held::{facts, recorded, undisturbed};
use crate::targets::root;
use slowpath_capture::Options;
use slowpath_recording::Tables;
use slowpath_tables::OffCpuReason;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn waits() -> Options {
    Options { waits: true, ..Options::default() }
}

/// Burns CPU time in so many children on one CPU. Each says how long it has run and waited so far by the kernel's
/// account, and when it looked; both begin with 0 at its fork.
const HOGS: &str = "
import os, sys, time
os.sched_setaffinity(0, {0})
for number in range(int(sys.argv[2])):
    if os.fork() == 0:
        while time.process_time() < float(sys.argv[3]):
            sum(range(10000))
        # Both are of one moment: the thread was not taken off the CPU between them.
        before = now = 0
        while before == 0 or now - before > 1000000:
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            ran, waited, _ = map(int, open('/proc/self/schedstat').read().split())
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with open(f'{sys.argv[1]}.{number}', 'w') as facts:
            facts.write(f'pid {os.getpid()}\\nran {ran}\\nwaited {waited}\\nnow {now}\\n')
        os._exit(0)
for _ in range(int(sys.argv[2])): os.wait()
";

struct Sums {
    life: u64,
    off: u64,
    runnable: u64,
    of: HashMap<OffCpuReason, u64>,
}

/// What was recorded of a hog until it looked at its account.
fn sums(out: &Tables, hog: &HashMap<String, u64>) -> Sums {
    let pid = hog["pid"] as u32;
    let born = out.forks.iter().find(|fork| fork.tid == pid).unwrap().ts.0;
    let rows: Vec<_> = out.off_cpu.iter().filter(|row| row.tid == pid && row.ts.0 < hog["now"]).collect();
    assert!(rows.windows(2).all(|pair| pair[0].ts.0 + pair[0].duration.0 <= pair[1].ts.0), "intervals overlap");
    let mut of = HashMap::new();
    for row in &rows {
        *of.entry(row.reason).or_default() += row.duration.0;
    }
    Sums {
        life: hog["now"] - born,
        off: rows.iter().map(|row| row.duration.0).sum(),
        runnable: rows.iter().map(|row| row.runnable.0).sum(),
        of,
    }
}

fn hogs(count: usize, seconds: &str, meanwhile: impl FnMut(nix::unistd::Pid)) -> (Tables, Vec<HashMap<String, u64>>) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("facts");
    let place = place.to_str().unwrap();
    let command = ["/usr/bin/python3", "-c", HOGS, place, &count.to_string(), seconds];
    let out = recorded(waits(), &command, meanwhile);
    let said = (0..count).map(|number| facts(Path::new(&format!("{place}.{number}")))).collect();
    (out, said)
}

#[track_caller]
fn near(what: &str, recorded: u64, kernel: u64, of: u64, percent: u64) {
    println!("{what}: {recorded} ns recorded, {kernel} ns by the kernel");
    assert!(recorded.abs_diff(kernel) * 100 <= of * percent, "{what}: {recorded} recorded, {kernel} by the kernel");
}

#[test]
fn threads_that_share_a_cpu_are_runnable_as_long_as_the_kernel_says() {
    if !root() {
        return;
    }
    let (out, said) = undisturbed(|| hogs(2, "0.6", |_| ()));
    for hog in &said {
        let sums = sums(&out, hog);
        println!("{:?}", sums.of);
        near("on the run queue", sums.runnable, hog["waited"], hog["waited"], 2);
        near("life", hog["ran"] + sums.off, sums.life, sums.life, 1);
        // Each had to wait while the other burnt its share.
        assert!(sums.of[&OffCpuReason::Runnable] >= 400_000_000, "{:?}", sums.of);
    }
}

/// A group with a quota of a fifth of a CPU, which it gets beside others that compute: it is throttled on any machine. Removed in the end.
struct Quota(PathBuf);

impl Quota {
    fn make() -> Option<Self> {
        let name = format!("slowpath-test-{}", std::process::id());
        let old = Path::new("/sys/fs/cgroup/cpu");
        let new = Path::new("/sys/fs/cgroup");
        let (group, files): (_, &[(&str, &str)]) = if old.join("cpu.cfs_quota_us").exists()
            || old.join("tasks").exists()
        {
            (old.join(name), &[("cpu.shares", "262144"), ("cpu.cfs_period_us", "50000"), ("cpu.cfs_quota_us", "10000")])
        } else {
            (new.join(name), &[("cpu.weight", "10000"), ("cpu.max", "10000 50000")])
        };
        std::fs::create_dir(&group).ok()?;
        let made = Self(group);
        files.iter().all(|(file, text)| std::fs::write(made.0.join(file), text).is_ok()).then_some(made)
    }

    /// Periods in which it was throttled, and for how many ns.
    fn account(&self) -> (u64, u64) {
        let stat = facts(&self.0.join("cpu.stat"));
        let time = stat.get("throttled_time").copied().or(stat.get("throttled_usec").map(|us| us * 1000));
        (stat["nr_throttled"], time.unwrap())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_thread_whose_group_used_up_its_quota_is_throttled_as_long_as_the_kernel_says() {
    if !root() {
        return;
    }
    let Some(_) = Quota::make() else {
        println!("skipped: no cgroup with a quota can be made here");
        return;
    };
    let (out, (said, (periods, time))) = undisturbed(|| {
        let quota = Quota::make().unwrap();
        let mut inside = false;
        let (out, said) = hogs(1, "0.3", |pid| {
            if !std::mem::replace(&mut inside, true) {
                std::fs::write(quota.0.join("cgroup.procs"), pid.to_string()).unwrap();
            }
        });
        (out, (said, quota.account()))
    });
    let throttled: Vec<_> = out.off_cpu.iter().filter(|row| row.reason == OffCpuReason::Throttled).collect();
    println!("{} intervals in {periods} periods", throttled.len());
    assert!(periods >= 10 && throttled.len().abs_diff(periods as usize) <= periods as usize / 5);
    let recorded: u64 = throttled.iter().map(|row| row.duration.0).sum();
    // An interval lasts until the thread runs again: on a busy machine that is some time after the new period began, which the kernel
    // counts as time on the run queue. Of the hog it counts no more than that.
    let (sums, waited) = (sums(&out, &said[0]), said[0]["waited"]);
    let of_hog = sums.of[&OffCpuReason::Throttled];
    println!(
        "throttled: {recorded} ns recorded, {time} ns by the kernel; the hog {of_hog} ns, by the kernel at most {waited} ns"
    );
    assert!(recorded * 100 >= time * 99 && of_hog * 100 <= waited * 102, "{recorded} of {time}, {of_hog} of {waited}");
    near("throttled or on the run queue", sums.runnable, said[0]["waited"], said[0]["waited"], 2);
    near("life", said[0]["ran"] + sums.off, sums.life, sums.life, 1);
}

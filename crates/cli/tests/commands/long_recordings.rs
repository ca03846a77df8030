//! Recordings that are written while they are made: segments appear, whoever dies leaves what is whole, what is lost is counted.

use crate::attached::Toucher;
use crate::running::*;
use crate::traces::assert_no_kernel_object_left;
use slowpath_recording::{Manifest, Recording, Tables};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A recording of a process that touches pages, once its first segment of faults is there.
struct InProgress {
    running: Running,
    toucher: Toucher,
    place: tempfile::TempDir,
}

impl InProgress {
    fn start(options: &[&str]) -> Self {
        let mut toucher = Toucher::start("long");
        let place = place();
        let out = place.path().join("out");
        let mut command = slowpath(["record", "--quiet", "-o"]);
        let running = start(command.arg(&out).args(["--pid", &toucher.child.id().to_string()]).args(options));
        let patience = Instant::now() + Duration::from_secs(60);
        while !Recording::open(&out).is_ok_and(|recording| recording.manifest().rows("faults") > 0) {
            assert!(Instant::now() < patience, "no segment of faults appeared");
            toucher.touch();
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { running, toucher, place }
    }

    fn out(&self) -> std::path::PathBuf {
        self.place.path().join("out")
    }

    /// The process that writes: the recorder's child.
    fn writer(&self) -> u32 {
        let recorder = self.running.child.id();
        let children = std::fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: kill takes integers; the processes are this test's own.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_recording_in_progress_is_read_by_every_command_and_ends_in_order() {
    if !root() {
        return;
    }
    let mut recording = InProgress::start(&["--json"]);
    let (out, page, trace) = (recording.out(), recording.place.path().join("p"), recording.place.path().join("t"));
    let words = "the recording is in progress";
    let analyzed = run(slowpath(["analyze", "--json"]).arg(&out));
    analyzed.succeeds();
    assert!(analyzed.stderr.contains(words) && analyzed.stdout.contains(words), "{analyzed:?}");
    let reported = run(slowpath(["report"]).arg(&out).arg("-o").arg(&page));
    let exported = run(slowpath(["export", "--to", "perfetto"]).arg(&out).arg("-o").arg(&trace));
    for done in [&reported, &exported] {
        done.succeeds();
        assert!(done.stderr.contains(words), "{done:?}");
    }
    assert!(tables(&out).manifest.ended.is_none());
    for _ in 0..5 {
        recording.toucher.touch();
    }
    recording.running.signal(libc::SIGINT);
    let done = recording.running.wait();
    done.succeeds();
    assert_eq!(done.json()["manifest"]["stop_reason"], "interrupted");
    let Tables { manifest, faults, execs, .. } = tables(&out);
    assert!(
        manifest.ended.is_some() && manifest.clock_at_end.is_some() && manifest.losses.total() == 0,
        "{manifest:?}"
    );
    assert!(manifest.segments.iter().filter(|segment| segment.table == "faults").count() >= 2);
    assert!(faults.len() >= 6_000 && execs.len() == 1, "{} {execs:?}", faults.len());
    let analyzed = run(slowpath(["analyze"]).arg(&out));
    assert!(!analyzed.stderr.contains("in progress"), "{analyzed:?}");
}

#[test]
fn of_a_killed_recorder_everything_is_kept_that_it_had_reported() {
    if !root() {
        return;
    }
    let mut recording = InProgress::start(&[]);
    let (out, writer) = (recording.out(), recording.writer());
    let before = tables(&out).faults.len();
    for _ in 0..5 {
        recording.toucher.touch();
    }
    // What a CPU had collected and not reported, at most 31 faults each.
    let lost = 31 * std::thread::available_parallelism().unwrap().get();
    let is_reported = || tables(&out).faults.len() + lost >= before + 5_000;
    assert!(soon(is_reported), "{} faults, {before} before", tables(&out).faults.len());
    recording.running.signal(libc::SIGKILL);
    let done = recording.running.wait();
    assert!(soon(|| !is_there(writer)), "the writer lives on");
    assert_no_kernel_object_left(&done);
    let Tables { manifest, faults, .. } = tables(&out);
    assert_eq!((manifest.ended, manifest.stop_reason.as_deref()), (None, Some("the recorder was killed")));
    assert!(faults.len() + lost >= before + 5_000, "{} faults, {before} before", faults.len());
    let analyzed = run(slowpath(["analyze"]).arg(&out));
    analyzed.succeeds();
    assert!(analyzed.stderr.contains("its recorder was killed"), "{analyzed:?}");
    recording.toucher.touch();
}

#[test]
fn a_killed_writer_ends_the_recording_with_an_error_and_leaves_what_is_whole() {
    if !root() {
        return;
    }
    for both in [false, true] {
        let mut recording = InProgress::start(&[]);
        let (out, writer) = (recording.out(), recording.writer());
        let before = tables(&out).faults.len();
        if both {
            kill(recording.running.child.id(), libc::SIGSTOP);
        }
        kill(writer, libc::SIGKILL);
        if both {
            recording.running.signal(libc::SIGKILL);
        }
        let done = recording.running.wait();
        if !both {
            done.fails_with(3, &["the process that writes the recording was ended", "slowpath analyze"]);
        }
        assert!(soon(|| !is_there(writer)));
        assert_no_kernel_object_left(&done);
        let kept = tables(&out).faults.len();
        assert!(before > 0 && kept >= before, "{kept} of {before}");
        let analyzed = run(slowpath(["analyze"]).arg(&out));
        analyzed.succeeds();
        assert!(analyzed.stderr.contains("its recorder was killed"), "{analyzed:?}");
        recording.toucher.touch();
    }
}

/// Touches pages in an order without a pattern until it is ended; a minute at most.
const ENDLESS: &str = "
import mmap, random, time
m = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
pages = list(range(0, 40 << 20, 4096))
end = time.monotonic() + 60
while time.monotonic() < end:
    random.shuffle(pages)
    for i in pages: m[i] = 1
    m.madvise(mmap.MADV_DONTNEED)
";

/// A process that faults all the time, for `--pid`.
fn endless() -> std::process::Child {
    Command::new("/usr/bin/python3").args(["-c", ENDLESS]).spawn().unwrap()
}

fn segment_bytes(manifest: &Manifest) -> u64 {
    manifest.segments.iter().map(|segment| segment.bytes.0).sum()
}

#[test]
fn the_largest_size_ends_a_recording_that_says_so() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let mut target = endless();
    let pid = target.id().to_string();
    let limits = ["--max-size", "1M", "--json", "--pid", &pid];
    let done = run(slowpath(["record", "-o"]).arg(&out).args(limits));
    target.kill().unwrap();
    target.wait().unwrap();
    done.succeeds();
    assert!(done.stderr.contains("recording stopped: the recording reached its limit"), "{}", done.stderr);
    let Tables { manifest, faults, exits, .. } = tables(&out);
    assert!(manifest.stop_reason.as_ref().is_some_and(|why| why.contains("--max-size")), "{manifest:?}");
    assert!(manifest.ended.is_some() && segment_bytes(&manifest) <= 1 << 20, "{} bytes", segment_bytes(&manifest));
    assert!(!faults.is_empty() && exits.iter().any(|exit| exit.running), "the last rows have their place");
    // Nothing is dropped in silence.
    let counted: u64 = exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum();
    assert_agree(&tables(&out), counted);
}

/// Recorded and lost faults are those that the kernel counted since the process was followed.
#[track_caller]
fn assert_agree(tables: &Tables, counted: u64) {
    let exec = &tables.execs[0];
    let counted = counted - exec.min_flt - exec.maj_flt;
    let seen = tables.faults.iter().filter(|fault| fault.ts >= exec.ts).count() as u64;
    let lost: u64 = tables.manifest.losses.0.iter().filter(|(kind, _)| kind.contains("fault")).map(|one| one.1).sum();
    println!("{seen} recorded and {lost} lost, the kernel counted {counted}");
    assert!((seen + lost).abs_diff(counted) * 1000 <= counted, "{seen} recorded, {lost} lost, {counted} counted");
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_and_what_is_whole_is_kept() {
    if !root() {
        return;
    }
    let place = place();
    let mut target = endless();
    let script = "cd $PLACE; mkdir disk kept; mount -t tmpfs -o size=1500k none disk; code=0; \
        $SLOWPATH record --quiet -o disk/r --pid $TARGET || code=$?; cp -r disk/r kept/r; exit $code";
    let done = run(in_private_mounts(script).env("PLACE", place.path()).env("TARGET", target.id().to_string()));
    target.kill().unwrap();
    target.wait().unwrap();
    done.fails_with(3, &["No space left on device", "what was written before is intact"]);
    let (tables, damage) = Recording::open(place.path().join("kept/r")).unwrap().tables_whole();
    assert!(damage.is_empty(), "{damage:?}");
    let manifest = &tables.manifest;
    assert!(manifest.stop_reason.as_ref().is_some_and(|why| why.contains("No space left")), "{manifest:?}");
    assert!(manifest.ended.is_some() && !tables.faults.is_empty() && !tables.execs.is_empty());
    assert!(manifest.losses.0.iter().any(|(kind, lost)| kind.starts_with("not_written.") && *lost > 0));
}

/// Touches 1.2 million pages when there is a file `go`, and then waits for a file `end`.
const BURST: &str = "
import mmap, os, sys, time
def until(name):
    end = time.monotonic() + 60
    while not os.path.exists(name) and time.monotonic() < end: time.sleep(0.01)
m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_NOHUGEPAGE)
content = bytes(64 << 20)
open('runs', 'w').close()
until('go')
for i in range(75):
    m[:] = content
    m.madvise(mmap.MADV_DONTNEED)
open('done', 'w').close()
until('end')
";

#[test]
fn what_is_lost_while_the_recorder_stands_still_is_counted_to_the_last_fault() {
    if !root() {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    std::fs::write(at("burst.py"), BURST).unwrap();
    let mut command = Command::new(SLOWPATH);
    command.current_dir(place.path()).args(["record", "--quiet", "-o", "out", "--", "/usr/bin/python3", "burst.py"]);
    let running = start(command);
    let patience = Instant::now() + Duration::from_secs(60);
    let wait_for = |name: &str| {
        while !at(name).exists() {
            assert!(Instant::now() < patience, "no {name}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for("runs");
    kill(running.child.id(), libc::SIGSTOP);
    let stopped = Instant::now();
    std::fs::write(at("go"), "").unwrap();
    wait_for("done");
    std::thread::sleep(Duration::from_secs(3).saturating_sub(stopped.elapsed()));
    let written = || Recording::open(at("out")).map_or(0, |recording| recording.manifest().rows("faults"));
    let before = written();
    kill(running.child.id(), libc::SIGCONT);
    // An end that falls into a full ring is lost too, and with it the kernel's counts.
    while written() == before {
        assert!(Instant::now() < patience, "nothing was written after the recorder went on");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::write(at("end"), "").unwrap();
    running.wait().succeeds();
    let tables = tables(&at("out"));
    let lost = tables.manifest.losses.0["faults"];
    assert!(lost > 100_000, "the ring was not full: {lost} lost");
    assert_agree(&tables, tables.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum());
}

#[test]
fn two_recordings_of_one_process_at_once_both_see_it_whole() {
    if !root() {
        return;
    }
    let mut first = InProgress::start(&[]);
    let other = first.place.path().join("other");
    let pid = first.toucher.child.id().to_string();
    let mut second = start(slowpath(["record", "--quiet", "--pid", &pid, "-o"]).arg(&other));
    let patience = Instant::now() + Duration::from_secs(60);
    while !other.join("manifest.json").exists() {
        assert!(Instant::now() < patience && second.child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..5 {
        first.toucher.touch();
    }
    second.signal(libc::SIGINT);
    second.wait().succeeds();
    first.running.signal(libc::SIGINT);
    let out = first.out();
    first.running.wait().succeeds();
    for directory in [Path::new(&other), &out] {
        let tables = tables(directory);
        assert!(tables.faults.len() >= 5_000 && tables.manifest.losses.total() == 0, "{}", tables.faults.len());
        assert_agree(&tables, tables.exits.iter().map(|exit| exit.min_flt + exit.maj_flt).sum());
    }
}

#[test]
fn thousands_of_short_processes_are_told_apart_and_forgotten_by_the_end() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    let script = "i=0; while [ $i -lt 2000 ]; do (:); i=$((i + 1)); done; /bin/true";
    record(&out, &[], &["/bin/sh", "-c", script]).succeeds();
    let Tables { manifest, forks, exits, faults, .. } = tables(&out);
    assert_eq!((manifest.losses.total(), forks.len(), exits.len()), (0, 2001, 2002), "{:?}", manifest.losses);
    let mut ended: Vec<_> = exits.iter().map(|exit| (exit.pid, exit.start)).collect();
    ended.sort_unstable();
    ended.dedup();
    assert_eq!(ended.len(), 2002);
    // Every fault belongs to a process, within its life.
    let lives: std::collections::BTreeMap<_, _> = exits.iter().map(|exit| ((exit.pid, exit.start), exit.ts)).collect();
    let strange = faults.iter().filter(|fault| {
        let end = lives.get(&(fault.pid, fault.start));
        fault.ts < fault.start || end.is_none_or(|end| fault.ts > *end)
    });
    assert_eq!(strange.count(), 0);
}

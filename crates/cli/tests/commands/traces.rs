//! What a command may leave on a machine, and whether one did. Other slowpath processes may run meanwhile, so every
//! trace is known by its owner: the pid in a name, or a mark in the environment of processes.

use crate::running::{Done, mark, root, run, slowpath, soon};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// All processes of the machine, zombies too.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes, zombies excepted, whose environment at their exec held `mark`.
pub fn processes_with(mark: &str) -> Vec<u32> {
    processes().filter(|pid| carries(*pid, mark)).collect()
}

/// The name that the kernel has for a process, which it gives without the lock of the process's memory.
pub fn command_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Whether the environment of a process at its exec held `mark`.
pub fn carries(pid: u32, mark: &str) -> bool {
    let environment = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    // A program that is being loaded has its file already, and its arguments and environment not yet.
    soon(|| !environment().is_empty() || !is_loading(pid));
    environ_holds(&environment(), mark)
}

/// Whether the exec of a process goes on: the kernel gives it the new memory, and whoever waits for the exec is told, before the
/// program's segments and what lies on its stack (`begin_new_exec` and `create_elf_tables` of fs/exec.c and fs/binfmt_elf.c).
fn is_loading(pid: u32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline"));
    arguments.is_ok_and(|arguments| arguments.is_empty()) && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// Kills every process that was started with this in its environment, those too that begin meanwhile.
pub fn kill_all_with(mark: &str) {
    let none_lives = || {
        let living = processes_with(mark);
        for pid in &living {
            // SAFETY: kill takes integers; the process was found by a mark of the test's own.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
        living.is_empty()
    };
    assert!(soon(none_lives), "left: {:?}", processes_with(mark));
}

fn environ_holds(environment: &[u8], mark: &str) -> bool {
    environment.windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn names(place: &str) -> Vec<PathBuf> {
    fs::read_dir(place).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Entries of root's own directory, and cgroups, whose name says that `owner` made them.
pub fn owned_by(owner: u32) -> Vec<PathBuf> {
    let places = [
        "/run/slowpath",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/blkio",
        "/sys/kernel/tracing/instances",
        "/sys/fs/bpf",
    ];
    let says = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_ours = name.starts_with("slowpath") || path.starts_with("/run/slowpath");
        is_ours && name.split('-').any(|part| part.parse() == Ok(owner))
    };
    places.iter().flat_map(|place| names(place)).filter(says).collect()
}

/// Cgroups of `owner` in which processes live.
fn inhabited_cgroups(owner: u32) -> Vec<PathBuf> {
    let lives =
        |path: &PathBuf| fs::read_to_string(path.join("cgroup.procs")).is_ok_and(|text| !text.trim().is_empty());
    owned_by(owner).into_iter().filter(lives).collect()
}

/// Loop devices that a process holds now, with the inode of the nameless image behind each.
pub fn loop_devices_of(pid: u32) -> BTreeSet<(PathBuf, String)> {
    let held = names(&format!("/proc/{pid}/fd")).into_iter().filter_map(|descriptor| fs::read_link(descriptor).ok());
    let name = |path: PathBuf| Some(path.to_str()?.strip_prefix("/dev/")?.to_owned());
    let devices = held.filter_map(name).filter(|name| name.starts_with("loop") && name != "loop-control");
    let devices = devices.map(|name| Path::new("/sys/block").join(name));
    devices.filter_map(|device| Some((image_of(&device)?, device))).map(|(image, device)| (device, image)).collect()
}

fn image_of(device: &Path) -> Option<String> {
    fs::read_to_string(device.join("loop/backing_file")).ok()
}

/// Those that still have that image.
fn attached(devices: &BTreeSet<(PathBuf, String)>) -> Vec<PathBuf> {
    let still = |(device, image): &&(PathBuf, String)| image_of(device).as_ref() == Some(image);
    devices.iter().filter(still).map(|(device, _)| device.clone()).collect()
}

/// Mounts of a lab of `owner` that this process sees.
fn mounts(owner: u32) -> Vec<String> {
    let lab = format!("/run/slowpath/lab-{owner}-");
    let table = fs::read("/proc/self/mountinfo").unwrap();
    String::from_utf8_lossy(&table).lines().filter(|line| line.contains(&lab)).map(str::to_owned).collect()
}

/// BPF programs that a process holds now.
pub fn programs_of(pid: u32) -> BTreeSet<u64> {
    let number = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().parse().ok()
    };
    names(&format!("/proc/{pid}/fdinfo")).into_iter().filter_map(number).collect()
}

/// Tracepoints that programs which a process holds are attached to now, as the kernel tells them of its links.
pub fn tracepoints_of(pid: u32) -> BTreeSet<String> {
    let name = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        Some(text.lines().find_map(|line| line.strip_prefix("tp_name:"))?.trim().to_owned())
    };
    names(&format!("/proc/{pid}/fdinfo")).into_iter().filter_map(name).collect()
}

/// Those of `programs` that the kernel still has; none, with a reason, where bpftool is not installed.
fn loaded(programs: &BTreeSet<u64>) -> BTreeSet<u64> {
    let Some(bpftool) = ["/usr/sbin/bpftool", "/sbin/bpftool"].iter().find(|path| Path::new(path).exists()) else {
        println!("skipped: BPF programs are not counted, bpftool is not installed");
        return BTreeSet::new();
    };
    if programs.is_empty() {
        return BTreeSet::new();
    }
    let output = Command::new(bpftool).args(["--json", "prog", "show"]).output().unwrap().stdout;
    let list: serde_json::Value = serde_json::from_slice(&output).expect("bpftool prints JSON");
    let all = list.as_array().unwrap().iter().filter_map(|program| program["id"].as_u64());
    all.filter(|id| programs.contains(id)).collect()
}

/// Fails unless every kernel object of a command goes away: what is released late (RCU, lazy unmounts) gets time.
#[track_caller]
pub fn assert_no_kernel_object_left(done: &Done) {
    let pid = done.pid;
    let gone = || {
        attached(&done.devices).is_empty()
            && mounts(pid).is_empty()
            && inhabited_cgroups(pid).is_empty()
            && loaded(&done.programs).is_empty()
    };
    assert!(
        soon(gone),
        "process {pid} left loop devices {:?}, mounts {:?}, cgroups {:?}, BPF programs {:?}",
        attached(&done.devices),
        mounts(pid),
        inhabited_cgroups(pid),
        loaded(&done.programs),
    );
}

/// Fails when anything at all is left of a command.
#[track_caller]
pub fn assert_nothing_left(done: &Done) {
    assert_no_kernel_object_left(done);
    assert_eq!(owned_by(done.pid), [] as [PathBuf; 0]);
}

/// Keeps tests of this program apart of which one makes what cannot be removed, and others want everything removed.
pub fn alone_in_cleaning() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes what killed commands have left.
#[track_caller]
pub fn clean() {
    let _alone = alone_in_cleaning();
    run(slowpath(["doctor", "--clean"])).succeeds();
}

#[test]
fn a_trace_is_found_by_its_owner() {
    if !root() {
        return;
    }
    run(slowpath(["lab", "list"])).succeeds();
    let directory = PathBuf::from(format!("/run/slowpath/trace-{}-0-0", 4_000_000_001u32));
    fs::create_dir(&directory).unwrap();
    let found = owned_by(4_000_000_001);
    fs::remove_dir(&directory).unwrap();
    assert_eq!(found, [directory]);
    assert!(environ_holds(b"A=1\0MARK=7-1-\0", "7-1-"));
}

/// A fifth of them are still being loaded when the exec is reported, on a busy machine.
#[test]
fn a_process_carries_its_mark_as_soon_as_it_was_started() {
    let (name, value) = mark();
    let none_missed = (0..100).all(|_| {
        let mut child = Command::new("sleep").arg("60").env(name, &value).spawn().unwrap();
        let carried = carries(child.id(), &value);
        child.kill().unwrap();
        child.wait().unwrap();
        carried
    });
    assert!(none_missed);
}

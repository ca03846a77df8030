//! What a recording of a user's holds: no address of the kernel, and no layout of a program that the user could not trace. What is
//! searched is all that leaves the recorder, for addresses that the programs themselves and the kernel tell.
//! Needs root; skips with a reason otherwise.

use crate::copy_program;
use crate::targets::{held, root};
use slowpath_capture::{Options, Owner, RawCapture, Recorder, StackEvents, decode};
use slowpath_recording::Tables;
use slowpath_tables::{Exec, Fault, FrameKind};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NOBODY: Owner = Owner { uid: 65534, gid: 65534 };

/// Faults, memory calls, system calls and CPU time; then its own layout goes into a file, which it opened before.
const SCRIPT: &str = "
import mmap, os, sys
out = os.open(sys.argv[1], os.O_WRONLY)
for _ in range(10):
    m = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for i in range(0, 1 << 20, 4096): m[i] = 1
    m.close()
    sum(range(100000)); os.getrandom(1 << 16); os.stat('/etc/shadow')
os.write(out, open('/proc/self/maps', 'rb').read())
";

struct Site {
    directory: tempfile::TempDir,
    layout: PathBuf,
}

/// A place that everybody can enter, with a file for a layout that everybody can write.
fn site() -> Site {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let layout = directory.path().join("layout");
    std::fs::write(&layout, "").unwrap();
    std::fs::set_permissions(&layout, PermissionsExt::from_mode(0o666)).unwrap();
    Site { directory, layout }
}

/// A copy of Python with these permission bits.
fn python(site: &Site, mode: u32) -> String {
    let copy = site.directory.path().join(format!("python-{mode:o}"));
    copy_program("/usr/bin/python3", &copy);
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(mode)).unwrap();
    copy.to_str().unwrap().to_owned()
}

fn everything(owner: Owner) -> Options {
    let stacks = StackEvents { faults: true, waits: true, memory_calls: true };
    Options { owner, stacks, waits: true, memory_calls: true, cpu_hertz: Some(2000), ..Options::default() }
}

/// Becomes nobody. The capabilities of root go with the exec of what follows only (setpriv(1)).
const AS_NOBODY: [&str; 6] = ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// What leaves the recorder of a command that nobody runs.
fn recorded(options: Options, command: &[&str]) -> RawCapture {
    recorded_of(options, &[&AS_NOBODY, command].concat())
}

/// What leaves the recorder of a command that root runs.
fn recorded_of(options: Options, command: &[&str]) -> RawCapture {
    let mut recorder = Recorder::load(options).unwrap();
    let (child, release) = held(command);
    recorder.attach_tree(child.as_raw()).unwrap();
    nix::unistd::write(&release, b"x").unwrap();
    loop {
        recorder.drain().unwrap();
        let ended = nix::sys::wait::waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG)).unwrap();
        match ended {
            nix::sys::wait::WaitStatus::StillAlive => std::thread::sleep(Duration::from_millis(5)),
            nix::sys::wait::WaitStatus::Exited(_, 0) => break,
            other => panic!("{other:?}"),
        }
    }
    let mut taken = Vec::new();
    let mut raw = recorder.finish_with(|recorder| taken = recorder.take()).unwrap();
    taken.append(&mut raw.bytes);
    RawCapture { bytes: taken, ..raw }
}

/// Ranges of a file in the form of `/proc/PID/maps`, but for those at addresses that are the same everywhere, or small enough to be a
/// duration.
fn ranges(layout: &Path) -> Vec<Range<u64>> {
    let text = std::fs::read_to_string(layout).unwrap();
    let range = |line: &str| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(number(from)?..number(to)?).filter(|range| range.start > 1 << 40)
    };
    let found: Vec<_> = text.lines().filter(|line| !line.contains("[vsyscall]")).filter_map(range).collect();
    assert!(found.len() > 5, "{text}");
    found
}

/// Words of a recording that lie in ranges. Records are multiples of 8 bytes.
fn found_in(raw: &RawCapture, ranges: &[Range<u64>]) -> Vec<u64> {
    let words = raw.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    words.filter(|word| ranges.iter().any(|range| range.contains(word))).collect()
}

/// Where this kernel's own code is.
fn kernel_text() -> Range<u64> {
    let list = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let of = |name: &str| {
        let line = list.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    of("_stext")..of("_etext")
}

/// Faults of the program with this file name, from its exec on.
fn faults_of<'a>(out: &'a Tables, program: &str) -> Vec<&'a Fault> {
    let exec = out.execs.iter().find(|exec| exec.filename == program).expect("the program was executed");
    out.faults.iter().filter(|fault| fault.pid == exec.pid && fault.ts >= exec.ts).collect()
}

fn is_explained(raw: &RawCapture) -> bool {
    let of = "addresses, call stacks, mappings and private files of ";
    raw.facts.unavailable.iter().any(|gap| gap.what.starts_with(of) && gap.reason.contains("user 65534"))
}

#[test]
fn of_a_set_uid_program_a_users_recording_holds_counts_and_times_and_no_address() {
    if !root() {
        return;
    }
    let site = site();
    // Set-uid and set-gid of root.
    for mode in [0o4755, 0o2755] {
        let program = python(&site, mode);
        let command = [program.as_str(), "-S", "-c", SCRIPT, site.layout.to_str().unwrap()];
        for owner in [NOBODY, Owner::default()] {
            let raw = recorded(everything(owner), &command);
            let out = decode(&raw);
            let (faults, found) = (faults_of(&out, &program), found_in(&raw, &ranges(&site.layout)));
            println!("{mode:o} for {}: {} faults, {} words of the layout", owner.uid, faults.len(), found.len());
            assert!(faults.len() > 10 * 256 && faults.iter().all(|fault| fault.duration.is_some()), "{}", faults.len());
            if owner.is_root() {
                assert!(found.len() > 500 && !is_explained(&raw));
                continue;
            }
            assert!(found.is_empty(), "{} words of the layout, the first {:x}", found.len(), found[0]);
            assert!(faults.iter().all(|fault| (fault.address, fault.ip, fault.stack) == (0, 0, None)));
            assert!(is_explained(&raw), "{:?}", raw.facts.unavailable);
            let exit = out.exits.iter().find(|exit| exit.pid == faults[0].pid).unwrap();
            assert!(exit.min_flt + exit.maj_flt >= faults.len() as u64);
        }
    }
}

#[test]
fn a_users_own_program_is_recorded_whole_without_an_address_of_the_kernel() {
    if !root() {
        return;
    }
    let site = site();
    let layout = site.layout.to_str().unwrap();
    // As it is, and in a user namespace of its own, in which it has all capabilities and is not dumpable any more.
    let hide = format!("import ctypes; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n{SCRIPT}");
    let inside: Vec<&str> = ["/usr/bin/unshare", "-U", "-r", "/usr/bin/python3", "-S", "-c", &hide, layout].into();
    let plain: Vec<&str> = ["/usr/bin/python3", "-S", "-c", SCRIPT, layout].into();
    for command in [plain, inside] {
        let raw = recorded(everything(NOBODY), &command);
        let out = decode(&raw);
        let faults = faults_of(&out, "/usr/bin/python3");
        let with_address = faults.iter().filter(|fault| fault.address != 0).count();
        assert!(with_address > 10 * 256 && with_address == faults.len(), "{with_address} of {}", faults.len());
        assert!(faults.iter().filter(|fault| fault.stack.is_some()).count() > 10 * 256);
        assert!(faults.iter().all(|fault| fault.recording.is_some_and(|time| (1..1_000_000_000).contains(&time.0))));
        assert!(faults.iter().all(|fault| fault.kernel == (fault.ip == 0)), "the kernel's own are marked by a flag");
        assert!(out.memory_calls.len() >= 20 && out.mappings.len() > 10);
        let of_kernel: Vec<u64> = out
            .frames
            .iter()
            .filter(|frame| frame.kind == FrameKind::Kernel)
            .filter_map(|frame| frame.address)
            .collect();
        assert!(!of_kernel.is_empty(), "no sample was taken in the kernel");
        let found = found_in(&raw, &[kernel_text()]);
        assert!(found.is_empty(), "{} words of the kernel's, the first {:x}", found.len(), found[0]);
    }
    // Root's own: the search finds them.
    let raw = recorded(everything(Owner::default()), &["/usr/bin/python3", "-S", "-c", SCRIPT, layout]);
    assert!(!found_in(&raw, &[kernel_text()]).is_empty());
}

/// The kernel counts an exec before it changes the rights: what interrupts it between the two must not decide for the whole program.
#[test]
fn a_program_is_judged_by_the_rights_that_it_runs_with() {
    if !root() {
        return;
    }
    let loop_of = "i=0; while [ $i -lt 100 ]; do \"$@\"; i=$((i+1)); done";
    let command = [&["/bin/sh", "-c", loop_of, "sh"][..], &AS_NOBODY, &["/usr/bin/true"]].concat();
    // So many samples that dozens of these execs are interrupted there.
    let raw = recorded_of(Options { cpu_hertz: Some(20_000), ..everything(NOBODY) }, &command);
    let out = decode(&raw);
    let programs: Vec<_> = out.execs.iter().filter(|exec| exec.filename == "/usr/bin/true").collect();
    assert_eq!(programs.len(), 100);
    let hidden = |exec: &&&Exec| {
        let mut faults = out.faults.iter().filter(|fault| fault.pid == exec.pid && fault.ts >= exec.ts);
        faults.any(|fault| fault.address == 0)
    };
    let hidden = programs.iter().filter(hidden).count();
    assert_eq!(hidden, 0, "of {}", programs.len());
    // The shell's is root's, and so is setpriv.
    let gap = raw.facts.unavailable.iter().find(|gap| gap.what.contains("addresses")).expect("root's are withheld");
    assert!(gap.what.contains(" 101 programs "), "{gap:?}");
}

#[test]
fn what_a_program_hides_of_itself_while_it_runs_is_withheld_from_then_on() {
    if !root() {
        return;
    }
    let site = site();
    // PR_SET_DUMPABLE, as agents for keys do (prctl(2)).
    let script = format!(
        "import ctypes; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\nos = __import__('os')\nos.getrandom(1)\n{SCRIPT}"
    );
    // Its layout is root's to read now: it opened the file before.
    let script = script.replace("open('/proc/self/maps', 'rb').read()", "b''");
    let raw = recorded(everything(NOBODY), &["/usr/bin/python3", "-S", "-c", &script, site.layout.to_str().unwrap()]);
    let out = decode(&raw);
    let faults = faults_of(&out, "/usr/bin/python3");
    let shown = faults.iter().filter(|fault| fault.address != 0).count();
    assert!(shown > 100 && faults.len() - shown > 10 * 256, "{shown} of {}", faults.len());
    assert!(is_explained(&raw));
}

#[test]
fn names_in_directories_that_the_user_cannot_list_are_not_reported() {
    if !root() {
        return;
    }
    let site = site();
    let private = site.directory.path().join("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(private.join("name-of-a-secret"), "x").unwrap();
    let program = python(&site, 0o4755);
    let script = format!("print(open('{}/name-of-a-' + 'secret').read())", private.display());
    for owner in [NOBODY, Owner::default()] {
        let raw = recorded(everything(owner), &[&program, "-S", "-c", &script]);
        let needle = b"name-of-a-secret";
        let found = raw.bytes.windows(needle.len()).filter(|bytes| bytes == needle).count();
        assert_eq!(found > 0, owner.is_root(), "{found} times for user {}", owner.uid);
    }
}

#[test]
fn a_relative_path_of_a_set_uid_program_tells_no_more_of_its_directory_than_the_user_can_list() {
    if !root() {
        return;
    }
    let site = site();
    let private = site.directory.path().join("private");
    std::fs::create_dir_all(private.join("hidden-place")).unwrap();
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(private.join("hidden-place/name-of-a-secret"), "x").unwrap();
    let program = python(&site, 0o4755);
    // By the working directory, and by the descriptor of openat(2).
    let script = format!(
        "import os\nplace = '{}/hidden-' + 'place'\nname = 'name-of-a-' + 'secret'\nat = os.open(place, os.O_RDONLY)\n\
         os.close(os.open(name, os.O_RDONLY, dir_fd=at))\nos.chdir(place)\nprint(open(name).read())",
        private.display()
    );
    for owner in [NOBODY, Owner::default()] {
        let raw = recorded(everything(owner), &[&program, "-S", "-c", &script]);
        for needle in [&b"name-of-a-secret"[..], b"hidden-place"] {
            let found = raw.bytes.windows(needle.len()).filter(|bytes| *bytes == needle).count();
            assert_eq!(found > 0, owner.is_root(), "{found} times for user {}", owner.uid);
        }
        let opens = decode(&raw).opens;
        let secrets = opens.iter().filter(|open| open.path.ends_with("/private/hidden-place/name-of-a-secret")).count();
        assert_eq!(secrets, if owner.is_root() { 2 } else { 0 }, "{opens:#?}");
    }
}

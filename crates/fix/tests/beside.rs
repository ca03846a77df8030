//! `run_beside` in processes of its own: those of `slowpath-preload`, which does nothing else.

mod support;

use serde_json::Value;
use slowpath_fix::preload_plan::beside::{BesideError, run_beside};
use slowpath_fix::preload_plan::open::SkipReason;
use slowpath_fix::preload_plan::replay::{ReplayLimits, ReplayReport};
use slowpath_fix::preload_plan::{PreloadPlan, file};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{beside_one_that_never_answers, cold_file, directory, plan, planned, wait_for_resident};

/// Many times what anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The command goes on until it may end, or for longer than [`PATIENCE`] where nobody does.
const UNTIL_END: &str = "n=0; while [ ! -e \"$PLACE/end\" ] && [ $n -lt 7000 ]; do n=$((n + 1)); sleep 0.01; done";

fn command(plan: &Path, report: &Path, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowpath-preload"));
    command.arg("--report").arg(report).arg(plan).args(["--", "/bin/sh", "-c", script]).stdin(Stdio::null());
    command.env("PLACE", plan.parent().unwrap());
    for invoker in ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"] {
        command.env_remove(invoker);
    }
    command
}

/// A plan that takes a second to read and as long to replay, all of it valid: as many ranges as there may be.
fn write_long_plan(path: &Path, data: &Path) {
    cold_file(data, 1);
    write_plan(path, &plan(vec![planned(data)], &[(0, 0, 1)]));
    let short = fs::read_to_string(path).unwrap();
    let (head, range) = short.trim_end().rsplit_once('\n').unwrap();
    let head = head.replace("\"ranges\":1}", "\"ranges\":1000000}");
    fs::write(path, format!("{head}\n{}", format!("{range}\n").repeat(1_000_000))).unwrap();
}

/// A process that is looked at.
struct Seen(nix::unistd::Pid);

impl Seen {
    /// The prefetcher that is at this plan, in the middle of which it stands still from now on.
    fn prefetcher_at(plan: &Path) -> Self {
        let find = || {
            let found = fs::read_dir("/proc").unwrap().find_map(|entry| {
                let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let mut fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
                let holds =
                    fds.any(|fd| fd.is_ok_and(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == plan)));
                holds.then_some(Self(nix::unistd::Pid::from_raw(pid)))
            });
            // It watches the command in a thread of its own as soon as it is what it is to be. Its parent has none.
            found.filter(|found| found.status("Threads") == "2")
        };
        let begun = Instant::now();
        loop {
            if let Some(found) = find() {
                nix::sys::signal::kill(found.0, nix::sys::signal::Signal::SIGSTOP).unwrap();
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "no prefetcher is at the plan");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.0)).unwrap_or_default()
    }

    /// A field of proc_pid_status(5), its words with one space between.
    fn status(&self, name: &str) -> String {
        let status = self.read("status");
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn goes_on(&self) {
        nix::sys::signal::kill(self.0, nix::sys::signal::Signal::SIGCONT).unwrap();
    }

    fn is_gone(&self) -> bool {
        // Nobody but init waits for it, which may take its time.
        matches!(self.status("State").chars().next(), None | Some('Z'))
    }
}

/// Waits until it is so.
fn soon(is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn write_plan(path: &Path, plan: &PreloadPlan) {
    file::write(plan, fs::File::create(path).unwrap()).unwrap();
}

/// The script's own lines, which begin with `> `.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_once("> ").map(|(_, line)| line.to_owned())).collect()
}

fn wait_for_report(path: &Path) -> Option<ReplayReport> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Ok(report) = serde_json::from_slice(&fs::read(path).unwrap_or_default()) {
            return Some(report);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// The file has the keys of the published schema, and names it.
fn assert_is_published(report: &Path) {
    let said: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/preload-replay.json");
    let schema: Value = serde_json::from_slice(&fs::read(published).unwrap()).unwrap();
    assert_eq!(said["schema"], schema["properties"]["schema"]["const"], "{said}");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&said), keys(&schema["properties"]));
}

#[test]
fn the_command_keeps_the_pid_and_finds_no_child_no_descriptor_and_the_default_sigpipe() {
    let (_guard, directory) = directory();
    let [plan_path, report, data] = ["plan", "report", "data"].map(|name| directory.join(name));
    cold_file(&data, 64);
    write_plan(&plan_path, &plan(vec![planned(&data)], &[(0, 0, 64)]));
    let script = "echo \"> $$\"; echo \"> $(cat /proc/$$/task/*/children | wc -w)\"; \
                  for fd in /proc/$$/fd/*; do case $(readlink $fd) in *report*|*plan|*pidfd*) echo \"> leaked\";; esac; done; \
                  echo \"> $(grep SigIgn /proc/$$/status)\"; ";
    let script = format!("{script}{UNTIL_END}");
    let child = command(&plan_path, &report, &script).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let result = wait_for_report(&report).expect("the prefetcher reports while the command runs");
    assert_eq!((result.ranges, result.bytes.0), (1, 64 * 4096));
    assert_is_published(&report);
    assert!(wait_for_resident(&data, 64).iter().all(|page| *page));
    fs::write(directory.join("end"), "").unwrap();
    let lines = lines(&child.wait_with_output().unwrap());
    assert_eq!(lines[0], pid.to_string());
    // The substitution's own subshell is the only child.
    assert_eq!(lines[1], "1");
    let ignored = u64::from_str_radix(lines[2].rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(ignored & (1 << (libc::SIGPIPE - 1)), 0, "{}", lines[2]);
}

#[test]
fn the_prefetcher_holds_no_pipe_of_the_command_open_and_ends_with_it() {
    let (_guard, directory) = directory();
    let [plan_path, report, data] = ["plan", "report", "data"].map(|name| directory.join(name));
    write_long_plan(&plan_path, &data);
    let mut child = command(&plan_path, &report, UNTIL_END).stdout(Stdio::piped()).spawn().unwrap();
    let prefetcher = Seen::prefetcher_at(&plan_path);
    assert_ne!(prefetcher.status("PPid"), child.id().to_string(), "the prefetcher is a child of the command");
    let output = fs::read_link(format!("/proc/{}/fd/1", prefetcher.0));
    assert!(output.as_ref().is_ok_and(|target| target == Path::new("/dev/null")), "{output:?}");
    fs::write(directory.join("end"), "").unwrap();
    child.wait().unwrap();
    prefetcher.goes_on();
    assert!(soon(|| prefetcher.is_gone()), "the prefetcher outlives the command");
    assert_eq!(fs::read_to_string(&report).unwrap(), "", "it was done before: the test shows nothing");
}

/// A directory that every user can enter, and 65534 can write.
fn place_of_nobody() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(place.path(), Some(65534), Some(65534)).unwrap();
    let path = place.path().canonicalize().unwrap();
    (place, path)
}

#[test]
fn a_prefetcher_that_root_starts_is_who_called_sudo_or_root_without_capabilities() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root has something to give up");
        return;
    }
    for (variable, uid) in [(Some("SUDO_UID"), 65534), (Some("PKEXEC_UID"), 65534), (None, 0)] {
        let (_guard, place) = place_of_nobody();
        let [plan_path, report, data] = ["plan", "report", "data"].map(|name| place.join(name));
        write_long_plan(&plan_path, &data);
        let mut command = command(&plan_path, &report, UNTIL_END);
        let mut child = command.envs(variable.map(|name| (name, "65534"))).spawn().unwrap();
        let prefetcher = Seen::prefetcher_at(&plan_path);
        let of = |names: &[&str]| names.iter().map(|name| prefetcher.status(name)).collect::<Vec<_>>();
        assert_eq!(of(&["Uid", "NoNewPrivs", "Seccomp"]), [format!("{uid} {uid} {uid} {uid}"), "1".into(), "2".into()]);
        let none = "0000000000000000";
        assert_eq!(of(&["CapEff", "CapPrm", "CapInh", "CapAmb"]), [none; 4], "{variable:?}");
        assert_eq!(fs::metadata(&report).unwrap().uid(), uid, "whose the report is");
        assert!(soon(|| fs::read_to_string(format!("/proc/{}/comm", child.id())).is_ok_and(|name| name == "sh\n")));
        let commands = Seen(nix::unistd::Pid::from_raw(child.id().cast_signed()));
        let own = Seen(nix::unistd::Pid::this());
        let names = ["Uid", "CapEff", "NoNewPrivs", "Seccomp"];
        assert_eq!(names.map(|name| commands.status(name)), names.map(|name| own.status(name)), "the command's");
        prefetcher.goes_on();
        // What confines it leaves it what it needs.
        let done = wait_for_report(&report).expect("the prefetcher reports while the command runs");
        assert_eq!((done.ranges > 0, done.skipped.keys().next()), (true, Some(&SkipReason::OverByteCap)));
        fs::write(place.join("end"), "").unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn what_the_invoker_may_not_read_roots_prefetcher_does_not_read_and_the_command_runs() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can call as somebody else");
        return;
    }
    let (_guard, place) = place_of_nobody();
    let [plan_path, report, secret] = ["plan", "report", "secret"].map(|name| place.join(name));
    cold_file(&secret, 4);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    write_plan(&plan_path, &plan(vec![planned(&secret)], &[(0, 0, 4)]));
    let through_sudo = |uid: &str| {
        let _ = fs::remove_file(place.join("end"));
        let mut command = command(&plan_path, &report, &format!("{UNTIL_END}; echo '> ran'"));
        command.env("SUDO_UID", uid).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended = |child: std::process::Child| {
        fs::write(place.join("end"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(lines(&output), ["ran"], "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let child = through_sudo("65534");
    let done = wait_for_report(&report).expect("the prefetcher reports while the command runs");
    assert_eq!(done.skipped.keys().collect::<Vec<_>>(), [&SkipReason::Unreadable]);
    assert_eq!(ended(child), "");
    fs::set_permissions(&plan_path, fs::Permissions::from_mode(0o600)).unwrap();
    let said = ended(through_sudo("65534"));
    assert!(said.contains("plan cannot be opened: Permission denied") && said.lines().count() == 1, "{said}");
    let said = ended(through_sudo("4294967295"));
    assert!(said.contains("is not used: SUDO_UID is `4294967295`, which names no user\n"), "{said}");
}

/// What the prefetcher says of a plan, while the command runs.
fn said_of(plan: &str) -> String {
    said_of_what(|path| fs::write(path, plan).unwrap())
}

/// The same of what `make` puts at the plan's path.
fn said_of_what(make: impl FnOnce(&Path)) -> String {
    let (_guard, directory) = directory();
    let [plan_path, report] = ["plan", "report"].map(|name| directory.join(name));
    make(&plan_path);
    let errors = directory.join("errors");
    // The line comes while the command runs: who prints it ends with that.
    let child = command(&plan_path, &report, &format!("{UNTIL_END}; echo '> ran'"))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let errors = || fs::read_to_string(&errors).unwrap();
    soon(|| errors().contains('\n'));
    fs::write(directory.join("end"), "").unwrap();
    assert_eq!(lines(&child.wait_with_output().unwrap()), ["ran"]);
    errors()
}

#[test]
fn a_plan_that_cannot_be_parsed_costs_one_line_and_not_the_launch() {
    let errors = said_of("no plan\n");
    assert!(errors.contains("slowpath: the preload plan is not used: this is not a preload plan"), "{errors}");
}

#[test]
fn a_plan_that_is_no_regular_file_costs_one_line_and_the_command_does_not_wait_for_it() {
    let pipe = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for said in [said_of_what(pipe), said_of_what(|path| fs::create_dir(path).unwrap())] {
        assert!(said.starts_with("slowpath: the preload plan is not used: ") && said.lines().count() == 1, "{said}");
        assert!(said.ends_with("plan cannot be opened: is not a regular file\n"), "{said}");
    }
}

#[test]
fn a_plan_whose_file_system_never_answers_costs_one_line_and_seconds() {
    let (_guard, directory) = directory();
    let (hangs, at) = (directory.join("hangs"), directory.clone());
    let output = beside_one_that_never_answers(&hangs, move || {
        let script = "echo '> ran'; echo \"> $(cat /proc/$$/task/*/children | wc -w)\"";
        let output = command(&at.join("hangs/plan"), &at.join("report"), script).output().unwrap();
        (lines(&output), String::from_utf8(output.stderr).unwrap())
    });
    let Some((lines, said)) = output else { return };
    // The substitution's own subshell is the only child.
    assert_eq!(lines, ["ran", "1"]);
    assert!(said.ends_with("hangs/plan cannot be opened: opening it took too long\n"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn no_terminal_obeys_a_plan_that_cannot_be_parsed() {
    let mut plan = Vec::new();
    file::write(&PreloadPlan::default(), &mut plan).unwrap();
    let errors = said_of(&String::from_utf8(plan).unwrap().replace("\"first_use\"", "\"\\u001b[2J\""));
    assert!(errors.contains("is not used: ") && errors.contains("\\u{1b}[2J"), "{errors:?}");
    assert!(!errors.contains('\u{1b}') && errors.lines().count() == 1, "{errors:?}");
}

#[test]
fn a_missing_plan_and_a_missing_command_are_errors() {
    let limits = ReplayLimits::default();
    let Err(error) = run_beside(Path::new("/does/not/exist"), &limits, None, &["true".into()]);
    assert!(matches!(error, BesideError::Open { .. }), "{error}");
    let Err(error) = run_beside(Path::new("/does/not/exist"), &limits, None, &[]);
    assert!(matches!(error, BesideError::NoCommand));
    let Err(error) = run_beside(Path::new("/dev/null"), &limits, Some(Path::new("/none/report")), &["true".into()]);
    assert!(matches!(&error, BesideError::Open { path, .. } if path == Path::new("/none/report")), "{error}");
}

#[test]
fn a_caller_that_ignores_the_ends_of_children_hears_of_a_missing_plan_and_its_command_ignores_them_too() {
    let (_guard, directory) = directory();
    let [plan_path, missing] = ["plan", "missing"].map(|name| directory.join(name));
    write_plan(&plan_path, &PreloadPlan::default());
    let run = |plan: &Path| {
        let mut command = Command::new("env");
        command.args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_slowpath-preload")]).arg(plan);
        let output = command.args(["--", "grep", "SigIgn", "/proc/self/status"]).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&missing), (false, String::new()));
    let (ran, said) = run(&plan_path);
    // SIGCHLD is 17.
    let ignored = said.split_whitespace().last().and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap();
    assert!(ran && ignored & 1 << 16 != 0, "{said}");
}

#[test]
fn the_commands_exit_code_is_the_programs_and_what_cannot_be_run_has_one_of_its_own() {
    let (_guard, directory) = directory();
    let [plan_path, report] = ["plan", "report"].map(|name| directory.join(name));
    write_plan(&plan_path, &PreloadPlan::default());
    assert_eq!(command(&plan_path, &report, "exit 7").status().unwrap().code(), Some(7));
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_slowpath-preload")).args(words).output().unwrap();
        let [out, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (output.status.code(), out, errors)
    };
    let (code, out, errors) = run(&[plan_path.to_str().unwrap(), "--", "/no/such\u{1b}[2J"]);
    assert_eq!((code, out.as_str()), (Some(4), ""));
    assert!(errors.starts_with("slowpath-preload: /no/such\\u{1b}[2J could not be executed: "), "{errors}");
    let (code, _, errors) = run(&["plan"]);
    assert!(code == Some(2) && errors.contains("Usage: slowpath-preload"), "{errors}");
    let (code, out, errors) = run(&["--help"]);
    assert!(code == Some(0) && out.contains("Usage: slowpath-preload") && errors.is_empty(), "{out}{errors}");
}

//! Launches that fail, each with an error of its own.

use std::os::unix::fs::PermissionsExt;

use slowpath_launch::{BoxError, EndPolicy, ExecError, Exit, Hooks, ReadyWhen, SetupStage, StopReason};

use super::*;

#[test]
fn a_command_that_is_nowhere_is_not_found() {
    for name in ["/no/such/program", "no-such-program-here"] {
        let error = launch(&spec(&[name]).0).unwrap_err();
        assert!(matches!(&error, LaunchError::Exec(ExecError::NotFound { program }) if program == name), "{error:?}");
    }
}

#[test]
fn a_file_that_cannot_be_executed_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str, mode: u32| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fails = |program: &str| match launch(&spec(&[program]).0).unwrap_err() {
        LaunchError::Exec(error) => error,
        other => panic!("{program}: {other:?}"),
    };
    let plain = file("plain", "text", 0o644);
    assert!(matches!(fails(&plain), ExecError::NotExecutable { .. }));
    assert!(matches!(fails(dir.path().to_str().unwrap()), ExecError::NotExecutable { .. }));
    assert!(matches!(fails(&file("format", "no program\n", 0o755)), ExecError::NotExecutable { .. }));
    let script = file("script", "#!/no/such/interpreter\n", 0o755);
    assert!(matches!(fails(&script), ExecError::MissingInterpreter { .. }));
    // Anywhere in PATH an executable file wins over one that cannot be executed.
    let (mut spec, _) = spec(&["true"]);
    file("true", "text", 0o644);
    spec.env[0].1 = format!("{}:/usr/bin:/bin", dir.path().display()).into();
    assert_eq!(launch(&spec).unwrap().stop, StopReason::Ready);
}

#[test]
fn a_command_that_only_another_user_may_execute_is_a_permission_error() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    fs::copy("/bin/true", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for mode in [0o755, 0o700] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let (mut spec, _) = spec(&[path.to_str().unwrap()]);
        spec.cwd = "/".into();
        spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
        let error = launch(&spec).unwrap_err();
        assert!(matches!(error, LaunchError::Exec(ExecError::PermissionDenied { .. })), "{error:?}");
    }
}

#[test]
fn an_exit_before_readiness_gives_its_status_and_a_signal_its_number() {
    for ready in ["line:never", "file:/no/such/file", "tcp:1", "notify", "exit"] {
        let (mut spec, _) = shell("echo problem >&2; exit 3");
        spec.ready = ready.parse().unwrap();
        let outcome = launch(&spec).unwrap();
        assert_eq!((outcome.stop, outcome.ready_at), (StopReason::Exited { code: 3 }, None), "{ready}");
        assert_eq!(outcome.exit, Some(Exit::Code(3)));
        let error = outcome.require_ready().unwrap_err().to_string();
        assert_eq!(error, "the command exited with status 3 before it was ready; its last line: problem");
        let (mut spec, _) = shell("kill -SEGV $$");
        spec.ready = ready.parse().unwrap();
        assert_eq!(launch(&spec).unwrap().stop, StopReason::Killed { signal: libc::SIGSEGV }, "{ready}");
    }
}

#[test]
fn a_target_that_exits_with_0_is_over_only_when_its_tree_is() {
    let (mut ends, _) = spec(&["/bin/true"]);
    ends.ready = "file:/no/such/file".parse().unwrap();
    assert_eq!(launch(&ends).unwrap().stop, StopReason::Exited { code: 0 });
    let dir = tempfile::tempdir().unwrap();
    let (mut daemon, mark) = shell("(setsid sh -c 'sleep 0.2; : > ready; sleep 100' &) ; exit 0");
    daemon.cwd = dir.path().to_owned();
    daemon.ready = "file:ready".parse().unwrap();
    assert_eq!(launch(&daemon).unwrap().stop, StopReason::Ready);
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn a_target_that_is_never_ready_ends_at_the_time_out_not_before() {
    for ready in ["exit", "line:never", "tcp:1", "notify", "browser"] {
        let (mut spec, mark) = shell("echo waiting; sleep 100");
        spec.ready = ready.parse().unwrap();
        spec.timeout = Some(Duration::from_millis(200));
        let start = Instant::now();
        let outcome = launch(&spec).unwrap();
        assert!(outcome.timed_out() && outcome.ready_at.is_none(), "{ready}: {outcome:?}");
        assert!(start.elapsed() >= Duration::from_millis(200));
        assert_eq!(outcome.exit, Some(Exit::Signal(libc::SIGKILL)));
        assert_eq!(marked(&mark), [] as [i32; 0]);
    }
}

#[test]
fn a_failing_step_names_itself() {
    let stage = |change: fn(&mut LaunchSpec)| {
        let (mut spec, mark) = spec(&["/bin/true"]);
        change(&mut spec);
        let LaunchError::Setup { stage, .. } = launch(&spec).unwrap_err() else { panic!("no setup error") };
        assert_eq!(marked(&mark), [] as [i32; 0]);
        stage
    };
    let path = "/no/such/cgroup.procs";
    assert_eq!(stage(|s| s.cgroups = vec!["/no/such/cgroup.procs".into()]), SetupStage::Cgroup { path: path.into() });
    assert_eq!(stage(|s| s.cwd = "/no/such".into()), SetupStage::WorkingDirectory { path: "/no/such".into() });
    if is_root() {
        let step = slowpath_launch::MountStep::Tmpfs { at: "/no/such".into() };
        let expected = SetupStage::Mount { index: 0, step: step.clone() };
        assert_eq!(stage(|s| s.mounts = vec![slowpath_launch::MountStep::Tmpfs { at: "/no/such".into() }]), expected);
    }
}

struct Refusing;
impl Hooks for Refusing {
    fn before_release(&mut self, _: i32) -> Result<(), BoxError> {
        Err("not cold".into())
    }
}

#[test]
fn a_hook_that_refuses_keeps_the_command_from_running_under_every_policy() {
    for end in [EndPolicy::KillTree, EndPolicy::LeaveRunning, EndPolicy::WaitExit] {
        let dir = tempfile::tempdir().unwrap();
        let (mut spec, mark) = shell(": > ran");
        spec.cwd = dir.path().to_owned();
        spec.end = end;
        let LaunchError::Hook(why) = launcher().launch(&spec, &mut Refusing).unwrap_err() else { panic!("{end:?}") };
        assert_eq!(why.to_string(), "not cold");
        assert_eq!(left_after(&mark, Duration::from_secs(1)), [] as [i32; 0]);
        assert!(!dir.path().join("ran").exists());
    }
}

struct Panicking;
impl Hooks for Panicking {
    fn on_released(&mut self, _: u64) {
        panic!("a hook that panics");
    }
}

#[test]
fn a_hook_that_panics_leaves_nothing() {
    let (spec, mark) = shell("(setsid sleep 1000 &) ; sleep 1000");
    let launched = std::panic::catch_unwind(|| launcher().launch(&spec, &mut Panicking).map(drop));
    assert!(launched.is_err());
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

struct Stopping {
    ticks: u32,
    ready: bool,
}
impl Hooks for Stopping {
    fn on_tick(&mut self) {
        self.ticks += 1;
    }
    fn on_ready(&mut self, _: u64) {
        self.ready = true;
    }
    fn stop_requested(&self) -> bool {
        self.ticks >= 5
    }
}

#[test]
fn a_stop_request_ends_the_launch_and_hooks_are_called_every_20_ms() {
    let (spec, mark) = shell("sleep 100");
    let mut hooks = Stopping { ticks: 0, ready: false };
    let start = Instant::now();
    let outcome = launcher().launch(&spec, &mut hooks).unwrap();
    assert_eq!((outcome.stop, hooks.ready), (StopReason::Requested, false));
    assert!(start.elapsed() >= Duration::from_millis(80) && start.elapsed() < Duration::from_secs(5));
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn a_launcher_that_is_another_program_is_an_error_and_not_a_hang() {
    let program = LauncherProgram { path: "/no/such/launcher".into(), args: vec![] };
    let error = ProcessLauncher::new(program).launch(&spec(&["/bin/true"]).0, &mut NoHooks).unwrap_err();
    assert!(matches!(error, LaunchError::Spawn { .. }), "{error:?}");
    let program = LauncherProgram { path: "/bin/true".into(), args: vec![] };
    let error = ProcessLauncher::new(program).launch(&spec(&["/bin/true"]).0, &mut NoHooks).unwrap_err();
    assert!(matches!(error, LaunchError::LauncherDied { .. }), "{error:?}");
}

/// Its page of a FUSE file does not come, so whoever reads its memory waits; the observer, as init of its namespace too.
#[test]
fn a_command_that_does_not_show_its_memory_ends_the_launch_and_leaves_nothing() {
    if !is_root() || fs::File::open("/dev/fuse").is_err() {
        println!("skipped: FUSE needs root and /dev/fuse");
        return;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../process/tests/hanging/held_memory.py");
    for pid_namespace in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let (mut spec, mark) = spec(&["/usr/bin/unshare", "-m", "/usr/bin/python3", "-S", program]);
        spec.argv.push(place.path().into());
        (spec.ready, spec.memory, spec.pid_namespace) = (ReadyWhen::Line("^[0-9]+$".into()), true, pid_namespace);
        let error = launch(&spec).unwrap_err();
        let LaunchError::LauncherDied { detail } = &error else { panic!("{error:?}") };
        assert!(detail.contains("does not show its memory"), "{detail}");
        assert_eq!(marked(&mark), [] as [i32; 0]);
    }
}

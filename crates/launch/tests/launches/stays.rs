//! One launcher for many launches: what stays the same, what must not be carried over, and what replaces it.

use slowpath_launch::{Exit, Hooks, StopReason};

use super::*;

/// Notified of every step, so that the target is a fork that waits for its release.
struct Following;

impl Hooks for Following {}

fn observer_of(outcome: &LaunchOutcome) -> i32 {
    outcome.stdout_tail.as_deref().unwrap_or_default().trim().parse().unwrap()
}

fn both(launcher: &mut ProcessLauncher, spec: &LaunchSpec) -> [LaunchOutcome; 2] {
    [launcher.launch(spec, &mut NoHooks).unwrap(), launcher.launch(spec, &mut Following).unwrap()]
}

#[test]
fn launches_of_one_launcher_have_one_observer_and_each_its_own_conditions() {
    let mut launcher = launcher();
    let (mut spec, mark) = shell("echo $PPID; pwd >&2; echo $EXTRA >&2; sleep 1000 & exit 0");
    let [first, second] = both(&mut launcher, &spec);
    assert_eq!(observer_of(&first), observer_of(&second));
    let dir = tempfile::tempdir().unwrap();
    spec.cwd = dir.path().canonicalize().unwrap();
    // Longer, then shorter than what stood in the order before.
    for extra in ["x".repeat(100_000), "y".to_owned()] {
        spec.env.retain(|(name, _)| name != "EXTRA");
        spec.env.push(("EXTRA".into(), extra.clone().into()));
        for outcome in both(&mut launcher, &spec) {
            assert_eq!(observer_of(&outcome), observer_of(&first));
            assert_eq!((outcome.stop, outcome.exit), (StopReason::Ready, Some(Exit::Code(0))));
            let printed = outcome.stderr_tail.unwrap();
            let end = &extra[extra.len().saturating_sub(100)..];
            assert!(
                printed.trim_end().ends_with(end)
                    && (extra.len() > 4096 || printed.starts_with(dir.path().to_str().unwrap()))
            );
            assert!(outcome.ready_at.unwrap() > outcome.released_at && outcome.pid != observer_of(&first));
        }
    }
    assert_eq!(marked(&mark), [] as [i32; 0]);
    let observer = observer_of(&first);
    drop(launcher);
    assert!(!Path::new(&format!("/proc/{observer}")).exists());
}

#[test]
fn what_a_target_did_to_its_output_is_not_there_for_the_next() {
    let mut launcher = launcher();
    let of = |launcher: &mut ProcessLauncher, code: &str| {
        let program = format!(
            "import fcntl, os, sys\n{code}\nprint(fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(1, 1032))"
        );
        let printed = launcher.launch(&spec(&["/usr/bin/python3", "-c", &program]).0, &mut NoHooks).unwrap();
        printed.stdout_tail.unwrap()
    };
    let new = of(&mut launcher, "");
    assert!(new.starts_with("0 "), "{new}");
    // Full to the brim, non-blocking; then larger than a pipe is.
    of(
        &mut launcher,
        "os.set_blocking(1, False)\nwhile True:\n  try: os.write(1, b'x' * 4096)\n  except BlockingIOError: break",
    );
    assert_eq!(of(&mut launcher, ""), new);
    of(&mut launcher, "fcntl.fcntl(1, 1031, 1 << 20)");
    assert_eq!(of(&mut launcher, ""), new);
    assert_eq!(of(&mut launcher, ""), new);
}

#[test]
fn a_launch_that_fails_or_is_stopped_does_not_spoil_the_next() {
    let mut launcher = launcher();
    let (good, _) = shell("echo $PPID");
    let before = observer_of(&launcher.launch(&good, &mut NoHooks).unwrap());
    let missing = spec(&["/nonexistent/program"]).0;
    assert!(matches!(launcher.launch(&missing, &mut NoHooks), Err(LaunchError::Exec(_))));
    assert!(matches!(launcher.launch(&missing, &mut Following), Err(LaunchError::Exec(_))));
    let (mut slow, mark) = shell("sleep 1000 & sleep 1000");
    slow.timeout = Some(Duration::from_millis(50));
    assert_eq!(launcher.launch(&slow, &mut NoHooks).unwrap().stop, StopReason::TimedOut);
    assert_eq!(marked(&mark), [] as [i32; 0]);
    let failing = shell("exit 3").0;
    assert_eq!(launcher.launch(&failing, &mut NoHooks).unwrap().stop, StopReason::Exited { code: 3 });
    let mut elsewhere = good.clone();
    elsewhere.cwd = "/nonexistent".into();
    assert!(matches!(launcher.launch(&elsewhere, &mut NoHooks), Err(LaunchError::Setup { .. })));
    assert_eq!(observer_of(&launcher.launch(&good, &mut NoHooks).unwrap()), before);
}

#[test]
fn a_launcher_that_was_killed_between_two_launches_is_replaced() {
    let mut launcher = launcher();
    let (spec, _) = shell("echo $PPID");
    let first = observer_of(&launcher.launch(&spec, &mut NoHooks).unwrap());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::Signal::SIGKILL).unwrap();
    let start = Instant::now();
    while Path::new(&format!("/proc/{first}")).exists() && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = (0..2).find_map(|_| launcher.launch(&spec, &mut NoHooks).ok()).unwrap();
    assert_ne!(observer_of(&second), first);
}

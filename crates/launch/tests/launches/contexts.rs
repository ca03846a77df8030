//! Steps of the execution context, read by the target itself: with a caller that follows the launch and with one that does not.

use slowpath_launch::{ContextStep, Exit, Hooks, StopReason};

use super::*;

struct Following;

impl Hooks for Following {}

/// What the script prints with these steps, both ways of making a target; they must not differ.
fn printed(script: &str, steps: &[ContextStep], change: impl Fn(&mut LaunchSpec)) -> String {
    let mut launcher = launcher();
    let (mut spec, mark) = shell(script);
    spec.context = steps.to_vec();
    change(&mut spec);
    let [first, second] = [
        launcher.launch(&spec, &mut NoHooks).unwrap().stdout_tail.unwrap(),
        launcher.launch(&spec, &mut Following).unwrap().stdout_tail.unwrap(),
    ];
    assert_eq!(first, second, "{steps:?}");
    // Nothing of it stays for the next launch of the same launcher.
    let without = launcher.launch(&shell(script).0, &mut NoHooks).unwrap().stdout_tail.unwrap();
    assert_ne!(without, first, "{steps:?}");
    assert_eq!(marked(&mark), [] as [i32; 0]);
    first
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn policy_nice_and_slack_are_the_targets_own() {
    let idle = ContextStep::Scheduling { policy: 5, priority: 0, nice: 3 };
    // Its nice value, real-time priority and policy; the rest of its stat moves from launch to launch.
    let script = "awk '{print $19, $40, $41}' /proc/self/stat";
    assert_eq!(printed(script, &[idle], |_| {}).trim(), "3 0 5");
    let slack = ContextStep::TimerSlack { ns: 777_000 };
    assert_eq!(printed("read slack < /proc/self/timerslack_ns; echo $slack", &[slack], |_| {}).trim(), "777000");
}

#[test]
fn addresses_processors_and_huge_pages_are_set_for_one_launch() {
    let fixed = ContextStep::Personality { flags: 0x0004_0000 };
    assert_eq!(printed("cat /proc/self/personality", &[fixed], |_| {}).trim(), "00040000");
    let one = ContextStep::Affinity { processors: vec![0] };
    let script = "grep Cpus_allowed_list /proc/self/status";
    if nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .is_ok_and(|own| (1..64).any(|other| own.is_set(other).unwrap_or(false)))
    {
        assert!(printed(script, &[one], |_| {}).ends_with("\t0\n"));
    } else {
        println!("skipped: one CPU");
    }
    let small = ContextStep::HugePages { disabled: true };
    assert_eq!(printed("grep THP_enabled /proc/self/status", &[small], |_| {}).trim(), "THP_enabled:\t0");
}

#[test]
fn privileges_are_given_up_for_one_launch() {
    let script = "grep NoNewPrivs /proc/self/status";
    assert_eq!(printed(script, &[ContextStep::NoNewPrivileges], |_| {}).trim(), "NoNewPrivs:\t1");
    if !is_root() {
        return;
    }
    // CAP_CHOWN and CAP_KILL are all that is left, and the first one a user gets too.
    let step = ContextStep::Capabilities { bounding: 0x21, inheritable: 0x1, ambient: 0x1 };
    let root = printed("grep Cap /proc/self/status", std::slice::from_ref(&step), |_| {});
    assert_eq!(field(&root, "CapBnd"), "0000000000000021");
    assert_eq!(field(&root, "CapEff"), "0000000000000021");
    let user = printed(STATUS_OF_CAPABILITIES, &[step], |spec| (spec.identity.uid, spec.identity.gid) = (65534, 65534));
    assert_eq!(field(&user, "CapEff"), "0000000000000001");
    assert_eq!(field(&user, "CapAmb"), "0000000000000001");
}

const STATUS_OF_CAPABILITIES: &str = "cd /; grep Cap /proc/self/status";

/// A filter that allows everything.
fn allow() -> ContextStep {
    let mut program = vec![0x06, 0, 0, 0];
    program.extend(0x7fff_0000u32.to_ne_bytes());
    ContextStep::SystemCallFilter { program, may_speculate: false }
}

#[test]
fn filters_are_put_on_last_also_by_one_who_is_root_no_more() {
    let script = "grep Seccomp: /proc/self/status; grep Seccomp_filters /proc/self/status; cd /; id -u";
    let with_privileges_given_up = [ContextStep::NoNewPrivileges, allow(), allow()];
    let text = printed(script, &with_privileges_given_up, |_| {});
    assert_eq!((field(&text, "Seccomp"), field(&text, "Seccomp_filters")), ("2".to_owned(), "2".to_owned()));
    if !is_root() {
        return;
    }
    let text = printed(script, &[allow()], |spec| {
        (spec.identity.uid, spec.identity.gid) = (65534, 65534);
        spec.identity.groups.clear();
    });
    assert_eq!(field(&text, "Seccomp_filters"), "1");
    assert!(text.ends_with("65534\n"), "{text}");
}

#[test]
fn a_filter_that_allows_nothing_ends_the_launch_and_not_the_launcher() {
    let mut launcher = launcher();
    let (mut spec, _) = shell("true");
    // Kills the process at any call.
    let mut program = vec![0x06, 0, 0, 0];
    program.extend(0x8000_0000u32.to_ne_bytes());
    spec.context = vec![ContextStep::NoNewPrivileges, ContextStep::SystemCallFilter { program, may_speculate: false }];
    let outcome = launcher.launch(&spec, &mut NoHooks);
    assert!(
        !matches!(&outcome, Ok(outcome) if outcome.stop == StopReason::Ready),
        "a command cannot be executed without a system call: {outcome:?}"
    );
    spec.context.clear();
    assert_eq!(launcher.launch(&spec, &mut NoHooks).unwrap().stop, StopReason::Ready);
}

#[test]
fn a_session_of_its_own_has_a_nice_value_of_its_own() {
    if !Path::new("/proc/self/autogroup").exists() {
        println!("skipped: this kernel has no autogroups");
        return;
    }
    let callers = fs::read_to_string("/proc/self/autogroup").unwrap();
    let script = "cut -d' ' -f2,3 /proc/self/autogroup";
    let printed = printed(script, &[ContextStep::AutogroupNice { nice: 7 }], |spec| spec.session = true);
    assert_eq!(printed.trim(), "nice 7");
    assert_eq!(fs::read_to_string("/proc/self/autogroup").unwrap(), callers);
    let mut without = shell("true").0;
    without.context = vec![ContextStep::AutogroupNice { nice: 7 }];
    assert!(matches!(launch(&without), Err(LaunchError::InvalidSpec(_))));
}

#[test]
fn a_step_that_the_kernel_refuses_is_named() {
    let mut spec = shell("true").0;
    spec.context = vec![ContextStep::Scheduling { policy: 99, priority: 0, nice: 0 }];
    let error = launch(&spec).unwrap_err();
    assert!(error.to_string().contains("cannot set scheduling policy 99"), "{error}");
}

#[test]
fn a_traced_command_is_stopped_at_each_call_with_its_children_and_nothing_stays() {
    let mut launcher = launcher();
    let script = "grep TracerPid /proc/self/status; for i in 1 2 3; do /bin/true; done; (sleep 1000 &) ; exit 0";
    let (mut spec, mark) = shell(script);
    let untraced = launcher.launch(&spec, &mut NoHooks).unwrap();
    assert_eq!(field(&untraced.stdout_tail.clone().unwrap(), "TracerPid"), "0");
    spec.context = vec![ContextStep::Traced];
    for hooks in [&mut NoHooks as &mut dyn Hooks, &mut Following] {
        let traced = launcher.launch(&spec, hooks).unwrap();
        assert_eq!((traced.stop, traced.exit), (StopReason::Ready, Some(Exit::Code(0))));
        let tracer: i32 = field(&traced.stdout_tail.unwrap(), "TracerPid").parse().unwrap();
        assert!(tracer > 0);
        assert!(!Path::new(&format!("/proc/{tracer}")).exists(), "the tracer ends with the launch");
        assert_eq!(marked(&mark), [] as [i32; 0]);
        let (with, without) = (traced.usage.unwrap(), untraced.usage.unwrap());
        assert!(with.voluntary_switches > without.voluntary_switches + 100, "{with:?} against {without:?}");
        // The orphan too, and the tracer not.
        assert_eq!(with.reaped, without.reaped);
    }
}

#[test]
fn a_traced_command_keeps_its_signals_and_its_way_to_end() {
    let mut launcher = launcher();
    let (mut spec, mark) = shell(
        "trap 'echo caught' TERM; kill -TERM $$; (while sleep 0.1 && kill -CONT $$; do :; done) & kill -STOP $$; kill -KILL $$",
    );
    spec.context = vec![ContextStep::Traced];
    let outcome = launcher.launch(&spec, &mut NoHooks).unwrap();
    assert_eq!(outcome.stop, StopReason::Killed { signal: 9 });
    assert!(outcome.stdout_tail.unwrap().starts_with("caught"));
    let (mut spec, _) = shell("sleep 1000");
    spec.context = vec![ContextStep::Traced];
    spec.timeout = Some(Duration::from_millis(100));
    assert_eq!(launcher.launch(&spec, &mut NoHooks).unwrap().stop, StopReason::TimedOut);
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[test]
fn a_launch_tells_how_long_its_first_thread_ran_and_waited() {
    let outcome = launch(&shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05").0).unwrap();
    let (times, wall) = (outcome.first_thread.unwrap(), outcome.time_to_ready().unwrap());
    assert!(times.on_cpu > 1_000_000 && times.on_cpu + times.run_delay < wall, "{times:?} of {wall}");
    assert!(wall - times.on_cpu - times.run_delay > 40_000_000, "the sleep is neither: {times:?} of {wall}");
    assert_eq!(outcome.groups, None);
}

#[test]
fn another_users_launch_can_begin_where_that_user_may_not_go() {
    if !is_root() {
        return;
    }
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (mut spec, _) = shell("id -u; ls . 2>&1");
    (spec.identity.uid, spec.identity.gid) = (65534, 65534);
    spec.identity.groups.clear();
    spec.cwd = closed.path().to_owned();
    let refused = launch(&spec);
    assert!(matches!(refused, Err(LaunchError::Setup { .. })), "{refused:?}");
    spec.context = vec![ContextStep::EnterDirectory { path: closed.path().to_owned() }];
    let printed = launcher().launch(&spec, &mut NoHooks);
    let printed = match printed {
        Ok(outcome) => outcome.stdout_tail.unwrap(),
        Err(error) => panic!("{error}"),
    };
    assert!(printed.starts_with("65534\n"), "{printed}");
}

//! Who and how the target is when it starts.

use std::os::unix::fs::PermissionsExt;

use slowpath_launch::{BoxError, Hooks, Limit, LimitKind};

use super::*;

fn output_of(spec: &LaunchSpec) -> String {
    let outcome = launch(spec).unwrap();
    outcome.require_ready().unwrap();
    outcome.stdout_tail.unwrap()
}

#[test]
fn another_user_is_taken_on_completely() {
    if !is_root() {
        return;
    }
    let (mut spec, _) = shell(
        "id -u; id -ru; id -g; id -G; umask; ulimit -Sn; ulimit -Hn; pwd; echo $HOME $USER; cat /proc/self/status",
    );
    let caller =
        vec![("PATH".into(), "/usr/bin:/bin".into()), ("SUDO_UID".into(), "1".into()), ("HOME".into(), "/root".into())];
    let mut identity = Identity::for_invocation(Some("daemon"), []).unwrap().0;
    identity.groups = vec![1, 20, 4242];
    spec.env = identity.environment(caller);
    spec.identity = identity;
    spec.umask = Some(0o027);
    spec.limits = vec![Limit { kind: LimitKind::Nofile, soft: 123, hard: 456 }];
    spec.cwd = "/usr".into();
    let text = output_of(&spec);
    assert!(text.starts_with("1\n1\n1\n1 20 4242\n0027\n123\n456\n/usr\n/usr/sbin daemon\n"), "{text}");
    for line in ["NoNewPrivs:\t0", "CapEff:\t0000000000000000", "SigBlk:\t0000000000000000", "Seccomp:\t0"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_user_meets_the_permission_faults_that_root_would_not() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let (mut spec, _) = spec(&["/bin/ls", dir.path().to_str().unwrap()]);
    spec.cwd = "/".into();
    output_of(&spec);
    spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
    assert!(launch(&spec).unwrap().require_ready().unwrap_err().to_string().contains("Permission denied"));
}

#[test]
fn the_command_starts_with_default_signals_and_the_three_standard_descriptors_only() {
    let status = output_of(&spec(&["/bin/cat", "/proc/self/status"]).0);
    for line in ["SigIgn:\t0000000000000000", "SigBlk:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    // ls itself opens the directory as 3.
    assert_eq!(output_of(&spec(&["/bin/ls", "/proc/self/fd"]).0), "0\n1\n2\n3\n");
    let stdin = output_of(&spec(&["/bin/readlink", "/proc/self/fd/0"]).0);
    assert_eq!(stdin, "/dev/null\n");
}

#[test]
fn captured_output_can_be_opened_by_name_by_the_targets_user() {
    if !is_root() {
        return;
    }
    let (mut spec, _) = shell("echo by name > /dev/stdout");
    spec.cwd = "/".into();
    spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
    assert_eq!(output_of(&spec), "by name\n");
}

#[test]
fn environment_and_arguments_arrive_as_they_were_given_bytes_included() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"a\xff b".to_vec());
    let (mut spec, _) = shell("env; printf '%s' \"$0\" | od -An -tx1; printf '%s' \"$ODD\" | od -An -tx1");
    spec.argv.push(odd.clone());
    spec.env.push(("ODD".into(), odd));
    let outcome = output_of(&spec);
    assert_eq!(outcome.matches(" 61 ff 20 62\n").count(), 2, "{outcome}");
    let names: Vec<&str> = outcome.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let mut expected = vec!["LAUNCH_TEST_MARK", "ODD", "PATH", "PWD"];
    expected.retain(|name| !names.contains(name));
    assert_eq!(expected, [] as [&str; 0], "{names:?}");
    assert!(names.len() <= 6, "{names:?}");
}

#[test]
fn a_session_of_its_own_is_given_only_when_asked_for() {
    for pid_namespace in [false, true] {
        if pid_namespace && !is_root() {
            return;
        }
        for session in [false, true] {
            let (mut spec, _) = spec(&["/bin/true"]);
            (spec.session, spec.pid_namespace) = (session, pid_namespace);
            let mut seen = Groups(Vec::new());
            launcher().launch(&spec, &mut seen).unwrap();
            let [pid, group, session_id] = seen.0[..] else { panic!("{:?}", seen.0) };
            let callers = [nix::unistd::getpgrp().as_raw(), nix::unistd::getsid(None).unwrap().as_raw()];
            assert_eq!([group, session_id], if session { [pid, pid] } else { callers });
        }
    }
}

/// Pid, process group and session of the target, in the caller's numbers.
struct Groups(Vec<i32>);

impl Hooks for Groups {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        let target = Some(nix::unistd::Pid::from_raw(pid));
        self.0 = vec![pid, nix::unistd::getpgid(target)?.as_raw(), nix::unistd::getsid(target)?.as_raw()];
        Ok(())
    }
}

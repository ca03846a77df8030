//! Private mounts, pid namespaces and cgroups.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use slowpath_launch::{BoxError, EndPolicy, Hooks, MountStep};

use super::*;

/// Looks at both mount tables while the target waits for its release.
struct Tables {
    marker: String,
    host: Option<bool>,
    target: Option<bool>,
}

impl Hooks for Tables {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        let has =
            |pid: &str| fs::read_to_string(format!("/proc/{pid}/mountinfo")).map(|text| text.contains(&self.marker));
        let (host, target) = (has("self")?, has(&pid.to_string())?);
        (self.host, self.target) = (Some(host), Some(target));
        Ok(())
    }
}

fn run(spec: &LaunchSpec, dir: &Path) -> String {
    let marker = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let mut tables = Tables { marker: marker.clone(), host: None, target: None };
    let outcome = launcher().launch(spec, &mut tables).unwrap();
    assert_eq!((tables.host, tables.target), (Some(false), Some(true)));
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&marker));
    outcome.require_ready().unwrap();
    outcome.stdout_tail.unwrap()
}

#[test]
fn mounts_are_seen_by_the_target_and_nobody_else() {
    if !is_root() {
        return;
    }
    let dir = tempfile::Builder::new().prefix("launchmounts").tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["odd: a,b\\c", "low", "merged", "tmp"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("odd: a,b\\c/x"), "upper").unwrap();
    fs::write(at("low/x"), "lower").unwrap();
    fs::write(at("low/y"), "y").unwrap();
    fs::write(at("low/outside"), "outside").unwrap();
    fs::write(at("file"), "hidden").unwrap();
    let (mut spec, _) =
        shell("cat merged/x merged/y file; touch tmp/new && ls tmp; touch merged/z 2>/dev/null || echo read-only");
    spec.cwd = dir.path().to_owned();
    spec.mounts = vec![
        MountStep::Overlay { lower: vec![at("odd: a,b\\c"), at("low")], at: at("merged") },
        MountStep::Bind { from: at("low/outside"), to: at("file"), recursive: false },
        MountStep::Tmpfs { at: at("tmp") },
    ];
    for pid_namespace in [false, true] {
        spec.pid_namespace = pid_namespace;
        spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
        assert_eq!(run(&spec, dir.path()), "upperyoutsidenew\nread-only\n");
        assert!(!at("tmp/new").exists());
    }
}

#[test]
fn an_ext4_image_is_mounted_as_a_mere_store_and_gone_afterwards() {
    if !is_root() || !has("/sbin/mkfs.ext4") || !has("/sbin/losetup") {
        return;
    }
    let dir = tempfile::Builder::new().prefix("launchext4").tempdir().unwrap();
    let (image, at) = (dir.path().join("image"), dir.path().join("at"));
    fs::create_dir(&at).unwrap();
    fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    assert!(Command::new("/sbin/mkfs.ext4").args(["-q", "-F"]).arg(&image).status().unwrap().success());
    let losetup = Command::new("/sbin/losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
    let device = String::from_utf8(losetup.stdout).unwrap().trim().to_owned();
    if device.is_empty() {
        println!("skipped: no loop device");
        return;
    }
    let (mut spec, _) = shell("grep ' /tmp/launchext4' /proc/self/mountinfo; ls at");
    spec.cwd = dir.path().to_owned();
    spec.pid_namespace = true;
    spec.mounts = vec![MountStep::Ext4 { device: device.clone().into(), at, read_only: true }];
    let result = std::panic::catch_unwind(|| run(&spec, dir.path()));
    assert!(Command::new("/sbin/losetup").args(["--detach", &device]).status().unwrap().success());
    let text = result.unwrap();
    assert!(text.contains("ext4") && text.contains(" ro,") && text.ends_with("lost+found\n"), "{text}");
    assert!(text.contains(" ro,nosuid,nodev,noexec"), "{text}");
}

#[test]
fn a_pid_namespace_shows_its_own_processes_only() {
    if !is_root() {
        return;
    }
    let (mut spec, _) = shell("echo $$; ls -d /proc/[0-9]* | wc -l");
    spec.pid_namespace = true;
    let outcome = launch(&spec).unwrap();
    let text = outcome.stdout_tail.unwrap();
    let numbers: Vec<i32> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(numbers[0] < 10 && numbers[1] < 10, "{text}");
    assert!(outcome.pid > 10, "the pid that callers see is that of their own namespace");
    spec.end = EndPolicy::LeaveRunning;
    assert!(matches!(launch(&spec), Err(LaunchError::InvalidSpec(_))));
}

#[test]
fn the_target_joins_its_cgroups_and_the_observer_does_not() {
    let cgroup = Path::new("/sys/fs/cgroup/pids").join(format!("slowpath-launch-test-{}", std::process::id()));
    if !is_root() || fs::create_dir(&cgroup).is_err() {
        println!("skipped: no pids cgroup can be made");
        return;
    }
    let _remove = RemoveDir(&cgroup);
    for pid_namespace in [false, true] {
        let (mut spec, _) = shell("grep pids: /proc/self/cgroup; cat $CGROUP/cgroup.procs; :");
        spec.env.push(("CGROUP".into(), cgroup.clone().into()));
        spec.cgroups = vec![cgroup.join("cgroup.procs")];
        spec.pid_namespace = pid_namespace;
        let outcome = launch(&spec);
        let text = outcome.unwrap().stdout_tail.unwrap();
        assert!(text.contains(cgroup.file_name().unwrap().to_str().unwrap()), "{text}");
        // Of processes only the shell and cat.
        assert_eq!(text.lines().count(), 1 + 2, "{text}");
    }
}

struct RemoveDir<'a>(&'a Path);

impl Drop for RemoveDir<'_> {
    fn drop(&mut self) {
        assert!(fs::remove_dir(self.0).is_ok() || std::thread::panicking(), "a process is left in the cgroup");
    }
}

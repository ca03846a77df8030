//! Files and directories that a launch sees otherwise than they are.

use std::fs::Permissions as Mode;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use slowpath_launch::{BoxError, Hooks, LookedAt, MountNamespace, MountStep, Permissions, SeenFile, SetupStage};

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Mode::from_mode(mode)).unwrap();
}

/// The file as it is, to be seen with this mode.
fn seen(path: &Path, mode: u32) -> SeenFile {
    let file = fs::File::open(path).unwrap();
    let was = LookedAt::of(&file).unwrap();
    let permissions = Permissions { uid: was.uid, gid: was.gid, mode, acl: None };
    SeenFile { path: path.to_owned(), was, permissions, modified: None, without: Vec::new(), only: Vec::new() }
}

fn step(file: SeenFile) -> MountStep {
    MountStep::Seen(Box::new(file))
}

fn place() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("launchseen").tempdir_in("/var/tmp").unwrap();
    mode(dir.path(), 0o755);
    dir
}

/// What `script` prints as nobody in a launch that sees the place so.
fn printed(dir: &Path, script: &str, mounts: Vec<MountStep>) -> String {
    let (mut spec, _) = shell(script);
    spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
    spec.cwd = dir.to_owned();
    spec.mounts = mounts;
    let outcome = launch(&spec).unwrap();
    outcome.require_ready().unwrap_or_else(|error| panic!("{error}: {:?}", outcome.stderr_tail));
    outcome.stdout_tail.unwrap()
}

#[test]
fn a_directory_and_a_file_in_it_are_seen_with_other_permissions_and_stay_what_they_are() {
    if !is_root() {
        return;
    }
    let dir = place();
    let (closed, file, other) =
        (dir.path().join("closed"), dir.path().join("closed/file"), dir.path().join("closed/other"));
    fs::create_dir(&closed).unwrap();
    fs::write(&file, "secret").unwrap();
    fs::write(&other, "other").unwrap();
    mode(&file, 0o600);
    mode(&closed, 0o700);
    let facts = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (found.ino(), found.mode(), found.uid(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), found.len())
    };
    let before = [&closed, &file, &other].map(|path| facts(path));
    let script = "cat closed/file closed/other; stat -c ' %a %U %Y' closed closed/file; (echo new > closed/new) 2>/dev/null && echo made; true";
    let both = || vec![step(seen(&closed, 0o701)), step(seen(&file, 0o604))];
    let stamp = |path: &Path| fs::metadata(path).unwrap().mtime();
    let expected = format!("secretother 701 root {}\n 604 root {}\n", stamp(&closed), stamp(&file));
    assert_eq!(printed(dir.path(), script, both()), expected);
    // The sham: mounted as well, and denied as before.
    let sham = vec![step(seen(&closed, 0o700)), step(seen(&file, 0o600))];
    assert_eq!(printed(dir.path(), "cat closed/other 2>/dev/null || echo denied", sham), "denied\n");
    // What is written there goes with the launch; nothing of the mounts is in the way of programs, or seen outside.
    let open = vec![step(seen(&closed, 0o707))];
    let script = "echo new > closed/new; mv closed/new closed/other; cat closed/other; ls closed; ls / >/dev/null; grep -c ' / / ' \
                  /proc/self/mountinfo";
    assert_eq!(printed(dir.path(), script, open), "new\nfile\nother\n1\n");
    assert_eq!([&closed, &file, &other].map(|path| facts(path)), before);
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    let marker = dir.path().file_name().unwrap().to_str().unwrap();
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(marker));
}

#[test]
fn names_are_hidden_and_times_are_others_in_one_launch_alone() {
    if !is_root() {
        return;
    }
    let dir = place();
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    fs::create_dir_all(dir.path().join("tree/below")).unwrap();
    let place = SeenFile { without: vec!["a".into(), "tree".into()], ..seen(dir.path(), 0o755) };
    let dated = SeenFile { modified: Some(1_000_000_000), ..seen(&dir.path().join("b"), 0o644) };
    let shown = printed(dir.path(), "ls; stat -c %Y b; cat b", vec![step(place), step(dated)]);
    assert_eq!(shown, "b\nc\n1000000000\nb");
    assert!(dir.path().join("a").exists() && dir.path().join("tree/below").exists());
}

#[test]
fn a_file_that_took_the_place_of_another_or_a_link_is_refused() {
    if !is_root() {
        return;
    }
    let dir = place();
    let (file, secret) = (dir.path().join("file"), dir.path().join("secret"));
    fs::write(&file, "file").unwrap();
    fs::write(&secret, "secret").unwrap();
    let refused = |step: MountStep| {
        let (mut spec, _) = shell("true");
        spec.mounts = vec![step];
        match launch(&spec) {
            Err(LaunchError::Setup { stage: SetupStage::Mount { .. }, source }) => source.raw_os_error(),
            other => panic!("{other:?}"),
        }
    };
    let looked_at = seen(&file, 0o644);
    fs::rename(&secret, &file).unwrap();
    assert_eq!(refused(step(looked_at)), Some(libc::ESTALE));
    let looked_at = seen(&file, 0o644);
    chown(&file, Some(65534), None).unwrap();
    assert_eq!(refused(step(looked_at)), Some(libc::ESTALE));
    let mut linked = seen(&file, 0o644);
    symlink("file", dir.path().join("link")).unwrap();
    linked.path = dir.path().join("link");
    assert_eq!(refused(step(linked)), Some(libc::ESTALE));
    symlink(".", dir.path().join("way")).unwrap();
    let on_the_way = SeenFile { path: dir.path().join("way/file"), ..seen(&file, 0o644) };
    assert_eq!(refused(step(on_the_way)), Some(libc::ELOOP));
}

#[test]
fn a_set_user_id_bit_is_never_seen_and_a_users_file_has_no_power() {
    if !is_root() {
        return;
    }
    let dir = place();
    let file = dir.path().join("program");
    fs::copy("/bin/true", &file).unwrap();
    mode(&file, 0o4755);
    let shown = printed(dir.path(), "stat -c %a program", vec![step(seen(&file, 0o4755))]);
    assert_eq!(shown, "755\n");
    chown(&file, Some(65534), Some(65534)).unwrap();
    let shown =
        printed(dir.path(), "grep program /proc/self/mountinfo | cut -d' ' -f6", vec![step(seen(&file, 0o755))]);
    assert!(shown.contains("nosuid,nodev"), "{shown}");
}

#[test]
fn of_a_directory_that_is_opened_the_names_that_are_needed_are_there_and_no_other() {
    if !is_root() {
        return;
    }
    let dir = place();
    let closed = dir.path().join("closed");
    fs::create_dir_all(closed.join("way/inner")).unwrap();
    for name in ["way/artifact", "way/other", "way/inner/file", "secret"] {
        fs::write(closed.join(name), name).unwrap();
    }
    symlink("secret", closed.join("link")).unwrap();
    mode(&closed, 0o700);
    mode(&closed.join("way/artifact"), 0o600);
    let only = |names: &[&str], file: SeenFile| SeenFile { only: names.iter().map(OsString::from).collect(), ..file };
    let steps = vec![
        step(only(&["way", "link", "gone"], seen(&closed, 0o705))),
        step(only(&["artifact", "inner"], seen(&closed.join("way"), 0o755))),
        step(seen(&closed.join("way/artifact"), 0o604)),
    ];
    let shown = printed(
        dir.path(),
        "ls closed closed/way closed/way/inner; cat closed/way/artifact closed/way/inner/file",
        steps,
    );
    let expected =
        "closed:\nway\n\nclosed/way:\nartifact\ninner\n\nclosed/way/inner:\nfile\nway/artifactway/inner/file";
    assert_eq!(shown, expected);
    assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o700);
}

/// Keeps the mounts of the launch that it accompanies.
#[derive(Default)]
struct Keeping(Option<MountNamespace>);

impl Hooks for Keeping {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.0 = Some(MountNamespace::of_process(pid)?);
        Ok(())
    }
}

#[test]
fn what_one_launch_writes_where_it_sees_a_directory_as_its_own_later_launches_see_and_nobody_else() {
    if !is_root() {
        return;
    }
    let dir = place();
    let closed = dir.path().join("closed");
    fs::create_dir_all(closed.join("sub")).unwrap();
    let own = |path: &Path| {
        let file = seen(path, 0o755);
        let permissions = Permissions { uid: 65534, gid: 65534, ..file.permissions.clone() };
        step(SeenFile { permissions, ..file })
    };
    let as_nobody = |script: &str| {
        let (mut spec, _) = shell(script);
        spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
        spec.cwd = dir.path().to_owned();
        spec
    };
    let mut first = as_nobody("echo made > closed/made && echo below > closed/sub/made");
    first.mounts = vec![own(&closed), own(&closed.join("sub"))];
    let mut keeping = Keeping::default();
    let outcome = launcher().launch(&first, &mut keeping).unwrap();
    outcome.require_ready().unwrap_or_else(|error| panic!("{error}: {:?}", outcome.stderr_tail));
    let kept = keeping.0.unwrap();
    let later = |script: &str| {
        let mut spec = as_nobody(script);
        spec.within = Some(kept.descriptor());
        spec.mounts = vec![MountStep::ReadOnly { at: closed.join("sub") }, MountStep::ReadOnly { at: closed.clone() }];
        let outcome = launch(&spec).unwrap();
        outcome.require_ready().unwrap_or_else(|error| panic!("{error}: {:?}", outcome.stderr_tail));
        outcome.stdout_tail.unwrap()
    };
    for _ in 0..2 {
        let script = "cat closed/made closed/sub/made; (echo no > closed/no) 2>/dev/null || echo refused; \
                      (rm closed/sub/made) 2>/dev/null || echo kept";
        assert_eq!(later(script), "made\nbelow\nrefused\nkept\n");
    }
    assert_eq!(printed(dir.path(), "find closed", vec![step(seen(&closed, 0o755))]), "closed\nclosed/sub\n");
    assert!(!closed.join("made").exists());
    // Only what is mounted there can be read-only, and only a mount namespace is one.
    let mut wrong = as_nobody("true");
    wrong.mounts = vec![MountStep::ReadOnly { at: closed.clone() }];
    assert!(matches!(launch(&wrong), Err(LaunchError::Setup { stage: SetupStage::Mount { .. }, .. })));
    let file = fs::File::open("/dev/null").unwrap();
    wrong.mounts.clear();
    wrong.within = Some(std::os::fd::AsRawFd::as_raw_fd(&file));
    assert!(matches!(launch(&wrong), Err(LaunchError::Setup { stage: SetupStage::Namespace { .. }, .. })));
}

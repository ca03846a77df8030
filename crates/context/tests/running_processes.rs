//! Contexts of processes that run here.

use slowpath_context::{Reading, Snapshot, Value, differences, factors};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process that sleeps until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").stdin(Stdio::null());
        prepare(&mut command);
        // SAFETY: only system calls that are safe after a fork.
        unsafe {
            command.pre_exec(|| nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(Into::into))
        };
        Self(command.spawn().unwrap())
    }

    fn context(&self) -> Snapshot {
        // The loader needs a moment until what it maps is there; while it waits for a page of a file it runs no system call.
        let sleeps = [libc::SYS_clock_nanosleep, libc::SYS_nanosleep].map(|number| number.to_string());
        let ready = || {
            let call = std::fs::read_to_string(format!("/proc/{}/syscall", self.0.id())).unwrap_or_default();
            call.split(' ').next().is_some_and(|number| sleeps.iter().any(|sleep| sleep == number))
        };
        let waited = std::time::Instant::now();
        while !ready() && waited.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut snapshot = Snapshot::of_process(self.0.id()).unwrap();
        snapshot.examine_loaded_libraries();
        snapshot
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn value(snapshot: &Snapshot, factor: &str) -> Option<Value> {
    snapshot.reading(factor).and_then(Reading::value).cloned()
}

#[test]
fn every_factor_is_known_or_says_why_not() {
    let snapshot = Sleeper::start(|_| {}).context();
    for factor in &factors::ALL {
        match snapshot.reading(factor.name) {
            Some(Reading::Known { .. }) => {}
            Some(Reading::Unavailable { reason, remedy }) => {
                assert!(!reason.is_empty() && !remedy.is_empty(), "{factor:?}")
            }
            Some(Reading::Absent { reason }) => assert!(!reason.is_empty(), "{factor:?}"),
            None => panic!("{factor:?} was not read"),
        }
    }
    for needed in [
        "seccomp",
        "scheduling",
        "affinity",
        "timer_slack_ns",
        "credentials",
        "environment",
        "file_systems",
        "limits",
        "loaded_libraries",
    ] {
        assert!(value(&snapshot, needed).is_some(), "{needed}: {:?}", snapshot.reading(needed));
    }
    let Some(Value::Table(libraries)) = value(&snapshot, "loaded_libraries") else { panic!("no loaded libraries") };
    assert!(
        libraries.iter().any(|(path, told)| path.ends_with("/sleep") && told.contains("position-independent program")),
        "{libraries:?}"
    );
}

#[test]
fn what_was_changed_is_what_differs() {
    let plain = Sleeper::start(|_| {});
    let changed = Sleeper::start(|command| {
        command.env("MALLOC_ARENA_MAX", "1").current_dir("/proc");
        // SAFETY: only system calls that are safe after a fork.
        unsafe {
            command.pre_exec(|| {
                libc::nice(5);
                libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_000);
                libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                Ok(())
            })
        };
    });
    let found = differences(&plain.context(), &changed.context());
    let mut names: Vec<&str> =
        found.different.iter().filter(|one| !one.of_the_moment).map(|one| one.factor.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["environment", "file_systems", "huge_pages", "no_new_privs", "scheduling", "timer_slack_ns"],
        "{found:?}"
    );
    let slack = found.different.iter().find(|one| one.factor == "timer_slack_ns").unwrap();
    assert_eq!(slack.parts[0].b.as_deref(), Some("1000000"));
}

#[test]
fn two_equal_processes_differ_in_nothing() {
    let (one, other) = (Sleeper::start(|_| {}), Sleeper::start(|_| {}));
    let found = differences(&one.context(), &other.context());
    let lasting: Vec<_> = found.different.iter().filter(|one| !one.of_the_moment).collect();
    assert!(lasting.is_empty(), "{lasting:?}");
}

#[test]
fn threads_have_factors_of_their_own() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("slack".to_owned()).spawn(move || {
        // SAFETY: takes integers and touches no memory of ours.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 777_000) };
        let _ = receiver.recv();
    });
    let thread = thread.unwrap();
    let slack = || {
        let snapshot = Snapshot::of_process(std::process::id()).unwrap();
        let found = snapshot.threads.iter().find(|one| one.name == "slack").cloned();
        found.and_then(|one| one.factors.get("timer_slack_ns").and_then(Reading::value).cloned())
    };
    let waited = std::time::Instant::now();
    while slack() != Some(Value::Number(777_000)) && waited.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(slack(), Some(Value::Number(777_000)));
    let main = Snapshot::of_process(std::process::id()).unwrap();
    assert_ne!(main.threads[0].factors.get("timer_slack_ns").and_then(Reading::value), Some(&Value::Number(777_000)));
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn a_process_that_has_ended_and_waits_for_its_parent_is_no_context() {
    let mut child = Command::new("/bin/true").spawn().unwrap();
    let pid = child.id();
    let is_zombie = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ");
    let waited = std::time::Instant::now();
    while !is_zombie() && waited.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(Snapshot::of_process(pid).unwrap_err(), slowpath_context::SnapshotError::Ended(pid));
    child.wait().unwrap();
}

/// Programs that end at any moment: of each there is either all or nothing.
#[test]
fn of_processes_that_end_while_they_are_read_there_is_all_or_nothing() {
    let mut read = 0;
    for round in 0..60 {
        let mut child = Command::new("/bin/sleep").arg(format!("0.{:03}", round / 2)).spawn().unwrap();
        let pid = child.id();
        while let Ok(context) = Snapshot::of_process(pid) {
            for factor in ["environment", "limits", "file_systems"] {
                let reading = context.reading(factor).unwrap();
                assert!(reading.value().is_some(), "{factor}: {reading:?} of {:?}", context.command);
            }
            read += 1;
        }
        child.wait().unwrap();
    }
    println!("{read} were whole");
}

#[test]
fn a_process_that_is_not_there_is_no_context() {
    assert!(Snapshot::of_process(u32::MAX / 2).unwrap_err().to_string().contains("there is no process"));
}

#[test]
fn a_process_is_its_users_own_only_where_it_sees_the_same_files() {
    let own = nix::unistd::geteuid();
    let source = |words: &[&str]| {
        let mut child = std::process::Command::new(words[0]).args(&words[1..]).spawn().unwrap();
        let pid = child.id();
        let name = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        while name().trim() != "sleep" {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let context = Snapshot::of_process(pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        context.source
    };
    let uid = Some(own.as_raw());
    assert_eq!(source(&["/bin/sleep", "60"]), slowpath_context::Source::Process { uid });
    if own.is_root() {
        let elsewhere = source(&["/usr/bin/unshare", "--mount", "/bin/sleep", "60"]);
        assert_eq!(elsewhere, slowpath_context::Source::Process { uid: None });
    } else {
        println!("skipped: only root makes a mount namespace");
    }
}

/// Mounts cgroup v2 at `$2` below a root directory of its own, `$1`, and sleeps there.
const OWN_GROUPS: &str = r#"
set -e
for part in usr bin lib lib64; do
    if [ -L /$part ]; then cp -P /$part "$1/$part"
    elif [ -d /$part ]; then mkdir "$1/$part"; mount --rbind /$part "$1/$part"
    fi
done
mkdir -p "$1$2"
mount -t cgroup2 none "$1$2"
exec chroot "$1" /bin/sleep 60
"#;

/// A process that has a hierarchy of cgroup v2, and no other, at this path, in user, mount and cgroup namespaces and with a root directory
/// of its own, as any user can make them.
fn with_groups_at(path: &std::path::Path, root: &std::path::Path) -> Option<Sleeper> {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root has files that others cannot read");
        return None;
    }
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--user", "--map-root-user", "--mount", "--cgroup", "/bin/sh", "-c", OWN_GROUPS, "sh"]);
    let mut sleeper = Sleeper(command.args([root, path]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    while name(sleeper.0.id()).trim() != "sleep" {
        if sleeper.0.try_wait().unwrap().is_some() {
            let why = std::io::read_to_string(sleeper.0.stderr.take().unwrap()).unwrap();
            println!("skipped: no cgroup v2 in a user namespace here: {}", why.trim());
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mounts = std::fs::read_to_string(format!("/proc/{}/mountinfo", sleeper.0.id())).unwrap();
    let expected = format!(" {} ", path.display());
    assert!(mounts.lines().any(|line| line.contains(&expected) && line.contains(" - cgroup2 ")), "{mounts}");
    Some(sleeper)
}

#[test]
fn a_process_whose_cgroups_lie_where_links_and_pipes_are_shows_nothing_of_roots_and_holds_nobody() {
    const SECRET: &str = "only-root-may-read-this";
    type Trap = fn(&std::path::Path);
    let link: Trap = |groups| {
        let secret = groups.with_file_name("secret");
        std::fs::write(&secret, SECRET).unwrap();
        std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        for file in ["cpuset.cpus.effective", "io.max", "cpu.max", "cpu.weight"] {
            std::os::unix::fs::symlink(&secret, groups.join(file)).unwrap();
        }
    };
    let pipe: Trap = |groups| nix::unistd::mkfifo(&groups.join("cpu.max"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for trap in [link, pipe] {
        let place = tempfile::tempdir().unwrap();
        let [groups, root] = ["groups", "root"].map(|name| place.path().join(name));
        [&groups, &root].iter().for_each(|directory| std::fs::create_dir(directory).unwrap());
        trap(&groups);
        let Some(sleeper) = with_groups_at(&groups, &root) else { return };
        // In a thread that the test need not wait for.
        let (sender, receiver) = std::sync::mpsc::channel();
        let pid = sleeper.0.id();
        std::thread::spawn(move || sender.send(Snapshot::of_process(pid).map(Box::new)).is_ok());
        let result = receiver.recv_timeout(std::time::Duration::from_secs(60));
        let context = result.expect("who looks is not held up for ever").unwrap();
        assert!(!format!("{context:?}").contains(SECRET), "{:?}", context.reading("control_groups"));
        // It is in the groups in which its parent is, which see to it as to any other process.
        let other = Sleeper::start(|_| {}).context();
        assert_eq!(value(&context, "control_groups"), value(&other, "control_groups"));
    }
}

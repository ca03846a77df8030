//! Running the command of a policy: as its user and no more, in a session of its own, with an end.

use crate::policy::Repair;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, geteuid, getpid};
use slowpath_process::{Identity, become_before_exec, trusted_file};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// All that a repair has of an environment, beside who its user is: it does not get what the product was started with.
const ENVIRONMENT: [(&str, &str); 2] = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8")];

/// How often it is looked whether it has ended: at first often, for most take some milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this status; `None` where the product takes its children's ends itself (`SIGCHLD` ignored).
    Exited(Option<i32>),
    /// A signal killed it.
    Killed(i32),
    /// It was killed after its timeout.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

/// A repair that may be run.
pub struct Prepared {
    command: Command,
    timeout: Duration,
}

/// Prepares a repair for who it is to run as. Nothing is run.
///
/// # Errors
/// Why the calling user must not run it.
pub fn prepare(repair: &Repair) -> Result<Prepared, String> {
    let (wanted, _) = Identity::known_as(&repair.user).map_err(|error| error.to_string())?;
    let own = geteuid();
    let identity = if own.is_root() {
        wanted
    } else if wanted.uid == own.as_raw() {
        // With the groups that it has, which only root could change.
        Identity::of_caller().map_err(|error| error.to_string())?
    } else {
        return Err(format!("it has to run as {}, and only root can become another user", repair.user));
    };
    let (Some(given), arguments) = (repair.command.first(), &repair.command[1..]) else {
        return Err("it names no program".to_owned());
    };
    let program = if identity.uid == 0 { trusted_program(Path::new(given))? } else { PathBuf::from(given) };
    let mut command = Command::new(program);
    // Programs go by the name that they are started by: which of its tools busybox is, and where CPython looks for its modules. For root it
    // is a path of which nobody else can change a part.
    command.arg0(given).args(arguments).env_clear().envs(ENVIRONMENT).envs(of_user(&identity)).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (credentials, parent) = (identity.credentials(), getpid());
    let take_on = move || become_before_exec(&credentials, parent).map_err(io::Error::other);
    // SAFETY: the child runs this thread alone until its exec. What it calls are system calls, and it allocates, which glibc permits after
    // a fork of several threads too; it takes no other lock that one of the parent's threads may hold.
    unsafe { command.pre_exec(take_on) };
    Ok(Prepared { command, timeout: repair.timeout })
}

/// The program with its links resolved. Root runs nothing that somebody else can replace or change, and follows nobody else's link: who
/// owns one chooses the program, and the name that it is started by.
fn trusted_program(given: &Path) -> Result<PathBuf, String> {
    trusted_file(given).map(|found| found.path).map_err(|error| format!("{} cannot be run: {error}", given.display()))
}

fn of_user(identity: &Identity) -> [(&'static str, OsString); 3] {
    let name = OsString::from(&identity.user);
    [("HOME", identity.home.clone().into_os_string()), ("USER", name.clone()), ("LOGNAME", name)]
}

impl Prepared {
    /// Runs it to its end. What it started and left running in its process group ends with it.
    pub fn run(mut self) -> End {
        let Ok(mut child) = self.command.spawn() else { return End::NotStarted };
        let began = Instant::now();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(0));
        let mut pause = FIRST_LOOK;
        // The process stays a zombie, and its number its own, until the group has been ended.
        let end = loop {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            match waitid(Id::Pid(group), flags) {
                Ok(WaitStatus::Exited(_, status)) => break End::Exited(Some(status)),
                Ok(WaitStatus::Signaled(_, signal, _)) => break End::Killed(signal as i32),
                Err(Errno::ECHILD) => return End::Exited(None),
                _ if began.elapsed() >= self.timeout => break End::TimedOut,
                _ => {}
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_LOOK);
        };
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait();
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    fn repair(words: &[&str], timeout: Duration) -> Repair {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        Repair { command, user: geteuid().to_string(), timeout }
    }

    fn end(script: &str) -> End {
        end_within(script, Duration::from_secs(60))
    }

    fn end_within(script: &str, limit: Duration) -> End {
        prepare(&repair(&["/bin/sh", "-c", script], limit)).unwrap().run()
    }

    #[test]
    fn a_command_ends_as_it_says_or_after_its_time_with_what_it_started() {
        assert_eq!(end("exit 7"), End::Exited(Some(7)));
        assert_eq!(end("kill -TERM $$"), End::Killed(15));
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("pid");
        let waits = format!("sleep 600 & echo $! > {}; wait", file.display());
        assert_eq!(end_within(&waits, Duration::from_secs(1)), End::TimedOut);
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let is_gone = || stat().map_or(true, |stat| stat.contains(") Z "));
        assert!((0..200).any(|_| is_gone() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
        let none = prepare(&repair(&["/none/at/all"], Duration::from_secs(1)));
        assert!(none.map_or(true, |none| none.run() == End::NotStarted));
    }

    #[test]
    fn a_command_has_an_environment_of_its_own_no_privileges_to_gain_and_a_session() {
        let script = "[ \"$PATH\" = /usr/sbin:/usr/bin:/sbin:/bin ] && [ -z \"$CARGO_MANIFEST_DIR\" ] && [ \"$PWD\" = / ] \
                      && grep -q 'NoNewPrivs:\t1' /proc/self/status && [ \"$(umask)\" = 0022 ] \
                      && [ \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ ]";
        assert_eq!(end(script), End::Exited(Some(0)));
    }

    #[test]
    fn root_runs_no_program_that_somebody_else_could_have_changed() {
        if !geteuid().is_root() {
            println!("skipped: only root is refused");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("program");
        // By another process: what a test beside this one forks would hold the file open for writing, and none can be executed then.
        assert!(Command::new("/bin/cp").arg("/bin/true").arg(&program).status().unwrap().success());
        let words = [program.to_str().unwrap()];
        assert_eq!(prepare(&repair(&words, Duration::from_secs(5))).unwrap().run(), End::Exited(Some(0)));
        std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
        let refused = prepare(&repair(&words, Duration::from_secs(5))).err().unwrap();
        assert!(refused.contains("can be changed by other users"), "{refused}");
        let other = Repair { user: "nobody".to_owned(), ..repair(&words, Duration::from_secs(5)) };
        assert!(prepare(&other).is_ok(), "as itself it may run what it likes");
    }

    #[test]
    fn root_runs_what_its_own_links_lead_to_by_their_name_and_follows_nobody_elses() {
        if !geteuid().is_root() {
            println!("skipped: only root is refused");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let run = |program: &Path| {
            let program = program.to_str().unwrap();
            let script = format!("[ \"$0\" = {program} ]");
            prepare(&repair(&[program, "-c", &script], Duration::from_secs(5))).map(Prepared::run)
        };
        symlink("/bin/sh", at("roots")).unwrap();
        assert_eq!(run(&at("roots")), Ok(End::Exited(Some(0))));
        // What it leads to is root's, as are the directories there; its owner makes it lead elsewhere in the next moment.
        std::fs::create_dir(at("theirs")).unwrap();
        symlink("/bin/sh", at("theirs/theirs")).unwrap();
        symlink("/bin/sh", at("theirs/roots")).unwrap();
        symlink("theirs", at("way")).unwrap();
        lchown(at("theirs/theirs"), Some(65534), Some(65534)).unwrap();
        let refused = run(&at("theirs/theirs")).unwrap_err();
        assert!(refused.contains("is a symbolic link of another user"), "{refused}");
        lchown(at("theirs"), Some(65534), Some(65534)).unwrap();
        for name in ["theirs/theirs", "theirs/roots", "way/roots"] {
            let refused = run(&at(name)).unwrap_err();
            assert!(refused.contains("theirs can be changed by other users"), "{name}: {refused}");
        }
    }
}

//! What a target of another user must not have of the caller: his terminal, file mode mask, keys, memory, descriptors.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use slowpath_launch::{BoxError, ContextStep, Hooks, StdioPolicy};

use super::*;

/// A launch as user 65534, in `/`.
fn as_nobody(argv: &[&str]) -> LaunchSpec {
    let (mut spec, _) = spec(argv);
    spec.identity = Identity::for_invocation(Some("65534"), []).unwrap().0;
    spec.cwd = "/".into();
    spec
}

/// Runs `launch-probe run` with this specification, in a process that did `before` to itself; what it printed, the launched command
/// included.
fn by_a_caller(
    spec: &LaunchSpec,
    out: Stdio,
    before: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
) -> std::process::Child {
    let mut caller = Command::new(env!("CARGO_BIN_EXE_launch-probe"));
    caller.arg("run").stdin(Stdio::piped()).stdout(out);
    // SAFETY: what the tests below do there are system calls and nothing else.
    unsafe { caller.pre_exec(before) };
    let mut child = caller.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(spec).unwrap()).unwrap();
    child
}

fn outcome_of(child: std::process::Child) -> LaunchOutcome {
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn checked(result: libc::c_long) -> std::io::Result<()> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts a character into its terminal's input, and says how that went.
const TIOCSTI: &str = "
import fcntl, os, termios
print('terminal', open('/proc/self/stat').read().rsplit(')', 1)[1].split()[4], flush=True)
for fd in (1, 2):
    try: fcntl.ioctl(fd, termios.TIOCSTI, b'x'); print('typed', flush=True)
    except OSError as error: print('refused', error.errno, flush=True)
try: os.open('/dev/tty', os.O_RDWR); print('opened', flush=True)
except OSError as error: print('no terminal', flush=True)
";

#[test]
fn another_user_does_not_get_the_callers_terminal() {
    if !is_root() || !has("/usr/bin/python3") {
        return;
    }
    let mut spec = as_nobody(&["/usr/bin/python3", "-ISc", TIOCSTI]);
    spec.stdio = StdioPolicy::Inherit;
    let pty = nix::pty::openpty(None, None).unwrap();
    let slave = pty.slave.as_raw_fd();
    let child = by_a_caller(&spec, Stdio::from(pty.slave.try_clone().unwrap()), move || {
        // SAFETY: integers only.
        checked(unsafe { libc::setsid() }.into())?;
        // SAFETY: as above.
        checked(unsafe { libc::ioctl(slave, libc::TIOCSCTTY, 0) }.into())
    });
    drop(pty.slave);
    let text = all_of(pty.master);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{text}");
    assert!(text.contains("terminal 0\r\n") && text.contains("no terminal"), "{text}");
    assert_eq!((text.matches("refused").count(), text.contains("typed")), (2, false), "{text}");
    // The caller's own identity keeps the terminal.
    spec.identity = Identity::of_caller().unwrap();
    let pty = nix::pty::openpty(None, None).unwrap();
    let slave = pty.slave.as_raw_fd();
    let child = by_a_caller(&spec, Stdio::from(pty.slave.try_clone().unwrap()), move || {
        // SAFETY: integers only.
        checked(unsafe { libc::setsid() }.into())?;
        // SAFETY: as above.
        checked(unsafe { libc::ioctl(slave, libc::TIOCSCTTY, 0) }.into())
    });
    drop(pty.slave);
    let text = all_of(pty.master);
    child.wait_with_output().unwrap();
    assert!(text.contains("opened"), "{text}");
}

/// What comes from a pseudo-terminal until nobody has it open.
fn all_of(master: OwnedFd) -> String {
    let (mut master, mut bytes) = (fs::File::from(master), Vec::new());
    // Its end is an error (EIO).
    let _ = master.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn another_user_does_not_get_a_mask_that_lets_others_write() {
    if !is_root() {
        return;
    }
    let open = || {
        // SAFETY: an integer only.
        unsafe { libc::umask(0) };
        Ok(())
    };
    let mut spec = as_nobody(&["/bin/sh", "-c", "umask"]);
    assert_eq!(outcome_of(by_a_caller(&spec, Stdio::piped(), open)).stdout_tail.unwrap(), "0022\n");
    spec.identity = Identity::of_caller().unwrap();
    assert_eq!(outcome_of(by_a_caller(&spec, Stdio::piped(), open)).stdout_tail.unwrap(), "0000\n");
}

/// Looks for a key by its description in the session keyring (keyctl(2), `KEYCTL_SEARCH`).
fn search() -> String {
    format!(
        "import ctypes\nlibc = ctypes.CDLL(None)\n\
         print('found' if libc.syscall({}, 10, -3, b'user', b'slowpath-test', 0) > 0 else 'none')",
        libc::SYS_keyctl
    )
}

#[test]
fn another_user_does_not_possess_the_callers_keys() {
    if !is_root() || !has("/usr/bin/python3") {
        return;
    }
    if !Path::new("/proc/keys").exists() {
        println!("skipped: this kernel has no keys");
        return;
    }
    /// `KEYCTL_JOIN_SESSION_KEYRING`, `KEY_SPEC_SESSION_KEYRING` (include/uapi/linux/keyctl.h).
    const JOIN: libc::c_long = 1;
    const SESSION: libc::c_long = -3;
    let with_a_key = || {
        // SAFETY: strings that end with a zero, and integers. The keyring goes with the process.
        unsafe {
            checked(libc::syscall(libc::SYS_keyctl, JOIN, std::ptr::null::<libc::c_char>()))?;
            let (kind, name, value) = (c"user".as_ptr(), c"slowpath-test".as_ptr(), c"secret".as_ptr());
            checked(libc::syscall(libc::SYS_add_key, kind, name, value, 6, SESSION))
        }
    };
    let mut spec = as_nobody(&["/usr/bin/python3", "-ISc", &search()]);
    assert_eq!(outcome_of(by_a_caller(&spec, Stdio::piped(), with_a_key)).stdout_tail.unwrap(), "none\n");
    spec.identity = Identity::of_caller().unwrap();
    assert_eq!(outcome_of(by_a_caller(&spec, Stdio::piped(), with_a_key)).stdout_tail.unwrap(), "found\n");
}

/// The descriptors of the target-to-be, and who may look at its memory.
#[derive(Default)]
struct Held {
    descriptors: Vec<String>,
    is_shielded: bool,
}

impl Hooks for Held {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        use std::os::unix::fs::MetadataExt;
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let entry = entry?;
            let number: u32 = entry.file_name().to_string_lossy().parse()?;
            if number > 2 {
                self.descriptors.push(fs::read_link(entry.path())?.to_string_lossy().into_owned());
            }
        }
        // The files of a process that nobody but root may look into are root's (proc(5)).
        self.is_shielded = fs::metadata(format!("/proc/{pid}/environ"))?.uid() == 0;
        Ok(())
    }
}

#[test]
fn another_users_target_holds_the_channel_and_its_two_pipes_only_and_nobody_looks_into_it_before_its_exec() {
    if !is_root() {
        return;
    }
    let mut held = Held::default();
    let spec = as_nobody(&["/bin/true"]);
    launcher().launch(&spec, &mut held).unwrap().require_ready().unwrap();
    let kinds = |kind: &str| held.descriptors.iter().filter(|one| one.starts_with(kind)).count();
    assert_eq!((kinds("socket:"), kinds("pipe:"), held.descriptors.len()), (1, 2, 3), "{:?}", held.descriptors);
    assert!(held.is_shielded);
    // Its exec ends that.
    let spec = as_nobody(&["/bin/sh", "-c", "stat -c %u /proc/$$/environ"]);
    assert_eq!(launch(&spec).unwrap().stdout_tail.unwrap(), "65534\n");
}

#[test]
fn a_filter_of_another_user_always_comes_without_new_privileges() {
    if !is_root() {
        return;
    }
    let mut spec = as_nobody(&["/bin/grep", "-E", "NoNewPrivs|Seccomp:", "/proc/self/status"]);
    let mut program = vec![0x06, 0, 0, 0];
    program.extend(0x7fff_0000u32.to_ne_bytes());
    spec.context = vec![ContextStep::SystemCallFilter { program, may_speculate: false }];
    assert_eq!(launch(&spec).unwrap().stdout_tail.unwrap(), "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

#[test]
fn the_id_that_means_unchanged_is_nobodys() {
    let change: [fn(&mut Identity); 3] = [
        |identity| identity.uid = u32::MAX,
        |identity| identity.gid = u32::MAX,
        |identity| identity.groups.push(u32::MAX),
    ];
    for change in change {
        let mut spec = shell("id -u").0;
        change(&mut spec.identity);
        let refused = launch(&spec);
        assert!(matches!(refused, Err(LaunchError::InvalidSpec(_))), "{refused:?}");
    }
}

/// Ctrl-C at the caller's terminal, once the command has said that it waits; the launch then goes on.
#[derive(Default)]
struct CtrlC {
    is_due: bool,
}

impl Hooks for CtrlC {
    fn on_ready(&mut self, _: u64) {
        self.is_due = true;
    }

    fn interrupted(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }
}

#[test]
fn ctrl_c_is_passed_on_to_another_users_target_and_to_no_other() {
    if !is_root() {
        return;
    }
    let script = "trap 'echo interrupted; exit 3' INT; echo waits; sleep 1 & wait; echo over";
    let mut spec = as_nobody(&["/bin/sh", "-c", script]);
    (spec.ready, spec.end) =
        (slowpath_launch::ReadyWhen::Line("waits".to_owned()), slowpath_launch::EndPolicy::WaitExit);
    let printed = |spec: &LaunchSpec| launcher().launch(spec, &mut CtrlC::default()).unwrap().stdout_tail.unwrap();
    assert_eq!(printed(&spec), "waits\ninterrupted\n");
    // The kernel has signalled this one by itself, where it was the terminal.
    spec.identity = Identity::of_caller().unwrap();
    assert_eq!(printed(&spec), "waits\nover\n");
}

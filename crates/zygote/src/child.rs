//! The life of a child, from the fork to its work.
//!
//! Each step of [`prepare`] does what its name says and reads back from the kernel that it is so; where one fails, nothing of the child's
//! work is done and the zygote learns the step. Leaves to the server who may have which child.

use crate::message::{AskedIdentity, FromClient, MOST_BYTES, SpawnRequest, Step, Word, decoded, request};
use crate::namespaces::{self, ChildrenInNewPidNamespace, Namespace};
use crate::single_thread;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, getsid, setsid};
use slowpath_process::{Credentials, CredentialsError, Packet, close_all_but, drop_to, receive_packet};
use slowpath_seccomp::Program;
use slowpath_seccomp::install::{Speculation, forbid_new_privileges, install};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exit code of a child whose work panicked, as of a Rust program.
const PANICKED: i32 = 101;

/// What a zygote has preloaded, and what its children do with it.
///
/// The hooks around the fork are for what a runtime must do to survive one: take locks before, release them after, on both sides. They run
/// with the zygote's rights; [`Preloaded::run`] runs with the child's.
pub trait Preloaded {
    /// In the zygote, before each fork.
    fn before_fork(&mut self) {}
    /// In the zygote, after it, also where it failed.
    fn after_fork_in_zygote(&mut self) {}
    /// In the child, first of all.
    fn after_fork_in_child(&mut self) {}
    /// The work of a child. Its value is the exit code. What must differ between children (random seeds, clocks, connections) is made
    /// anew here, [`Child::seed`] is there for it.
    fn run(&mut self, child: &Child) -> i32;
}

/// What a child is given.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its arguments.
    pub arguments: Vec<Word>,
    /// What was set in its environment over the zygote's.
    pub environment: Vec<Word>,
    /// 32 bytes from the kernel (getrandom(2)), of this child alone: what the zygote drew is the same in all of them.
    pub seed: [u8; 32],
}

/// A child as the server orders it. A spare gets the credentials as an [`AskedIdentity`]; the report and the connection come along.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) credentials: Credentials,
    /// The client's, whose next message is the request with its descriptors. The zygote has only looked at it, and keeps nothing of its
    /// words: the child takes them from here.
    pub(crate) connection: OwnedFd,
    /// Where it reports how far it came.
    pub(crate) report: OwnedFd,
}

/// What a child is forked with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) zygote: Pid,
    /// The signal mask that the zygote had before it began to serve.
    pub(crate) signals: SigSet,
    pub(crate) in_new_pid_namespace: bool,
}

/// A fork that failed.
#[derive(Debug)]
pub(crate) enum ForkError {
    /// There is no child; the next attempt may have one.
    NoChild(io::Error),
    /// Every further child would be in a wrong pid namespace.
    Fatal(Errno),
}

/// Forks, with the hooks. `None` in the child.
pub(crate) fn forked(program: &mut dyn Preloaded, in_new_pid_namespace: bool) -> Result<Option<Pid>, ForkError> {
    single_thread::require().map_err(ForkError::NoChild)?;
    // What is buffered would be written by each child once more.
    // SAFETY: null means all streams; this is the only thread.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    program.before_fork();
    let namespace = match in_new_pid_namespace.then(ChildrenInNewPidNamespace::begin).transpose() {
        Ok(namespace) => namespace,
        Err(error) => {
            program.after_fork_in_zygote();
            return Err(ForkError::NoChild(error));
        }
    };
    // SAFETY: this process has one thread, as was just seen, so nothing that the child needs is held by another.
    let result = unsafe { fork() };
    if let Ok(ForkResult::Child) = result {
        program.after_fork_in_child();
        return Ok(None);
    }
    let left = namespace.map_or(Ok(()), ChildrenInNewPidNamespace::end);
    program.after_fork_in_zygote();
    left.map_err(ForkError::Fatal)?;
    match result {
        Ok(ForkResult::Parent { child }) => Ok(Some(child)),
        Ok(ForkResult::Child) => Ok(None),
        Err(errno) => Err(ForkError::NoChild(errno.into())),
    }
}

/// The rest of a child's life.
pub(crate) fn live(order: Order, origin: Origin, program: &mut dyn Preloaded) -> ! {
    let code = catch_unwind(AssertUnwindSafe(|| match prepare(order, origin) {
        Ok(child) => child.map_or(0, |child| program.run(&child)),
        Err(code) => code,
    }));
    ended(code.unwrap_or(PANICKED))
}

/// The life of a spare: it waits for its order, or for the end of the zygote.
pub(crate) fn wait_for_order(channel: OwnedFd, origin: Origin, program: &mut dyn Preloaded) -> ! {
    let waited = catch_unwind(AssertUnwindSafe(|| {
        end_with(origin).ok()?;
        close_all_but(&[channel.as_raw_fd()]).ok()?;
        loop {
            match receive_packet(&channel, MOST_BYTES) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_readable(channel.as_fd()).ok()?,
                Err(_) | Ok(None) => return None,
                Ok(Some(packet)) => {
                    let AskedIdentity { uid, gid, groups } = decoded(&packet.bytes).ok()?;
                    let [report, connection] = <[OwnedFd; 2]>::try_from(packet.descriptors).ok()?;
                    return Some(Order { credentials: Credentials { uid, gid, groups }, connection, report });
                }
            }
        }
    }));
    match waited {
        Ok(Some(order)) => live(order, origin, program),
        Ok(None) => ended(0),
        Err(_) => ended(PANICKED),
    }
}

fn wait_readable(socket: BorrowedFd<'_>) -> nix::Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    match poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Ends the process without what the zygote registered to be done at its own end.
fn ended(code: i32) -> ! {
    // SAFETY: null means all streams; the child has the one thread that calls this, or those that its work has started and left.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: ends the process; no destructor of the zygote's frames, which this is a copy of, runs in it.
    unsafe { libc::_exit(code) }
}

/// A step that failed: which, and the error of the kernel; 0 where the kernel shows something else than what was asked for.
type Failed = (Step, i32);

fn at<E: Into<io::Error>>(step: Step) -> impl FnOnce(E) -> Failed {
    move |error| (step, error.into().raw_os_error().unwrap_or(0))
}

/// Makes the process what was ordered. `Ok(None)`: it was a probe, which is done.
///
/// # Errors
/// The exit code, after the report.
fn prepare(order: Order, origin: Origin) -> Result<Option<Child>, i32> {
    let Order { credentials, connection, mut report } = order;
    let done = asked(connection).map_err(at(Step::Descriptors)).and_then(|(spawn, descriptors)| {
        let seed = identify(&spawn, &credentials, descriptors, &mut report, origin)?;
        Ok((spawn, seed))
    });
    let mut channel = File::from(report);
    let (spawn, seed) = match done {
        Ok(done) => done,
        Err((step, errno)) => {
            let [a, b, c, d] = errno.to_le_bytes();
            let _ = channel.write_all(&[step as u8 + 1, a, b, c, d]);
            return Err(1);
        }
    };
    let filter = spawn.filter.as_ref();
    let program = filter.map(|filter| Program::from_bytes(&filter.program.0)).transpose().ok().flatten();
    let _ = channel.write_all(&[0]);
    // The filter may forbid to close it; whether there is a filter, the zygote sees from outside.
    drop(channel);
    if let (Some(filter), Some(program)) = (filter, program) {
        let speculation = if filter.allow_speculation { Speculation::Allowed } else { Speculation::AsTheKernelLikes };
        install(&program, speculation).map_err(|error| error.raw_os_error().unwrap_or(1))?;
    }
    if spawn.probe {
        probe();
        return Ok(None);
    }
    Ok(Some(Child { arguments: spawn.arguments, environment: spawn.environment, seed }))
}

/// Drawn before the filter, which may forbid it.
fn draw() -> io::Result<[u8; 32]> {
    let mut seed = [0u8; 32];
    // SAFETY: the kernel writes at most as many bytes as there are. Up to 256 bytes come whole (getrandom(2)).
    let drawn = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    match usize::try_from(drawn) {
        Ok(32) => Ok(seed),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The steps up to the filter.
fn identify(
    spawn: &SpawnRequest,
    credentials: &Credentials,
    descriptors: Vec<OwnedFd>,
    report: &mut OwnedFd,
    origin: Origin,
) -> Result<[u8; 32], Failed> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&origin.signals), None).map_err(at(Step::Session))?;
    setsid().map_err(at(Step::Session))?;
    if getsid(None).map_err(at(Step::Session))? != getpid() {
        return Err((Step::Session, 0));
    }
    namespaces::enter(&spawn.namespaces).map_err(at(Step::Namespaces))?;
    place(&spawn.descriptors, descriptors, report).map_err(at(Step::Descriptors))?;
    let mut credentials = credentials.clone();
    if spawn.namespaces.contains(&Namespace::User) {
        // Groups cannot be changed there, and those that are not mapped read as the overflow group.
        credentials.groups = Credentials::of_this_process().map_err(at(Step::Identity))?.groups;
    }
    drop_to(&credentials).map_err(|error| match error {
        CredentialsError::Refused { source, .. } => at(Step::Identity)(source),
        CredentialsError::NoId(_) | CredentialsError::NotTaken { .. } => (Step::Identity, 0),
    })?;
    // A change of identity forgets the signal, so it comes after.
    end_with(origin).map_err(at(Step::EndWithZygote))?;
    // As an exec leaves it: else files in /proc/self belong to root after a change of identity.
    prctl::set_dumpable(true).map_err(at(Step::EndWithZygote))?;
    set_environment(spawn).map_err(at(Step::Environment))?;
    let seed = draw().map_err(at(Step::Environment))?;
    forbid_new_privileges().map_err(at(Step::NoNewPrivileges))?;
    match prctl::get_no_new_privs() {
        Ok(true) => Ok(seed),
        Ok(false) => Err((Step::NoNewPrivileges, 0)),
        Err(errno) => Err((Step::NoNewPrivileges, errno as i32)),
    }
}

/// The process ends with the zygote.
fn end_with(origin: Origin) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // It may be gone already, and then no signal comes. From inside a pid namespace of its own it has no number.
    let parent = if origin.in_new_pid_namespace { Pid::from_raw(0) } else { origin.zygote };
    if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Receives what the client asked for, with as many descriptors as it announced.
fn asked(connection: OwnedFd) -> io::Result<(SpawnRequest, Vec<OwnedFd>)> {
    let errno = |number: i32| Err(io::Error::from_raw_os_error(number));
    match receive_packet(&connection, MOST_BYTES)? {
        // There is no number free for one.
        Some(packet) if packet.is_cut => errno(libc::EMFILE),
        Some(Packet { bytes, descriptors, .. }) => match request(&bytes) {
            // The same that the zygote decided by: nobody else takes messages from there.
            Ok(FromClient::Spawn(spawn)) if spawn.descriptors.len() == descriptors.len() => Ok((*spawn, descriptors)),
            _ => errno(libc::EBADMSG),
        },
        None => errno(libc::ENOTCONN),
    }
}

/// Gives each descriptor its number, the rest of the standard ones `/dev/null`, and closes all others but the report's.
fn place(numbers: &[u32], given: Vec<OwnedFd>, report: &mut OwnedFd) -> io::Result<()> {
    let kept: Vec<RawFd> = given.iter().chain([&*report]).map(AsRawFd::as_raw_fd).collect();
    close_all_but(&kept)?;
    // Out of the way of every number that is asked for.
    let above = numbers.iter().copied().max().unwrap_or(0).max(2).cast_signed() + 1;
    let moved = |from: &OwnedFd| -> io::Result<OwnedFd> {
        let to = fcntl(from, FcntlArg::F_DUPFD_CLOEXEC(above))?;
        // SAFETY: the kernel has just made it for this process.
        Ok(unsafe { OwnedFd::from_raw_fd(to) })
    };
    *report = moved(report)?;
    let given = given.into_iter().map(|one| moved(&one)).collect::<io::Result<Vec<_>>>()?;
    let null = moved(&open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?)?;
    let standard = (0..3u32).filter(|number| !numbers.contains(number)).map(|number| (number, &null));
    for (number, from) in numbers.iter().copied().zip(&given).chain(standard) {
        // SAFETY: takes integers. The new number is not one that this process owns: only those above are open, and the standard ones,
        // which are to be replaced. Unlike `given` it stays open at an exec.
        if unsafe { libc::dup2(from.as_raw_fd(), number.cast_signed()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn set_environment(spawn: &SpawnRequest) -> io::Result<()> {
    for word in &spawn.environment {
        let Some(at) = word.0.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (OsStr::from_bytes(&word.0[..at]), OsStr::from_bytes(&word.0[at + 1..]));
        // SAFETY: this thread is the only one, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
    let Some(first) = spawn.arguments.first() else { return Ok(()) };
    let base = first.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    // The kernel takes 15 bytes of it.
    match CString::new(base) {
        Ok(name) if !base.is_empty() => Ok(prctl::set_name(&name)?),
        _ => Ok(()),
    }
}

/// Says that the process is ready, with its pid, and again for each byte that comes, until nobody wants it any more. For measurements; the
/// descriptor is 3.
pub(crate) fn probe() {
    // SAFETY: descriptor 3 is one that this process was given for that.
    let mut channel = unsafe { File::from_raw_fd(3) };
    let mut byte = [0u8; 1];
    while channel.write_all(&std::process::id().to_ne_bytes()).is_ok() && channel.read_exact(&mut byte).is_ok() {}
}

//! The caller's side of a launch: starts the launcher, keeps the conversation with it, calls the hooks.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::launcher::Order;
use crate::wire::{self, EndCause, Ended, ExecFailure, FromLauncher, Received, ToLauncher};
use crate::{
    EndPolicy, ExecError, Hooks, LaunchError, LaunchOutcome, LaunchSpec, Launcher, LeftOut, LeftOutReason, ReadyWhen,
    StopReason, ready_page, sys,
};

/// The first argument with which the calling program starts itself as the launcher.
pub const LAUNCHER_ARGUMENT: &str = "__launcher";

/// How often [`Hooks::on_tick`] is called: a ring buffer of a few MiB does not fill up in that time, and one wake-up
/// in 20 ms costs the target nothing measurable.
const TICK: Duration = Duration::from_millis(20);
/// The kernel may take this much longer to take down a pid namespace than the launcher was allowed to.
const GRACE: Duration = Duration::from_secs(2);

/// The program that becomes the launcher: it must call [`crate::launcher_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherProgram {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments; the numbers of two descriptors are appended.
    pub args: Vec<OsString>,
}

impl LauncherProgram {
    /// The calling program itself, with [`LAUNCHER_ARGUMENT`].
    pub fn this_program() -> Self {
        LauncherProgram { path: "/proc/self/exe".into(), args: vec![LAUNCHER_ARGUMENT.into()] }
    }
}

/// Launches real processes. A launcher whose launch needed nothing of its own around it (see [`can_stay`]) stays for the
/// next such launch, until this is dropped.
#[derive(Debug)]
pub struct ProcessLauncher {
    program: LauncherProgram,
    kept: Option<Running>,
}

/// Whether a launcher can make another launch after this one: namespaces, mounts and cgroups are entered once, and a
/// target that lives on keeps its observer.
fn can_stay(spec: &LaunchSpec) -> bool {
    spec.within.is_none()
        && spec.mounts.is_empty()
        && !spec.pid_namespace
        && spec.cgroups.is_empty()
        && spec.end == EndPolicy::KillTree
}

impl ProcessLauncher {
    /// A launcher that starts `program`.
    pub fn new(program: LauncherProgram) -> Self {
        ProcessLauncher { program, kept: None }
    }

    /// A launcher that works on `order`: the one kept, or a new one.
    fn running(&mut self, order: &NewOrder<'_>) -> Result<Running, LaunchError> {
        match self.kept.take_if(|_| order.stays) {
            // One that was killed since its last launch does not take the order, and is replaced.
            Some(kept) if kept.give(order).is_ok() => Ok(kept),
            _ => self.start(order),
        }
    }

    fn start(&self, order: &NewOrder<'_>) -> Result<Running, LaunchError> {
        let failed = |context: &str| {
            let context = context.to_owned();
            move |source: io::Error| LaunchError::Channel { context, source }
        };
        let (main, launchers) = wire::channel().map_err(failed("socket pair"))?;
        let sealed = wire::encoded(order).and_then(|bytes| wire::sealed(&bytes));
        let orders = sealed.map_err(failed("specification"))?;
        let (socket, file) = (launchers.as_raw_fd(), orders.as_raw_fd());
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.args).arg(socket.to_string()).arg(file.to_string());
        // SAFETY: between fork and exec only fcntl(2) is called, on descriptors that stay open until after the spawn.
        unsafe {
            command.pre_exec(move || {
                for fd in [socket, file] {
                    if libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            })
        };
        let spawned = command.spawn();
        let child = spawned.map_err(|source| LaunchError::Spawn { program: self.program.path.clone(), source })?;
        Ok(Running { child, channel: Some(main) })
    }
}

/// What the caller's specification becomes.
type NewOrder<'a> = Order<&'a LaunchSpec>;

/// A started guardian. Dropped early (a hook panicked), it closes the channel, which ends the launch, and waits.
#[derive(Debug)]
struct Running {
    child: Child,
    channel: Option<OwnedFd>,
}

impl Running {
    /// The next order, to a launcher that waits for it.
    fn give(&self, order: &NewOrder<'_>) -> io::Result<()> {
        self.channel.as_ref().map_or(Ok(()), |channel| wire::send_order(channel, order))
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.channel = None;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

/// What main has heard so far.
#[derive(Default)]
struct Heard {
    observer: Option<OwnedFd>,
    url: Option<String>,
    pid: Option<i32>,
    ready_at: Option<u64>,
    failure: Option<LaunchError>,
    observer_died: Option<(String, Vec<i32>)>,
    ended: Option<Ended>,
    stop_sent: bool,
    left_out: Vec<(usize, LeftOutReason)>,
}

impl Launcher for ProcessLauncher {
    fn launch(&mut self, spec: &LaunchSpec, hooks: &mut dyn Hooks) -> Result<LaunchOutcome, LaunchError> {
        spec.validate()?;
        let page = match &spec.ready {
            ReadyWhen::Browser { page: Some(path) } => {
                Some(ready_page::of(path, &spec.identity).map_err(LaunchError::InvalidSpec)?)
            }
            _ => None,
        };
        // In a namespace of its own the target has another pid for the observer than for main: the target reports it itself.
        let (follows, stays) = (hooks.follows() || spec.pid_namespace, can_stay(spec));
        let order = Order { spec, page, main: std::process::id() as i32, follows, stays };
        let mut running = self.running(&order)?;
        drop(order);
        let mut heard = Heard::default();
        if let Some(channel) = &running.channel {
            heard.converse(channel, hooks, stays)?;
        }
        if stays && heard.has_ended_cleanly() {
            self.kept = Some(running);
            return heard.conclude(spec, None);
        }
        let status = running.wait().map_err(|source| LaunchError::Channel { context: "wait".into(), source })?;
        if spec.end == EndPolicy::KillTree || spec.pid_namespace {
            heard.wait_for_observer(spec.kill_timeout + GRACE)?;
        }
        heard.conclude(spec, Some(status))
    }
}

impl Heard {
    /// Until the launcher has closed its end or, when it stays, the launch has ended.
    fn converse(&mut self, channel: &OwnedFd, hooks: &mut dyn Hooks, stays: bool) -> Result<(), LaunchError> {
        let mut next_tick = Instant::now() + TICK;
        loop {
            let left = next_tick.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
            let mut waits = vec![PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
            waits.extend(hooks.wakes().map(|wakes| PollFd::new(wakes, PollFlags::POLLIN)));
            let _ = poll(&mut waits, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            let wakes = waits.get(1).and_then(PollFd::any).unwrap_or(false);
            if wakes {
                hooks.on_wake();
            }
            loop {
                match wire::receive::<FromLauncher>(channel) {
                    Ok(Some(Received { message, sender, .. })) if !message.may_come_from(sender) => {
                        let source = io::Error::from_raw_os_error(libc::EPERM);
                        let context = format!("process {} of user {} wrote to it", sender.pid, sender.uid);
                        return Err(LaunchError::Channel { context, source });
                    }
                    Ok(Some(Received { message, sender, file })) => {
                        self.take(message, (sender.pid, file), channel, hooks);
                        // Nothing comes after it.
                        if stays && self.has_ended_cleanly() {
                            return Ok(());
                        }
                    }
                    Ok(None) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(source) => return Err(LaunchError::Channel { context: "receive".into(), source }),
                }
            }
            if Instant::now() >= next_tick {
                hooks.on_tick();
                next_tick = Instant::now() + TICK;
            }
            if hooks.interrupted() {
                // A send that fails shows as the end of the channel.
                let _ = wire::send(channel, &ToLauncher::<()>::Interrupt);
            }
            if hooks.stop_requested() {
                self.stop(channel);
            }
        }
    }

    /// Whether the launch is over and the launcher can make another.
    fn has_ended_cleanly(&self) -> bool {
        self.ended.as_ref().is_some_and(Ended::leaves_nothing)
    }

    /// `sender`: its pid, and the descriptor that it sent along.
    fn take(
        &mut self,
        message: FromLauncher,
        (sender, file): (i32, Option<File>),
        channel: &OwnedFd,
        hooks: &mut dyn Hooks,
    ) {
        match message {
            FromLauncher::Observing { url } => {
                self.observer = sys::pidfd_open(sender).ok();
                self.url = url;
                if let Some(socket) = file {
                    hooks.on_devtools(socket.into());
                }
            }
            // It waits once.
            FromLauncher::Prepared if self.pid.is_some() => {}
            FromLauncher::Prepared => {
                self.pid = Some(sender);
                match hooks.before_release(sender) {
                    // A send that fails shows as the end of the channel.
                    Ok(()) => drop(wire::send(channel, &ToLauncher::<()>::Release)),
                    Err(error) => {
                        self.failure.get_or_insert(LaunchError::Hook(error));
                        self.stop(channel);
                    }
                }
            }
            FromLauncher::LeftOut { steps } => self.left_out.extend(steps),
            FromLauncher::SetupFailed { stage, errno } => {
                let source = io::Error::from_raw_os_error(errno);
                self.failure.get_or_insert(LaunchError::Setup { stage, source });
            }
            FromLauncher::Released { at } => {
                hooks.on_released(at);
            }
            FromLauncher::ExecFailed { failure, errno, program } => {
                self.failure.get_or_insert(exec_error(failure, errno, program).into());
            }
            FromLauncher::Ready { at } => {
                self.ready_at = Some(at);
                hooks.on_ready(at);
            }
            FromLauncher::Ended(ended) => self.ended = Some(*ended),
            FromLauncher::ObserverDied { how, survivors } => self.observer_died = Some((how, survivors)),
        }
    }

    fn stop(&mut self, channel: &OwnedFd) {
        if !std::mem::replace(&mut self.stop_sent, true) {
            let _ = wire::send(channel, &ToLauncher::<()>::Stop);
        }
    }

    /// Until the observer is gone: as the init of a pid namespace it is not gone before everything in it.
    fn wait_for_observer(&self, limit: Duration) -> Result<(), LaunchError> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut waits = [PollFd::new(observer.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waits, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
                Ok(0) => return Err(LaunchError::TreeSurvived { detail: "its observer has not ended".into() }),
                Ok(_) => return Ok(()),
                Err(_) => {}
            }
        }
    }

    /// `status`: of the guardian, which has ended unless it stays.
    fn conclude(self, spec: &LaunchSpec, status: Option<ExitStatus>) -> Result<LaunchOutcome, LaunchError> {
        let died = |detail: String| LaunchError::LauncherDied { detail };
        let (how, survivors) = self.observer_died.unzip();
        let survivors = survivors.or(self.ended.as_ref().map(|ended| ended.survivors.clone())).unwrap_or_default();
        if !survivors.is_empty() {
            let detail = format!("{survivors:?} are left after {:?}", spec.kill_timeout);
            return Err(LaunchError::TreeSurvived { detail });
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Some(ended) = self.ended else {
            let status = status.map(|status| format!("the guardian ended with {status}")).unwrap_or_default();
            return Err(died(how.unwrap_or(status)));
        };
        let stop = match ended.stop {
            EndCause::Stop(stop) => stop,
            EndCause::GuardianDied => return Err(died("the guardian was killed".into())),
            EndCause::NeverReleased => return Err(died("the command was killed before its start".into())),
        };
        // The pid as main knows it, where it was reported: the observer's may be one of another namespace.
        let (Some(pid), Some(released_at)) = (self.pid.or(Some(ended.pid)), ended.released_at) else {
            return Err(match stop {
                StopReason::Requested => LaunchError::StoppedBeforeStart,
                _ => died("no release was reported".into()),
            });
        };
        let left_out = self.left_out.into_iter().filter_map(|(index, reason)| {
            let path = spec.mounts.get(index)?.at().to_path_buf();
            Some(LeftOut { path, reason })
        });
        let left_out = left_out.collect();
        Ok(LaunchOutcome {
            pid,
            released_at,
            ready_at: ended.ready_at.or(self.ready_at),
            resolution: spec.ready.resolution(),
            stop,
            exit: ended.exit,
            usage: ended.usage,
            first_thread: ended.first_thread,
            groups: ended.groups,
            memory: ended.memory,
            stdout_tail: ended.stdout_tail,
            stderr_tail: ended.stderr_tail,
            url: self.url.or(ended.url),
            left_out,
        })
    }
}

fn exec_error(failure: ExecFailure, errno: i32, program: String) -> ExecError {
    let source = io::Error::from_raw_os_error(errno);
    match failure {
        ExecFailure::NotFound => ExecError::NotFound { program },
        ExecFailure::MissingInterpreter => ExecError::MissingInterpreter { program },
        ExecFailure::NotExecutable => ExecError::NotExecutable { program, source },
        ExecFailure::PermissionDenied => ExecError::PermissionDenied { program, source },
        ExecFailure::Other => ExecError::Other { program, source },
    }
}

//! A private bus: a dbus-daemon with a configuration of its own, on an abstract socket, which ends with the process that started it.
//!
//! No file is made: the configuration is a memfd, the socket has no name in the file system and goes with the daemon.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::getppid;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The daemon of D-Bus's reference implementation.
const DAEMON: &str = "dbus-daemon";
/// Where it is. Root looks nowhere else: a directory of PATH may be somebody's.
const DIRECTORIES: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// The daemon's program.
fn program() -> io::Result<PathBuf> {
    let found = DIRECTORIES.iter().map(|directory| Path::new(directory).join(DAEMON)).find(|path| path.exists());
    match found {
        Some(program) => Ok(program),
        None if !nix::unistd::geteuid().is_root() => Ok(PathBuf::from(DAEMON)),
        None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no {DAEMON} in {}", DIRECTORIES.join(", ")))),
    }
}
/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// Name of an abstract socket that nobody can guess.
#[derive(Clone, Debug)]
pub(crate) struct Address(String);

impl Address {
    /// A new one.
    pub(crate) fn fresh() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("slowpath-ipc-bus-{digits}")))
    }

    /// Connects to the bus at it, if that is one of this user.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(&self.0)?)?;
        let peer = getsockopt(&stream, PeerCredentials)?;
        if peer.uid() != nix::unistd::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the bus is another user's"));
        }
        Ok(stream)
    }

    fn configuration(&self) -> String {
        format!(
            "<busconfig><type>session</type><listen>unix:abstract={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\"/>\
             <allow receive_sender=\"*\"/><allow own=\"*\"/></policy></busconfig>",
            self.0
        )
    }
}

/// A running daemon; ended when dropped, and by the kernel when this process is killed.
#[derive(Debug)]
pub(crate) struct Bus(Child);

impl Bus {
    /// Starts one that listens when this returns.
    ///
    /// # Errors
    /// There is no dbus-daemon, or it does not listen.
    pub(crate) fn start(address: &Address) -> io::Result<Self> {
        let mut configuration = memory_file()?;
        configuration.write_all(address.configuration().as_bytes())?;
        let own = nix::unistd::getpid();
        let mut command = Command::new(program()?);
        command
            .arg(format!("--config-file=/proc/self/fd/{}", configuration.as_raw_fd()))
            .args(["--nofork", "--print-address"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let inherited = configuration.as_raw_fd();
        let bound = move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // SAFETY: a descriptor that is open in both processes; no pointers. The daemon reads its configuration from it.
            if unsafe { libc::fcntl(inherited, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
            // This process may be gone already, and then no signal would come.
            if getppid() == own { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        };
        // SAFETY: three system calls and no allocation, between fork and exec.
        unsafe { command.pre_exec(bound) };
        let daemon = command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{DAEMON}: {error}")))?;
        let mut bus = Self(daemon);
        // It prints where it listens, and then closes nothing: one byte says that it does.
        if let Some(told) = &mut bus.0.stdout {
            await_readable(told)?;
            if told.read(&mut [0; 256])? == 0 {
                let ended = bus.0.wait()?;
                return Err(io::Error::other(format!("{DAEMON} ended with {ended}")));
            }
        }
        Ok(bus)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name ends with NUL and is alive.
    let raw = unsafe { libc::memfd_create(c"slowpath-ipc-bus".as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and is ours alone.
    Ok(unsafe { File::from_raw_fd(raw) })
}

fn await_readable(from: &impl std::os::fd::AsFd) -> io::Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], left) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{DAEMON} does not listen"))),
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

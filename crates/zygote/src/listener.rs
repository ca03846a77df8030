//! The socket that clients connect to: made, inherited from whoever started the process, and removed.

use crate::c_strings::c_path;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, connect, getsockopt, listen, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;
use slowpath_process::trusted_directory;
use std::env;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first descriptor that is handed over (sd_listen_fds(3), `SD_LISTEN_FDS_START`).
pub const FIRST_INHERITED: RawFd = 3;

/// Connections that wait until they are accepted (`net.core.somaxconn` bounds it).
const BACKLOG: i32 = 1024;

/// How long a connection may wait for a place among these: whoever listens at a path can be anybody, and need not accept any.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else listens there.
    #[error("another process listens at {}: end it, or choose another path", .0.display())]
    InUse(PathBuf),
    /// What is there is no socket.
    #[error("{} is not a socket, and is left as it is", .0.display())]
    NotASocket(PathBuf),
    /// It cannot be made.
    #[error("cannot create a socket at {}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What was handed over is no listening `SOCK_SEQPACKET` socket.
    #[error("descriptor 3, which LISTEN_FDS hands over, is not a listening socket of type SOCK_SEQPACKET: {0}")]
    Inherited(&'static str),
}

/// A socket at a path, which is removed with this value if it is still the same.
#[derive(Debug)]
pub struct Bound {
    socket: OwnedFd,
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Bound {
    /// Makes it. Whoever can reach the path can connect; who may ask, the policy says for each. A socket of a zygote that is gone is
    /// replaced.
    ///
    /// # Errors
    /// [`ListenError`]. Root makes it only where nobody else could replace it.
    pub fn at(path: &Path) -> Result<Self, ListenError> {
        let refused = |source: io::Error| ListenError::Refused { path: path.to_owned(), source };
        if nix::unistd::geteuid().is_root() {
            let parent = path.parent().filter(|_| path.is_absolute());
            let parent = parent.ok_or_else(|| refused(io::Error::other("root takes an absolute path")))?;
            trusted_directory(parent).map_err(refused)?;
        }
        remove_stale(path)?;
        // It gets its name when it listens: whoever sees it can connect.
        let hidden = path.with_file_name(format!(".zygote-{}", std::process::id()));
        let made = listening(&hidden).and_then(|socket| named(&hidden, path).map(|()| socket));
        match made {
            Ok(socket) => Ok(Self { socket, path: path.to_owned(), identity: identity_of(path) }),
            Err(error) => {
                let _ = fs::remove_file(&hidden);
                match error.kind() {
                    io::ErrorKind::AlreadyExists => Err(ListenError::InUse(path.to_owned())),
                    _ => Err(refused(error)),
                }
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket itself.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.identity.is_some() && identity_of(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A socket that listens at a path.
fn listening(path: &Path) -> io::Result<OwnedFd> {
    let _ = fs::remove_file(path);
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let made = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    bind(made.as_raw_fd(), &UnixAddr::new(path)?)?;
    // The policy decides, not the mode: whoever is refused is answered so.
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    listen(&made, Backlog::new(BACKLOG)?)?;
    Ok(made)
}

/// Gives a file another name, at which there must be nothing.
fn named(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: two strings that live until the call returns.
    let done =
        unsafe { libc::renameat2(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::RENAME_NOREPLACE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| (found.dev(), found.ino()))
}

fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let refused = |source: io::Error| ListenError::Refused { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NotASocket(path.to_owned())),
        Ok(_) => {}
    }
    match connected(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(refused),
        Err(error) if error.kind() != io::ErrorKind::TimedOut => Err(refused(error)),
        _ => Err(ListenError::InUse(path.to_owned())),
    }
}

/// A connection to the zygote that listens at a path.
///
/// # Errors
/// `TimedOut` where somebody listens and accepts nobody; what connect(2) says otherwise.
pub(crate) fn connected(path: &Path) -> io::Result<OwnedFd> {
    let made = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
    let address = UnixAddr::new(path)?;
    let until = Instant::now() + PATIENCE;
    loop {
        // Bounds connect(2) too (unix_stream_connect() in net/unix/af_unix.c); 0 would be no bound. Not a nonblocking socket: those that
        // wait in the kernel take turns, and one that looks now and then finds the place taken.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        setsockopt(&made, sockopt::SendTimeout, &TimeVal::new(left.as_secs() as i64, left.subsec_micros().into()))?;
        match connect(made.as_raw_fd(), &address) {
            Ok(()) => return Ok(made),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let why = format!("whoever listens there accepted no connection within {} s", PATIENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Accepts a connection.
///
/// # Errors
/// `WouldBlock` where there is none; what accept(2) says otherwise.
pub(crate) fn accepted(listener: impl AsFd) -> io::Result<OwnedFd> {
    let fd = accept4(listener.as_fd().as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?;
    // SAFETY: the kernel has just made it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The socket that whoever started this process hands over (sd_listen_fds(3)): a service manager, or `slowpath zygote serve`. `None` where
/// it hands over none. Takes the variables away, so that no child takes it for its own.
///
/// # Errors
/// [`ListenError::Inherited`].
pub fn inherited() -> Result<Option<OwnedFd>, ListenError> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let (pid, count) = (number("LISTEN_PID"), number("LISTEN_FDS"));
    if pid != Some(std::process::id()) || count.is_none_or(|count| count == 0) {
        return Ok(None);
    }
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
        // SAFETY: a zygote has one thread, which nobody but this has.
        unsafe { env::remove_var(name) };
    }
    // SAFETY: whoever set the variables hands this descriptor over to this process; a closed one is answered with an error below.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST_INHERITED) };
    let is = |value: nix::Result<bool>, why| match value {
        Ok(true) => Ok(()),
        _ => Err(ListenError::Inherited(why)),
    };
    is(getsockopt(&socket, sockopt::SockType).map(|kind| kind == SockType::SeqPacket), "another type")?;
    is(getsockopt(&socket, sockopt::AcceptConn), "it does not listen")?;
    let flags = nix::fcntl::OFlag::O_NONBLOCK;
    let set = nix::fcntl::fcntl(&socket, nix::fcntl::FcntlArg::F_SETFL(flags));
    let closed = nix::fcntl::fcntl(&socket, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC));
    is(set.and(closed).map(|_| true), "its flags cannot be set")?;
    Ok(Some(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_goes_with_its_value_and_a_stale_one_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let bound = Bound::at(&path).unwrap();
        assert!(matches!(Bound::at(&path), Err(ListenError::InUse(_))));
        connected(bound.path()).unwrap();
        drop(bound);
        assert!(!path.exists());
        // As a killed zygote leaves it.
        let mut killed = Bound::at(&path).unwrap();
        killed.identity = None;
        drop(killed);
        assert!(path.exists());
        drop(Bound::at(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(matches!(Bound::at(&path), Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn what_stands_there_in_the_meantime_is_not_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let bound = Bound::at(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let other = Bound::at(&path).unwrap();
        drop(bound);
        assert!(path.exists());
        drop(other);
    }

    /// What a thread comes to, if it does while a test has patience.
    fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(work()));
        receiver.recv_timeout(PATIENCE * 6).expect("it does not wait for ever")
    }

    #[test]
    fn who_listens_and_accepts_nobody_holds_no_client_and_no_zygote_for_ever() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let full = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(full.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        // One connection waits, and there is room for no other.
        listen(&full, Backlog::new(0).unwrap()).unwrap();
        let _waits = connected(&path).unwrap();
        let (asked, served) = (path.clone(), path.clone());
        let error = soon(move || connected(&asked).unwrap_err());
        assert!(error.kind() == io::ErrorKind::TimedOut && error.to_string().contains("within 5 s"), "{error}");
        let error = soon(move || Bound::at(&served).unwrap_err());
        assert!(matches!(error, ListenError::InUse(_)), "{error}");
        // A place that becomes free in time is taken.
        let waiting = std::thread::spawn(move || connected(&path));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished());
        accepted(&full).unwrap();
        soon(|| waiting.join().unwrap().unwrap());
    }

    #[test]
    fn root_binds_nowhere_that_others_can_change() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root is refused");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Bound::at(&place.path().join("s")), Err(ListenError::Refused { .. })));
        assert!(matches!(Bound::at(Path::new("s")), Err(ListenError::Refused { .. })));
    }
}

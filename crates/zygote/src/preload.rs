//! What is preloaded, and the program that does it: the *template*, which `slowpath zygote serve` starts with the listening socket, as a
//! service manager would (sd_listen_fds(3)).

use crate::c_strings::c_string;
use crate::listener::FIRST_INHERITED;
use crate::readiness;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{ForkResult, dup2_raw, execve, fork, getpid, getppid, pipe2, setsid};
use slowpath_process::close_all_but;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The function of a library that children call, unless another is named.
pub const ENTRY: &str = "slowpath_zygote_main";

/// The first argument of a process that is to be the template of a shared library ([`crate::template`]).
pub const LIBRARY_ARGUMENT: &str = "--zygote-library";

/// The Python module: what `python:` templates run, and what programs in Python import.
pub const PYTHON_MODULE: &str = include_str!("../python/slowpath_zygote.py");

/// The file name of the shared library that the Python module loads.
pub const SHARED_LIBRARY: &str = "libslowpath_zygote_c.so";

/// Where a template finds what is handed to it.
const READY: i32 = FIRST_INHERITED + 1;
const MODULE: i32 = FIRST_INHERITED + 2;

/// What the interpreter executes: the module from a descriptor, so that it needs no place on the disk.
const BOOTSTRAP: &str = "import os, sys, types
module = types.ModuleType('slowpath_zygote')
with os.fdopen(5, encoding='utf-8') as source:
    code = compile(source.read(), 'slowpath_zygote.py', 'exec')
sys.modules['slowpath_zygote'] = module
exec(code, module.__dict__)
module._template(sys.argv[1:])
";

/// Variables that keep libraries of linear algebra from starting threads when they are loaded, with which no fork is safe, but for those that
/// are set already. What is preloaded by [`Preload::Python`] has them.
pub fn single_threaded(is_set: impl Fn(&OsStr) -> bool) -> Vec<(OsString, OsString)> {
    let names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"];
    names.into_iter().filter(|name| !is_set(OsStr::new(name))).map(|name| (name.into(), "1".into())).collect()
}

/// What is preloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preload {
    /// A shared library. Its function `slowpath_zygote_preload` is called once, if there is one; children call the entry as a `main`.
    Library {
        /// Its path.
        path: PathBuf,
        /// The function that children call.
        entry: String,
    },
    /// Modules of Python. Children do what `python3 ARGS` does (`-c CODE`, `-m MODULE`, a file), or call a function.
    Python {
        /// The interpreter by its name, which is its first argument: a virtual environment is found by that.
        interpreter: PathBuf,
        /// What is executed: for root the file that was checked, by a path that only root can make lead elsewhere.
        program: PathBuf,
        /// What it imports.
        modules: Vec<String>,
        /// `MODULE:FUNCTION`, called with the arguments; none: as `python3 ARGS`.
        entry: Option<String>,
        /// [`SHARED_LIBRARY`].
        library: PathBuf,
    },
    /// A program that serves by itself, with this library or its C header, on the socket that it is handed.
    Helper {
        /// Its path.
        path: PathBuf,
    },
}

impl Preload {
    /// Its program and the arguments.
    fn command(&self, once: Option<&[OsString]>) -> io::Result<(PathBuf, Vec<OsString>)> {
        let words = match self {
            Self::Library { path, entry } => {
                let mut words: Vec<OsString> = vec![LIBRARY_ARGUMENT.into(), path.into(), entry.into()];
                words.extend(
                    once.into_iter().flat_map(|once| std::iter::once("once".into()).chain(once.iter().cloned())),
                );
                return Ok((env::current_exe()?, words));
            }
            Self::Python { program, modules, entry, .. } => {
                // The current directory is no place to import from, for root nor is what its variables name.
                let isolation = if nix::unistd::geteuid().is_root() { "-I" } else { "-P" };
                let mut words: Vec<OsString> = [isolation, "-c", BOOTSTRAP].map(OsString::from).to_vec();
                words.extend([modules.join(",").into(), entry.clone().unwrap_or_default().into()]);
                words.extend(
                    once.into_iter().flat_map(|once| std::iter::once("once".into()).chain(once.iter().cloned())),
                );
                (program.clone(), words)
            }
            Self::Helper { path } => {
                if once.is_some() {
                    return Err(io::Error::new(io::ErrorKind::Unsupported, "a helper starts by its own rules"));
                }
                (path.clone(), Vec::new())
            }
        };
        Ok(words)
    }

    /// Its name, the first argument of `program`.
    fn name(&self, program: &Path) -> OsString {
        match self {
            Self::Python { interpreter, .. } => interpreter.into(),
            _ => program.into(),
        }
    }

    /// The variables that it needs over those of the caller.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let Self::Python { library, .. } = self else { return Vec::new() };
        let mut own: Vec<(OsString, OsString)> = vec![("SLOWPATH_ZYGOTE_LIBRARY".into(), library.into())];
        own.extend(single_threaded(|name| env::var_os(name).is_some()));
        own
    }
}

/// Starts the program as it is without a zygote, by posix_spawn(3): it preloads, and is a probe (see [`crate::SpawnRequest::probe`]).
pub(crate) fn start_once(preload: &Preload, probe: &OwnedFd) -> io::Result<nix::unistd::Pid> {
    use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
    let (program, arguments) = preload.command(Some(&[]))?;
    let mut argv = vec![c_string(preload.name(&program))?];
    for word in arguments {
        argv.push(c_string(word)?);
    }
    let mut variables = variables(preload, &Handed { listener: None, policy: "" });
    variables.push((PROBE.into(), "1".into()));
    let environment = variables
        .into_iter()
        .map(|(name, value)| c_string([name, value].join(OsStr::new("="))))
        .collect::<io::Result<Vec<_>>>()?;
    let module = memory_file(PYTHON_MODULE)?;
    let mut actions = PosixSpawnFileActions::init()?;
    actions.add_dup2(probe.as_raw_fd(), FIRST_INHERITED)?;
    actions.add_dup2(module.as_raw_fd(), MODULE)?;
    Ok(posix_spawn(program.as_path(), &actions, &PosixSpawnAttr::init()?, &argv, &environment)?)
}

/// What a template is started with beside its own.
pub(crate) struct Handed<'a> {
    /// The listening socket; none for what does its work once, without a zygote.
    pub(crate) listener: Option<&'a OwnedFd>,
    /// The policy, as text.
    pub(crate) policy: &'a str,
}

/// A process that was started, and the pipe on which it says that it is ready.
pub(crate) struct Started {
    pub(crate) pid: nix::unistd::Pid,
    pub(crate) ready: OwnedFd,
}

/// Starts a template. It ends with the calling thread, by `SIGTERM`, so that it ends its children in order.
pub(crate) fn start(preload: &Preload, handed: &Handed<'_>) -> io::Result<Started> {
    let (program, arguments) = preload.command(None)?;
    let mut argv = vec![c_string(preload.name(&program))?];
    let program = c_string(program.into_os_string())?;
    for word in arguments {
        argv.push(c_string(word)?);
    }
    let variables = variables(preload, handed);
    let (ready, writer) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let module = memory_file(PYTHON_MODULE)?;
    let null = File::open("/dev/null")?;
    let first = handed.listener.map_or_else(|| null.as_raw_fd(), AsRawFd::as_raw_fd);
    let parent = getpid();
    // SAFETY: the child allocates, which glibc permits after a fork, and otherwise makes system calls until it executes a program or ends.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Started { pid: child, ready }),
        ForkResult::Child => {
            let failed = in_child(&program, &argv, variables, [first, writer.as_raw_fd(), module.as_raw_fd()], parent);
            eprintln!("slowpath: {} cannot be executed: {failed}", program.to_string_lossy());
            // SAFETY: ends the child; no destructor of the parent's frames runs in it.
            unsafe { libc::_exit(127) }
        }
    }
}

fn variables(preload: &Preload, handed: &Handed<'_>) -> Vec<(OsString, OsString)> {
    let own = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", readiness::POLICY, readiness::DESCRIPTOR];
    let kept = env::vars_os().filter(|(name, _)| !own.iter().any(|own| name == own));
    let mut variables: Vec<(OsString, OsString)> = kept.chain(preload.environment()).collect();
    if handed.listener.is_some() {
        variables.push(("LISTEN_FDS".into(), "1".into()));
        variables.push((readiness::POLICY.into(), handed.policy.into()));
        variables.push((readiness::DESCRIPTOR.into(), READY.to_string().into()));
    }
    variables
}

/// Says to a template that does its work once that it is a probe, as [`crate::SpawnRequest::probe`] says to a child.
pub const PROBE: &str = "SLOWPATH_ZYGOTE_PROBE";

/// Executes it. Returns only why not.
fn in_child(
    program: &CString,
    argv: &[CString],
    mut variables: Vec<(OsString, OsString)>,
    given: [i32; 3],
    parent: nix::unistd::Pid,
) -> io::Error {
    let prepare = || -> io::Result<Vec<CString>> {
        SigSet::empty().thread_set_mask()?;
        // Keys of the terminal are for the process that started it, which passes on what is meant for it.
        setsid()?;
        set_pdeathsig(Signal::SIGTERM)?;
        if getppid() != parent {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Out of the way of each other first.
        let high = given.map(|fd| {
            // SAFETY: takes integers.
            unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 64) }
        });
        for (fd, number) in high.into_iter().zip(FIRST_INHERITED..) {
            // SAFETY: borrowed for this call; a descriptor that could not be made is answered with an error.
            let from = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            // SAFETY: the result is left open for the program that is executed, and closed by nobody here.
            let placed = unsafe { dup2_raw(from, number) }?;
            std::mem::forget(placed);
        }
        close_all_but(&[FIRST_INHERITED, READY, MODULE])?;
        if variables.iter().any(|(name, _)| name == "LISTEN_FDS") {
            variables.push(("LISTEN_PID".into(), getpid().to_string().into()));
        }
        variables.into_iter().map(|(name, value)| c_string([name, value].join(OsStr::new("=")))).collect()
    };
    match prepare() {
        Err(error) => error,
        Ok(environment) => match execve(program, argv, &environment) {
            Ok(never) => match never {},
            Err(errno) => errno.into(),
        },
    }
}

fn memory_file(text: &str) -> io::Result<File> {
    use std::io::Seek;
    let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
    let mut file = File::from(nix::sys::memfd::memfd_create("slowpath_zygote.py", flags)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

//! From the words of the command line to what is preloaded. Root preloads only what nobody else could have written.

use crate::arguments::ZygotePreloadArguments;
use crate::failure::{Failure, Kind};
use slowpath_process::trusted_directory;
use slowpath_zygote::preload::{ENTRY, Preload, SHARED_LIBRARY};
use std::env;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn usage(text: String) -> Failure {
    Failure::new(Kind::Usage, text)
}

/// What is preloaded; by its full path.
pub(super) fn of(arguments: &ZygotePreloadArguments) -> Result<Preload, Failure> {
    let is_root = nix::unistd::geteuid().is_root();
    let preload = named(arguments, is_root)?;
    if is_root {
        for path in preload.files() {
            trusted(path).map_err(|error| {
                Failure::new(
                    Kind::Usage,
                    format!("root preloads nothing that others could have written: {}", path.display()),
                )
                .during(error.to_string())
                .hint("install it where only root can write, or run the zygote as another user (--user)")
            })?;
        }
    }
    Ok(preload)
}

fn named(arguments: &ZygotePreloadArguments, is_root: bool) -> Result<Preload, Failure> {
    let words = arguments.preload.as_bytes();
    let path = |bytes: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
        fs::canonicalize(path).map_err(|error| usage(format!("{} cannot be preloaded: {error}", path.display())))
    };
    if let Some(modules) = words.strip_prefix(b"python:") {
        let text = std::str::from_utf8(modules).map_err(|_| usage("names of modules are text".to_owned()))?;
        let modules: Vec<String> = text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let is_name = |name: &String| name.chars().all(|one| one.is_alphanumeric() || matches!(one, '_' | '.'));
        if modules.is_empty() || !modules.iter().all(is_name) {
            return Err(usage(format!("{text:?} are no modules such as numpy,pandas")));
        }
        let entry = arguments.entry.clone();
        if entry.as_ref().is_some_and(|entry| !entry.contains(':')) {
            return Err(usage("the entry of a Python zygote is MODULE:FUNCTION".to_owned()));
        }
        let interpreter = interpreter(arguments, is_root)?;
        return Ok(Preload::Python { interpreter, modules, entry, library: shared_library(is_root)? });
    }
    if arguments.python.is_some() {
        return Err(usage("--python goes with --preload python:MODULES".to_owned()));
    }
    match words.strip_prefix(b"exec:") {
        Some(_) if arguments.entry.is_some() => {
            Err(usage("a program has no --entry: it says itself what its children do".to_owned()))
        }
        Some(program) => Ok(Preload::Helper { path: path(program)? }),
        None => Ok(Preload::Library {
            path: path(words)?,
            entry: arguments.entry.clone().unwrap_or_else(|| ENTRY.to_owned()),
        }),
    }
}

/// The path of an interpreter is not resolved: a virtual environment is told from the system's by its link.
fn interpreter(arguments: &ZygotePreloadArguments, is_root: bool) -> Result<PathBuf, Failure> {
    let found = match (&arguments.python, is_root) {
        (Some(path), _) => Some(path.clone()),
        // No variable of the caller's decides what root executes.
        (None, true) => Some("/usr/bin/python3".into()),
        (None, false) => {
            let directories = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&directories).map(|directory| directory.join("python3")).find(|path| path.is_file())
        }
    };
    let found = found.ok_or_else(|| usage("there is no python3 in PATH; --python names one".to_owned()))?;
    std::path::absolute(&found)
        .ok()
        .filter(|path| path.is_file())
        .ok_or_else(|| usage(format!("there is no {}", found.display())))
}

/// The shared library that the Python module loads: beside this program, or where it is installed.
fn shared_library(is_root: bool) -> Result<PathBuf, Failure> {
    let given = env::var_os("SLOWPATH_ZYGOTE_LIBRARY").map(PathBuf::from).filter(|_| !is_root);
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|place| place.join(SHARED_LIBRARY));
    let installed = own.as_deref().and_then(Path::parent).map(|place| place.join("../lib").join(SHARED_LIBRARY));
    let found = [given, beside, installed].into_iter().flatten().find_map(|path| fs::canonicalize(path).ok());
    found.ok_or_else(|| {
        Failure::new(
            Kind::Machine,
            format!("there is no {SHARED_LIBRARY}, which Python loads, beside slowpath or in ../lib"),
        )
        .hint("cargo build --release -p slowpath-zygote-c makes it; SLOWPATH_ZYGOTE_LIBRARY names another place")
    })
}

/// A file that only root can change, in directories of which that is so; of a link both its own and those that it leads to.
pub(super) fn trusted(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or_else(|| io::Error::other("it has no directory"))?;
    trusted_directory(&fs::canonicalize(parent)?)?;
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() && found.uid() == 0 {
        return trusted(&fs::canonicalize(path)?);
    }
    match found.is_file() && found.uid() == 0 && found.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it can be changed by other users")),
    }
}

//! From the words of a user to what is preloaded. Root preloads only what nobody else could have written.

use crate::preload::{ENTRY, Preload, SHARED_LIBRARY};
use slowpath_process::trusted_file;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a user wants to be preloaded.
#[derive(Clone, Debug)]
pub struct PreloadWanted {
    /// A library, `python:MODULE,...`, or `exec:PROGRAM`.
    pub what: OsString,
    /// What children call.
    pub entry: Option<String>,
    /// The interpreter of Python.
    pub python: Option<PathBuf>,
}

/// Why nothing can be preloaded.
#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    /// What was asked for makes no sense, or is not there.
    #[error("{0}")]
    Wrong(String),
    /// Others could have written it.
    #[error("root preloads only files that no one else can write: {}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who could.
        #[source]
        source: io::Error,
    },
    /// The shared library that the Python module loads is missing.
    #[error("there is no {SHARED_LIBRARY}, which Python loads, beside slowpath or in ../lib")]
    NoLibrary,
}

impl PreloadError {
    /// What would help.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Wrong(_) => None,
            Self::Untrusted { .. } => {
                Some("install it where only root can write, or run the zygote as another user (--user)")
            }
            Self::NoLibrary => {
                Some("cargo build --release -p slowpath-zygote-c builds it; SLOWPATH_ZYGOTE_LIBRARY names another path")
            }
        }
    }
}

fn usage(text: String) -> PreloadError {
    PreloadError::Wrong(text)
}

impl Preload {
    /// What is preloaded; by its full path.
    ///
    /// # Errors
    /// There is no such thing, or root cannot trust it.
    pub fn of(wanted: &PreloadWanted) -> Result<Self, PreloadError> {
        named(wanted, nix::unistd::geteuid().is_root())
    }
}

/// The path by which root uses a file: without a link, and only root can make it lead elsewhere. Others use the path as it is.
fn checked(path: PathBuf, is_root: bool) -> Result<PathBuf, PreloadError> {
    match is_root {
        true => {
            trusted_file(&path).map(|trusted| trusted.path).map_err(|source| PreloadError::Untrusted { path, source })
        }
        false => Ok(path),
    }
}

fn named(wanted: &PreloadWanted, is_root: bool) -> Result<Preload, PreloadError> {
    let words = wanted.what.as_bytes();
    let path = |bytes: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
        let found = fs::canonicalize(path);
        let found = found.map_err(|error| usage(format!("{} cannot be preloaded: {error}", path.display())))?;
        checked(found, is_root)
    };
    if let Some(modules) = words.strip_prefix(b"python:") {
        let text = std::str::from_utf8(modules).map_err(|_| usage("names of modules are text".to_owned()))?;
        let modules: Vec<String> = text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let is_name = |name: &String| name.chars().all(|one| one.is_alphanumeric() || matches!(one, '_' | '.'));
        if modules.is_empty() || !modules.iter().all(is_name) {
            return Err(usage(format!("{text:?} are no modules such as numpy,pandas")));
        }
        let entry = wanted.entry.clone();
        if entry.as_ref().is_some_and(|entry| !entry.contains(':')) {
            return Err(usage("the entry of a Python zygote is MODULE:FUNCTION".to_owned()));
        }
        let interpreter = interpreter(wanted, is_root)?;
        let program = checked(interpreter.clone(), is_root)?;
        let library = checked(shared_library(is_root)?, is_root)?;
        return Ok(Preload::Python { interpreter, program, modules, entry, library });
    }
    if wanted.python.is_some() {
        return Err(usage("--python goes with --preload python:MODULES".to_owned()));
    }
    match words.strip_prefix(b"exec:") {
        Some(_) if wanted.entry.is_some() => {
            Err(usage("a program has no --entry: it decides itself what its children do".to_owned()))
        }
        Some(program) => Ok(Preload::Helper { path: path(program)? }),
        None => {
            Ok(Preload::Library { path: path(words)?, entry: wanted.entry.clone().unwrap_or_else(|| ENTRY.to_owned()) })
        }
    }
}

/// The name of an interpreter is not resolved: a virtual environment is distinguished from the system's by its link. What is executed under
/// this name is: [`checked`].
fn interpreter(wanted: &PreloadWanted, is_root: bool) -> Result<PathBuf, PreloadError> {
    let found = match (&wanted.python, is_root) {
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
fn shared_library(is_root: bool) -> Result<PathBuf, PreloadError> {
    let given = env::var_os("SLOWPATH_ZYGOTE_LIBRARY").map(PathBuf::from).filter(|_| !is_root);
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|place| place.join(SHARED_LIBRARY));
    let installed = own.as_deref().and_then(Path::parent).map(|place| place.join("../lib").join(SHARED_LIBRARY));
    let found = [given, beside, installed].into_iter().flatten().find_map(|path| fs::canonicalize(path).ok());
    found.ok_or(PreloadError::NoLibrary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn root_executes_no_interpreter_that_somebody_else_can_swap() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only a zygote of root's checks what it executes");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        ["theirs", "roots"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        chown(at("theirs"), Some(65534), Some(65534)).unwrap();
        let python = |python: PathBuf| {
            Preload::of(&PreloadWanted { what: "python:json".into(), entry: None, python: Some(python) })
        };
        // It leads to the system's at this moment.
        symlink("/usr/bin", at("theirs/bin")).unwrap();
        symlink("/usr/bin", at("roots/bin")).unwrap();
        let program = Path::new("bin/env");
        let refused = python(at("theirs").join(program));
        assert!(matches!(refused, Err(PreloadError::Untrusted { .. })), "{refused:?}");
        // A link of root's is kept as the name, and what it leads to is executed. The library of Python may not be built here.
        match python(at("roots").join(program)) {
            Ok(Preload::Python { interpreter, program: executed, .. }) => {
                assert_eq!(interpreter, at("roots").join(program));
                assert_eq!(executed, fs::canonicalize("/usr/bin/env").unwrap());
            }
            Err(PreloadError::NoLibrary) => {}
            // Where it was built, others may be able to write it.
            Err(PreloadError::Untrusted { path, .. }) if path.ends_with(SHARED_LIBRARY) => {}
            other => panic!("{other:?}"),
        }
    }
}

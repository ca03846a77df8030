//! The Python package `slowpath-fleet`, which a command becomes once privilege is given up.

use crate::failure::{Failure, Kind, failed};
use crate::target::invoker;
use nix::unistd::{AccessFlags, access};
use slowpath_process::reduce_before_exec;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package's own command.
const PROGRAM: &str = "slowpath-fleet";
/// Its virtual environment, which may lie beside the binary (docs/fleet.md).
const ENVIRONMENT: &str = "slowpath-fleet-venv/bin";

/// Becomes the package, as the user who called; `command` is what that is for. Returns only when the package could not be started: signals,
/// streams and exit code are the package's own.
///
/// # Errors
/// It is not installed, or cannot be started.
pub fn become_package(command: &str, words: &[OsString]) -> Result<Infallible, Failure> {
    // Field data are foreign bytes, and nothing here needs privilege: it is given up before the package is even looked for.
    let identity = invoker()?;
    let environment = identity.environment(std::env::vars_os());
    reduce_before_exec(&identity.credentials()).map_err(failed(Kind::Machine))?;
    let beside = std::env::current_exe().ok().and_then(|binary| Some(binary.parent()?.to_owned()));
    let program = found(std::env::var_os("PATH").as_deref(), beside.as_deref()).ok_or_else(|| {
        Failure::new(
            Kind::Machine,
            format!("{command}: the Python package slowpath-fleet is neither in PATH nor beside slowpath"),
        )
        .hint(
            "from a checkout: python3 -m venv ~/slowpath-fleet && ~/slowpath-fleet/bin/pip install ./fleet; then put \
             ~/slowpath-fleet/bin in PATH",
        )
    })?;
    let error = Command::new(&program).args(words).env_clear().envs(environment).exec();
    Err(Failure::new(Kind::Machine, format!("cannot start {}: {error}", program.display()))
        .hint("install slowpath-fleet again"))
}

/// The package's command: in `path`, else in an environment beside the binary.
fn found(path: Option<&OsStr>, beside: Option<&Path>) -> Option<PathBuf> {
    // An empty or relative entry of PATH means the working directory, which is somebody else's as often as not.
    let listed = path.map(|path| std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect::<Vec<_>>());
    listed
        .unwrap_or_default()
        .into_iter()
        .chain(beside.map(|folder| folder.join(ENVIRONMENT)))
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_file() && access(program, AccessFlags::X_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn executable(folder: &Path) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let program = folder.join(PROGRAM);
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn the_package_is_found_in_the_path_first_and_then_beside_the_binary() {
        let place = tempfile::tempdir().unwrap();
        let beside = place.path().join("bin");
        assert_eq!(found(Some(place.path().as_os_str()), Some(&beside)), None);
        let near = executable(&beside.join(ENVIRONMENT));
        assert_eq!(found(None, Some(&beside)), Some(near));
        let listed = executable(&place.path().join("listed"));
        assert_eq!(found(Some(place.path().join("listed").as_os_str()), Some(&beside)), Some(listed));
    }

    #[test]
    fn the_working_directory_is_never_searched() {
        let place = tempfile::tempdir_in(".").unwrap();
        executable(place.path());
        let relative = PathBuf::from(place.path().file_name().unwrap());
        assert_eq!(found(Some(relative.as_os_str()), None), None);
    }
}

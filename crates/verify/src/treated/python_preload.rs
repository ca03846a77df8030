//! Puts what has Python import modules before it forks where the launches of a trial find it: into the directory of the trial, as the
//! target's user, whose programs run it.
//!
//! Owns where that lies and when no Python would find it. What stands in the files, and the variable, are `slowpath_fix`'s.

use super::Tried;
use slowpath_fix::Treatment;
use slowpath_fix::preload_in_zygote::python;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::Target;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::whole_file;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variable that a treated launch has, or why it cannot be treated, by the place of the treatment in the list of what is tried.
pub(super) type PythonPreloads = BTreeMap<usize, Result<(OsString, OsString), String>>;

/// What a launch is treated with: a directory with files, and the variable by which Python finds them.
struct Preload {
    directory: PathBuf,
    files: [(&'static str, Vec<u8>); 2],
    variable: (OsString, OsString),
}

/// That of a treatment in the directory of a trial; `None` where Python is not treated. `user` is the variable that the target has.
fn preload(
    trial: &Path,
    number: usize,
    treatment: &Treatment,
    user: Option<&OsStr>,
) -> Option<Result<Preload, String>> {
    let files = python::files(treatment)?;
    let directory = trial.join(format!("python-preload-{}", number + 1));
    Some(match python::variable(&directory, user) {
        Some(variable) => Ok(Preload { directory, files, variable }),
        None => Err(format!(
            "it cannot be tried: PYTHONPATH cannot name {}, which has a colon; choose another directory with -o",
            directory.display()
        )),
    })
}

/// Writes the files of all treatments that have some, beneath `trial`, as the target's user.
///
/// # Errors
/// They cannot be written.
pub(super) fn write(target: &Target, tried: &[Tried], trial: &Path) -> Result<PythonPreloads, Failure> {
    let variables = target.variables();
    let user = variables.iter().rfind(|(name, _)| name == python::VARIABLE).map(|(_, value)| value.as_os_str());
    let numbered = tried.iter().enumerate();
    let all: BTreeMap<usize, _> =
        numbered.filter_map(|(number, one)| Some((number, preload(trial, number, &one.treatment, user)?))).collect();
    let written: Vec<&Preload> = all.values().filter_map(|one| one.as_ref().ok()).collect();
    if !written.is_empty() {
        as_user(&target.identity, &Work::writing_beneath("writing what Python imports", trial), || {
            for one in &written {
                std::fs::create_dir(&one.directory).map_err(failed(Kind::Usage))?;
                for (name, content) in &one.files {
                    whole_file::replace(&one.directory.join(name), 0o644, content)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(all.into_iter().map(|(number, one)| (number, one.map(|one| one.variable))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_no_python_looks_into_is_no_trial_and_says_why() {
        let treatment = Treatment::PythonPreload { spawned: false, modules: Vec::new() };
        let made = preload(Path::new("/d"), 1, &treatment, None).unwrap().unwrap();
        assert_eq!(made.variable, ("PYTHONPATH".into(), "/d/python-preload-2".into()));
        let why = preload(Path::new("/d:1"), 0, &treatment, None).unwrap().err().unwrap();
        assert_eq!(
            why,
            "it cannot be tried: PYTHONPATH cannot name /d:1/python-preload-1, which has a colon; choose another \
             directory with -o"
        );
        assert!(preload(Path::new("/d"), 0, &Treatment::None, None).is_none());
    }
}

//! Puts what has Python import modules before it forks where the launches of a trial find it: into the directory of the diagnosis, as the
//! target's user, whose programs run it.

use crate::Case;
use slowpath_fix::Proposal;
use slowpath_fix::preload_in_zygote::python;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::whole_file;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that a treated launch has, or why it cannot be treated, by the place of its proposal.
pub type PythonPreloads = BTreeMap<usize, Result<(OsString, OsString), String>>;

/// Writes the files of all fixes that have some.
///
/// # Errors
/// They cannot be written.
pub fn write(case: &Case<'_>, proposals: &[Proposal]) -> Result<PythonPreloads, Failure> {
    let of = |(number, proposal): (usize, &Proposal)| {
        let files = python::files(&proposal.plan.treatment).filter(|_| proposal.plan.trial.possible)?;
        Some((number, case.directory.join(format!("python-preload-{}", number + 1)), files))
    };
    let all: Vec<(usize, PathBuf, _)> = proposals.iter().enumerate().filter_map(of).collect();
    if all.is_empty() {
        return Ok(PythonPreloads::new());
    }
    let target = case.target;
    as_user(&target.identity, &Work::writing_beneath("writing what Python imports", case.directory), || {
        for (_, directory, files) in &all {
            std::fs::create_dir(directory).map_err(failed(Kind::Usage))?;
            for (name, content) in files {
                whole_file::replace(&directory.join(name), 0o644, content)?;
            }
        }
        Ok(())
    })?;
    let variables = target.variables();
    let user = variables.iter().rfind(|(name, _)| name == python::VARIABLE).map(|(_, value)| value.as_os_str());
    let variable = |directory: &Path| {
        let why = || {
            format!(
                "it cannot be tried: Python finds no module in {}, for the colon (-o DIRECTORY)",
                directory.display()
            )
        };
        python::variable(directory, user).ok_or_else(why)
    };
    Ok(all.iter().map(|(number, directory, _)| (*number, variable(directory))).collect())
}

//! An audit of evidence, and the policy that follows from it.

use super::launching::trace_here;
use crate::audit::{AndroidAudit, audit, guard_policy, price};
use crate::evidence::Evidence;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::whole_file;
use std::path::{Path, PathBuf};

/// Mode of a policy, which nobody else may write.
const POLICY_MODE: u32 = 0o644;

/// Audits the packages of a directory of evidence, or all where none is named; traces show what unreadable code costs.
///
/// # Errors
/// It is no evidence, has no such package, or a trace cannot be read to its end.
pub fn audit_evidence(evidence: &Path, packages: &[String], traces: &[PathBuf]) -> Result<AndroidAudit, Failure> {
    as_user(&invoker()?, &Work::reading("the audit"), || {
        let mut read = Evidence::read(evidence).map_err(|error| Failure::from_error(Kind::Usage, &error))?;
        if let Some(other) = packages.iter().find(|name| !read.packages.contains_key(*name)) {
            let known: Vec<&str> = read.packages.keys().map(String::as_str).take(20).collect();
            return Err(Failure::new(Kind::Usage, format!("the evidence has no package {other}"))
                .hint(format!("it has {}", known.join(", "))));
        }
        if !packages.is_empty() {
            read.packages.retain(|name, _| packages.contains(name));
        }
        let mut audited = audit(&read);
        let traces = traces.iter().map(|trace| trace_here(trace)).collect::<Result<Vec<_>, _>>()?;
        if let Some(problem) = traces.iter().find_map(|trace| trace.problem.as_deref()) {
            return Err(Failure::new(Kind::Usage, problem.to_owned()).hint("give whole traces"));
        }
        price(&mut audited, &traces);
        Ok(audited)
    })
}

/// Writes the policy for `guard` of the one package of an audit.
///
/// # Errors
/// There are several, it has no compiled code, or the file cannot be written.
pub fn write_policy(audited: &AndroidAudit, file: &Path) -> Result<(), Failure> {
    let [package] = audited.packages.as_slice() else {
        return Err(Failure::new(Kind::Usage, "a policy is of one package").hint("name it with --package"));
    };
    let text = guard_policy(audited, package)
        .ok_or_else(|| Failure::new(Kind::Usage, format!("the evidence has no compiled code of {}", package.name)))?;
    as_user(&invoker()?, &Work::writing("writing the policy", file), || {
        whole_file::replace(file, POLICY_MODE, text.as_bytes())
    })
}

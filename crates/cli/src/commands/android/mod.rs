//! `slowpath android`: compiled code of apps that their isolated processes cannot read.
//!
//! Here is decided as whom: everything is done as the invoker, in a worker that may start programs (collecting) or only read (auditing).

mod context;
mod launch;
mod repaired;

use crate::arguments::android::{
    AdbArguments, AndroidArguments, AndroidAuditArguments, AndroidCollectArguments, AndroidCommand,
    AndroidLaunchArguments,
};
use crate::commands::{invoker, now_rfc3339, print_json};
use crate::failure::{self, Failure, Kind};
use crate::interrupt;
use crate::output_directory;
use crate::progress::Progress;
use crate::unprivileged::{Work, as_user};
use crate::whole_file;
use serde::{Deserialize, Serialize};
use slowpath_android::adb::{Adb, AdbError, Asked, collect};
use slowpath_android::audit::{AndroidAudit, audit, guard_policy, price};
use slowpath_android::evidence::{Evidence, EvidenceManifest};
use slowpath_android::text::is_package_name;
use slowpath_launch::Identity;
use slowpath_process::Duty;
use slowpath_report::terminal::{android_audit, android_collected};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Mode of a policy, which nobody else may write.
const POLICY_MODE: u32 = 0o644;

/// Runs the command.
pub fn run(arguments: &AndroidArguments) -> Result<ExitCode, Failure> {
    interrupt::watch();
    match &arguments.command {
        AndroidCommand::Collect(arguments) => run_collect(arguments),
        AndroidCommand::Audit(arguments) => run_audit(arguments),
        AndroidCommand::Context(arguments) => context::run(arguments),
        AndroidCommand::Launch(arguments) => launch::run(arguments),
    }
}

/// What collecting gave, and why it ended early.
#[derive(Serialize, Deserialize)]
struct Collected {
    manifest: EvidenceManifest,
    failure: Option<Failure>,
}

fn run_collect(arguments: &AndroidCollectArguments) -> Result<ExitCode, Failure> {
    if let Some(wrong) = arguments.packages.iter().find(|name| !is_package_name(name)) {
        return Err(Failure::new(Kind::Usage, format!("{wrong:?} is no name of a package"))
            .hint("`adb shell pm list packages` lists them"));
    }
    let identity = invoker()?;
    let directory = output_directory::prepare(&arguments.output, &identity)?;
    let quiet = arguments.quiet || arguments.json;
    let serial = arguments.adb.serial.clone().or_else(|| std::env::var("ANDROID_SERIAL").ok());
    let collected = as_user(&identity, &Work::new("collecting", Duty::Run), || {
        let wanted = || !interrupt::requested();
        let adb = connect(&arguments.adb, serial.as_deref(), &wanted)?;
        collected(&adb, &directory, &arguments.packages, quiet)
    })?;
    let shown = directory.to_string_lossy();
    if arguments.json {
        print_json(&collected.manifest);
    } else {
        print!("{}", android_collected(&collected.manifest, &shown));
    }
    Ok(collected.failure.map_or(ExitCode::SUCCESS, |failure| {
        failure::report(&failure.hint(format!("what was collected is kept in {shown}")), false)
    }))
}

fn connect<'a>(
    arguments: &AdbArguments,
    serial: Option<&str>,
    wanted: &'a dyn Fn() -> bool,
) -> Result<Adb<'a>, Failure> {
    let timeout = Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::from_secs(60));
    Adb::connect(&arguments.adb, serial, timeout, wanted).map_err(|error| of_adb(&error))
}

fn of_adb(error: &AdbError) -> Failure {
    let kind = match error {
        AdbError::Interrupted => Kind::Interrupted,
        AdbError::Unwritable(_) => Kind::Usage,
        _ => Kind::Machine,
    };
    Failure::new(kind, error.to_string()).hint(error.remedy())
}

fn collected(adb: &Adb<'_>, directory: &Path, packages: &[String], quiet: bool) -> Result<Collected, Failure> {
    let progress = Progress::new(quiet);
    let asked = Asked { packages, now: now_rfc3339(), progress: &mut |what| progress.step(what) };
    let collected = collect(adb, directory, asked).map_err(|error| of_adb(&error));
    progress.done();
    let (manifest, ended) = collected?;
    Ok(Collected { manifest, failure: ended.map(|error| of_adb(&error)) })
}

fn run_audit(arguments: &AndroidAuditArguments) -> Result<ExitCode, Failure> {
    let identity = invoker()?;
    let audited = audited(&identity, &arguments.evidence, &arguments.package, &arguments.trace)?;
    if let Some(file) = &arguments.guard_policy {
        write_policy(&identity, &audited, file)?;
    }
    if let (Some(name), Some(after)) = (&arguments.apply, &arguments.output) {
        return repaired::run(
            arguments,
            &identity,
            audited,
            Some(name.as_str()).filter(|name| !name.is_empty()),
            after,
        );
    }
    if arguments.json {
        print_json(&audited);
    } else {
        print!("{}", android_audit(&audited));
    }
    Ok(ExitCode::SUCCESS)
}

/// An audit of evidence, read as the invoker.
fn audited(
    identity: &Identity,
    evidence: &Path,
    packages: &[String],
    traces: &[PathBuf],
) -> Result<AndroidAudit, Failure> {
    as_user(identity, &Work::reading("the audit"), || {
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
        let traces = traces.iter().map(|trace| launch::read_trace(trace)).collect::<Result<Vec<_>, _>>()?;
        if let Some(problem) = traces.iter().find_map(|trace| trace.problem.as_deref()) {
            return Err(Failure::new(Kind::Usage, problem.to_owned()).hint("give whole traces"));
        }
        price(&mut audited, &traces);
        Ok(audited)
    })
}

fn write_policy(identity: &Identity, audited: &AndroidAudit, file: &Path) -> Result<(), Failure> {
    let [package] = audited.packages.as_slice() else {
        return Err(Failure::new(Kind::Usage, "a policy is of one package").hint("name it with --package"));
    };
    let text = guard_policy(audited, package)
        .ok_or_else(|| Failure::new(Kind::Usage, format!("the evidence has no compiled code of {}", package.name)))?;
    as_user(identity, &Work::writing("writing the policy", file), || {
        whole_file::replace(file, POLICY_MODE, text.as_bytes())
    })
}

//! `slowpath artifacts age`: a command that finds artifacts unreadable, stale or missing, as elsewhere, in mounts of its own.
//!
//! The file of states is read as the invoker, the files that it names are looked at as the caller, both in sandboxes. What the command sees
//! is never more than without: permissions only go, and what is the user's own is seen as nobody's.

use crate::arguments::{ArtifactsAgeArguments, InvocationArguments};
use crate::commands::context::exit_code;
use crate::commands::invoker;
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::interrupt::{self, Interruptible};
use crate::target::{Target, launch_failure, launcher};
use crate::unprivileged::{Work, as_user};
use nix::unistd::geteuid;
use slowpath_artifacts::field_state::{FieldState, MOST_BYTES};
use slowpath_diagnose::aged_artifacts::Seen;
use slowpath_launch::{ContextStep, EndPolicy, Identity, Launcher, MountStep, StdioPolicy};
use slowpath_report::terminal::escape_terminal;
use slowpath_tables::missing::declared;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: &ArtifactsAgeArguments) -> Result<ExitCode, Failure> {
    if !geteuid().is_root() {
        let gap = declared::OWN_MOUNTS
            .because("mounts of a command's own need root", "run it with sudo; the command still runs as you");
        return Err(Failure::unavailable("run a command that sees other artifacts", &[gap]));
    }
    let invocation = InvocationArguments::until_exit(&arguments.user, &arguments.env);
    let target = Target::of(&invocation, arguments.command.clone(), None)?;
    let state = read(&arguments.state)?;
    let caller = Identity::of_caller().map_err(failed(Kind::Machine))?;
    let uid = target.identity.uid;
    let seen = as_user(&caller, &Work::reading("looking at the artifacts"), || Seen::of(&state, uid))?;
    for line in &seen.notes {
        eprintln!("slowpath: {}", escape_terminal(line));
    }
    if seen.files.is_empty() {
        return Err(Failure::new(
            Kind::Usage,
            "nothing that the file names is here: the command would see no difference",
        ));
    }
    if uid == 0 {
        eprintln!("slowpath: root reads what is unreadable for others: --user names the user of the command");
    }
    let mounts = seen.files.into_iter().map(|file| MountStep::Seen(Box::new(file))).collect();
    let (mut spec, _fresh) = target.seeing(mounts).spec(EndPolicy::KillTree, StdioPolicy::Inherit)?;
    if uid != 0 {
        // A set-user-id program would take what is not there for the machine's own state.
        spec.context.push(ContextStep::NoNewPrivileges);
    }
    let outcome = launcher().launch(&spec, &mut Interruptible).map_err(|error| launch_failure(&error))?;
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted"));
    }
    Ok(exit_code(outcome.exit))
}

fn read(path: &Path) -> Result<FieldState, Failure> {
    as_user(&invoker()?, &Work::reading("reading the file of states"), || {
        let shown = escape_terminal(&path.to_string_lossy());
        let wrong = |why: String| Failure::new(Kind::Usage, format!("{shown}: {why}"));
        let bytes =
            foreign_file::read(path, MOST_BYTES).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        FieldState::parse(&bytes).map_err(|error| {
            wrong(escape_terminal(&error.to_string())).hint("docs/artifacts.md shows the form of the file")
        })
    })
}

//! `slowpath zygote spawn` and `slowpath zygote status`.

use crate::arguments::zygote::{ZygoteSpawnArguments, ZygoteStatusArguments};
use crate::failure::{Failure, Kind};
use crate::printing::{self, show};
use slowpath_seccomp::{MOST_BYTES, parse};
use slowpath_session::target::invoker;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{foreign_file, interrupt};
use slowpath_zygote::printed::{SpawnedChild, ZygoteStatus};
use slowpath_zygote::{AskedFilter, AskedIdentity, Client, RefusalKind, SpawnError, SpawnRequest, Word};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &ZygoteSpawnArguments) -> Result<ExitCode, Failure> {
    let request = request(arguments)?;
    let descriptors = descriptors(arguments)?;
    interrupt::watch();
    let began = Instant::now();
    let spawned = Client::connect_to(&arguments.socket, arguments.zygote_uid)
        .and_then(|client| client.spawn(request, &descriptors));
    let child = spawned.map_err(|error| spawn_failure(&error))?;
    let started = began.elapsed();
    let ending = child.wait_or_end(&interrupt::requested).map_err(|error| spawn_failure(&error))?;
    let shown = SpawnedChild::new(&child, started, &ending);
    if arguments.json {
        printing::json(&shown);
    }
    Ok(ExitCode::from(shown.status()))
}

fn request(arguments: &ZygoteSpawnArguments) -> Result<SpawnRequest, Failure> {
    let word = |text: &std::ffi::OsString| Word(text.as_bytes().to_owned());
    let identity =
        arguments.uid.zip(arguments.gid).map(|(uid, gid)| AskedIdentity { uid, gid, groups: arguments.group.clone() });
    let filter = arguments.seccomp.as_deref().map(|path| filter(path, arguments.allow_speculation)).transpose()?;
    // The first argument is the name of the program, which the child of a zygote has none of.
    let name = arguments.arguments.first().map_or_else(|| OsStr::new("child").to_owned(), Clone::clone);
    let request = SpawnRequest {
        arguments: std::iter::once(&name).chain(&arguments.arguments).map(word).collect(),
        environment: arguments.env.iter().map(word).collect(),
        identity,
        namespaces: arguments.namespaces.clone(),
        filter,
        descriptors: (0..3).chain(arguments.fd.iter().copied()).collect(),
        probe: false,
    };
    request.check().map_err(|refusal| Failure::new(Kind::Usage, refusal.to_string()))?;
    Ok(request)
}

/// A filter from a file of anybody's, read and compiled without privilege.
fn filter(path: &Path, allow_speculation: bool) -> Result<AskedFilter, Failure> {
    let what = Work::reading("reading the filter");
    let program = as_user(&invoker()?, &what, || {
        let wrong = |why: String| Failure::new(Kind::Usage, format!("{} is no filter: {why}", path.display()));
        let bytes = foreign_file::read(path, MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
        Ok(parse(&bytes, None).map_err(|error| wrong(error.to_string()))?.program.bytes())
    })?;
    if allow_speculation {
        eprintln!(
            "slowpath: warning: --allow-speculation leaves the child open to speculative execution attacks that the kernel's default \
             for seccomp-filtered processes may prevent"
        );
    }
    Ok(AskedFilter { program: program.into(), allow_speculation })
}

fn descriptors(arguments: &ZygoteSpawnArguments) -> Result<Vec<BorrowedFd<'static>>, Failure> {
    // With JSON, standard output is for that alone.
    let standard = if arguments.json { [0, 2, 2] } else { [0, 1, 2] };
    let others = arguments.fd.iter().map(|number| number.cast_signed());
    standard
        .into_iter()
        .chain(others)
        .map(|number| {
            // SAFETY: asks about a number; one that is closed is answered with an error.
            if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
                let text = format!("descriptor {number} is not open");
                return Err(Failure::new(Kind::Usage, text).hint("a shell opens one with 7<FILE or 7>FILE"));
            }
            // SAFETY: open, and closed by nobody before the command ends.
            Ok(unsafe { BorrowedFd::borrow_raw(number) })
        })
        .collect()
}

/// Says how a zygote is.
pub fn status(arguments: &ZygoteStatusArguments) -> Result<ExitCode, Failure> {
    let client = Client::connect_to_anybody(&arguments.socket);
    let status = client.and_then(|client| client.status()).map_err(|error| spawn_failure(&error))?;
    show(arguments.json, &ZygoteStatus::from(status), |status, _| status.to_string());
    Ok(ExitCode::SUCCESS)
}

/// Why there is no child, by what it means for the caller.
fn spawn_failure(error: &SpawnError) -> Failure {
    let (kind, hint) = match error {
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::Malformed => (Kind::Usage, None),
        SpawnError::Refused(refusal) if refusal.kind == RefusalKind::NotAllowed => {
            (Kind::Machine, Some("the policy of the zygote says who may ask for what: docs/zygote.md"))
        }
        SpawnError::NoZygote { source, .. } if source.kind() == std::io::ErrorKind::TimedOut => (
            Kind::Machine,
            Some("`ss -xlp` shows root who listens there; a zygote that is busy takes connections later"),
        ),
        SpawnError::NoZygote { .. } => {
            (Kind::Machine, Some("`slowpath zygote serve --socket PATH --preload WHAT` starts one"))
        }
        SpawnError::Stranger { .. } => {
            (Kind::Usage, Some("--zygote-uid UID asks another user's zygote, who gets what the child is given"))
        }
        _ => (Kind::Machine, None),
    };
    Failure::from_error(kind, error).hint_if_any(hint)
}

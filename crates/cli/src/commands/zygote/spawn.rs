//! `slowpath zygote spawn` and `slowpath zygote status`.

use super::spawn_failure;
use crate::arguments::{ZygoteSpawnArguments, ZygoteStatusArguments};
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind};
use crate::foreign_file;
use crate::interrupt;
use crate::unprivileged::{Work, as_user};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_seccomp::{MOST_BYTES, parse};
use slowpath_zygote::{AskedFilter, AskedIdentity, Client, Ending, SpawnError, SpawnRequest, Spawned, Status, Word};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it is looked whether the user wants the child to end.
const LOOK: Duration = Duration::from_millis(100);

/// What `slowpath zygote spawn --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpawnedChild {
    /// `slowpath-zygote-spawn/1`.
    schema: &'static str,
    /// Its process id in the zygote's pid namespace.
    pid: i32,
    /// Whether it was a spare.
    from_spare: bool,
    /// From asking until it was what was asked for and began its work, in ms.
    started_ms: f64,
    /// Its exit code; null where a signal ended it.
    exit_code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
}

/// What `slowpath zygote status --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ZygoteStatus {
    /// `slowpath-zygote-status/1`.
    schema: &'static str,
    /// How it is.
    #[serde(flatten)]
    status: Status,
}

/// Runs the command.
pub fn run(arguments: &ZygoteSpawnArguments) -> Result<ExitCode, Failure> {
    let request = request(arguments)?;
    let descriptors = descriptors(arguments)?;
    interrupt::watch();
    let began = Instant::now();
    let spawned = Client::connect(&arguments.socket).and_then(|client| client.spawn(request, &descriptors));
    let child = spawned.map_err(|error| spawn_failure(&error))?;
    let started_ms = began.elapsed().as_secs_f64() * 1e3;
    let ending = waited(&child).map_err(|error| spawn_failure(&error))?;
    let (exit_code, signal) = match ending {
        Ending::Exited(code) => (Some(code), None),
        Ending::Killed(signal) => (None, Some(signal)),
    };
    if arguments.json {
        let schema = "slowpath-zygote-spawn/1";
        print_json(&SpawnedChild {
            schema,
            pid: child.pid,
            from_spare: child.from_spare,
            started_ms,
            exit_code,
            signal,
        });
    }
    // As a shell has it.
    let code = exit_code.unwrap_or_else(|| 128 + signal.unwrap_or(0));
    Ok(ExitCode::from((code & 0xff) as u8))
}

/// Waits for its end, and passes on that the user wants it.
fn waited(child: &Spawned) -> Result<Ending, SpawnError> {
    let mut was_told = false;
    loop {
        match child.wait_for(LOOK) {
            Err(SpawnError::Late(_)) => {}
            waited => return waited,
        }
        if interrupt::requested() && !was_told {
            was_told = true;
            child.signal(libc::SIGTERM)?;
        }
    }
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
            "slowpath: warning: with --allow-speculation the child is open to attacks by speculative execution that the kernel's default \
             for filtered processes may close"
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
    let status =
        Client::connect(&arguments.socket).and_then(|client| client.status()).map_err(|error| spawn_failure(&error))?;
    if arguments.json {
        print_json(&ZygoteStatus { schema: "slowpath-zygote-status/1", status });
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "process {}: {} children alive, {} started, {} refused, {} failed",
        status.pid, status.alive, status.started, status.refused, status.failed
    );
    println!(
        "spares: {} ready, {} wanted by {:.1} requests/s and {:.1} ms a start; {} children came of one, {} dropped under memory pressure",
        status.spares,
        status.spares_wanted,
        status.arrivals_per_second,
        status.start_ms,
        status.from_spares,
        status.spares_dropped
    );
    Ok(ExitCode::SUCCESS)
}

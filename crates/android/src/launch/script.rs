//! One scripted launch: prepared, traced, started, and the trace copied. What fails is a word of the launch, and the next one is tried,
//! until the device itself is gone.

use super::config::{MOST_COPIED, config, device_file};
use super::printed::Launched;
use super::settings::LaunchSettings;
use crate::adb::{Adb, AdbError, Broken, ShellOutput, new_file};
use crate::startup::{StartupKind, TraceStartups, read};
use crate::text::{AmStart, am_start};
use slowpath_artifacts::access::quoted;
use slowpath_import::Input;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;
use std::time::Duration;

/// Compiling all methods of a browser takes minutes on a slow phone.
const COMPILE: Duration = Duration::from_secs(900);
/// Perfetto writes what it has when it is ended; asked this often, with a pause between.
const ASKED: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(200);
/// `FLAG_ACTIVITY_NEW_TASK | FLAG_ACTIVITY_CLEAR_TASK` of android.content.Intent: the activity is made again in its process.
const CLEAR_TASK: &str = "0x10008000";

/// How launches are made, and where their traces go.
pub struct Plan<'a> {
    /// What is launched, and how.
    pub settings: &'a LaunchSettings<'a>,
    /// Where traces are kept.
    pub directory: &'a Path,
}

/// One launch of the plan.
pub struct Target<'a> {
    /// Its number.
    pub number: usize,
    /// Its block.
    pub block: u32,
    /// The package.
    pub package: &'a str,
    /// Its main activity; none for an address.
    pub activity: Option<&'a str>,
    /// The address.
    pub url: Option<&'a str>,
}

/// The main activity of a package.
///
/// # Errors
/// The device went away, or says none: [`AdbError::Refused`].
pub fn main_activity(adb: &Adb<'_>, package: &str) -> Result<String, AdbError> {
    let command = format!("cmd package resolve-activity --brief -c android.intent.category.LAUNCHER {package}");
    let answer = adb.shell(&command).map_err(|broken| broken.error)?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    // The last line: `com.example/.Main`.
    let activity = text.lines().map(str::trim).rfind(|line| line.starts_with(package) && line.contains('/'));
    activity.map(str::to_owned).ok_or_else(|| {
        let said = first_line(&answer);
        AdbError::Refused(format!("{package} has no activity that a launcher shows: {said}"))
    })
}

/// Compiles a package in this mode.
///
/// # Errors
/// The device went away, or refuses: [`AdbError::Refused`].
pub fn compile(adb: &Adb<'_>, package: &str, mode: &str) -> Result<(), AdbError> {
    let command = match mode {
        "reset" => format!("cmd package compile --reset {package}"),
        mode => format!("cmd package compile -m {mode} -f {package}"),
    };
    let answer = adb.shell_within(&command, COMPILE).map_err(|broken| broken.error)?;
    let text = String::from_utf8_lossy(&answer.stdout);
    if answer.status == 0 && !text.contains("Failure") && !text.contains("Error") {
        return Ok(());
    }
    Err(AdbError::Refused(format!("`{command}`: {}", first_line(&answer))))
}

/// Ends a package.
///
/// # Errors
/// The command did not come to its end.
pub fn stop(adb: &Adb<'_>, package: &str) -> Result<(), AdbError> {
    adb.shell(&format!("am force-stop {package}")).map(|_| ()).map_err(|broken| broken.error)
}

fn first_line(answer: &ShellOutput) -> String {
    let text = String::from_utf8_lossy(&answer.stdout).into_owned() + &answer.stderr;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("nothing was said").chars().take(300).collect()
}

/// Launches once.
///
/// # Errors
/// The device went away. What was found until then is in `launched`.
pub fn launch(adb: &Adb<'_>, plan: &Plan<'_>, target: &Target<'_>, launched: &mut Launched) -> Result<(), AdbError> {
    match launch_steps(adb, plan, target, launched) {
        Err(error) if error.is_of_the_command() || is_of_the_launch(&error) => {
            fail(launched, &error);
            // A trace that was not copied does not stay on the device.
            let _ = adb.shell(&format!("rm -f {}", device_file(target.number)));
            Ok(())
        }
        Err(error) => {
            fail(launched, &error);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Whether the next launch could do better.
fn is_of_the_launch(error: &AdbError) -> bool {
    matches!(error, AdbError::Refused(_) | AdbError::Failed(_) | AdbError::TooLarge { .. })
}

fn fail(launched: &mut Launched, error: &AdbError) {
    launched.failure.get_or_insert_with(|| error.to_string());
    launched.remedy.get_or_insert_with(|| error.remedy().to_owned());
}

fn launch_steps(adb: &Adb<'_>, plan: &Plan<'_>, target: &Target<'_>, launched: &mut Launched) -> Result<(), AdbError> {
    prepare(adb, plan, target)?;
    let file = device_file(target.number);
    let mut tracer = None;
    if plan.settings.is_traced {
        match trace(adb, plan, &file) {
            Ok(pid) => tracer = Some(pid),
            // The launch is measured by `am start -W` all the same.
            Err(AdbError::Refused(said)) => {
                launched.failure = Some(format!("no trace: {said}"));
                launched.remedy = Some("run `perfetto --query` on the device, or --no-trace".to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    let started = start(adb, plan.settings.kind, target);
    let ended = match (&started, tracer) {
        (Err(error), _) if !error.is_of_the_command() => Ok(()),
        (_, Some(pid)) => adb.pause(plan.settings.after).and_then(|()| end_trace(adb, pid)),
        (..) => Ok(()),
    };
    launched.reported = started?;
    if !launched.reported.is_ok() {
        let said = launched.reported.said.clone().or_else(|| launched.reported.status.clone());
        let said = said.unwrap_or_else(|| "am start said nothing of a first frame".to_owned());
        fail(launched, &AdbError::Refused(format!("not launched: {said}")));
    }
    ended?;
    if tracer.is_some() {
        take_trace(adb, plan, target, &file, launched)?;
    }
    Ok(())
}

/// Brings the app into the state from which it is launched.
fn prepare(adb: &Adb<'_>, plan: &Plan<'_>, target: &Target<'_>) -> Result<(), AdbError> {
    let shell = |command: &str| adb.shell(command).map_err(|broken| broken.error);
    match plan.settings.kind {
        StartupKind::Cold => stop(adb, target.package)?,
        StartupKind::Warm | StartupKind::Hot => {
            // Its process is there, and another app is in front.
            let first = start(adb, StartupKind::Hot, target)?;
            if !first.is_ok() {
                let said = first.said.unwrap_or_else(|| "no first frame".to_owned());
                return Err(AdbError::Refused(format!("not launched to prepare: {said}")));
            }
            adb.pause(plan.settings.settle)?;
            shell("input keyevent KEYCODE_HOME")?;
        }
    }
    adb.pause(plan.settings.settle)
}

/// Starts Perfetto, and returns its pid.
fn trace(adb: &Adb<'_>, plan: &Plan<'_>, file: &str) -> Result<u32, AdbError> {
    let most = u64::try_from(plan.settings.after.as_millis()).unwrap_or(u64::MAX).saturating_add(60_000);
    let command = format!("perfetto --background --txt -c - -o {file}");
    let input = Some(config(plan.settings.packages, most).into_bytes());
    let answer = adb.shell_with_input(&command, adb.timeout(), input).map_err(|broken| broken.error)?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let pid = text.lines().rev().find_map(|line| line.trim().parse().ok()).filter(|_| answer.status == 0);
    let pid = pid.ok_or_else(|| AdbError::Refused(format!("perfetto: {}", first_line(&answer))))?;
    adb.pause(plan.settings.settle)?;
    Ok(pid)
}

/// Ends Perfetto and waits until it has written its trace.
fn end_trace(adb: &Adb<'_>, pid: u32) -> Result<(), AdbError> {
    let shell = |command: &str| adb.shell(command).map_err(|broken| broken.error);
    shell(&format!("kill -TERM {pid}"))?;
    for _ in 0..ASKED {
        if shell(&format!("kill -0 {pid}"))?.status != 0 {
            return Ok(());
        }
        adb.pause(BETWEEN)?;
    }
    Err(AdbError::Refused(format!("perfetto (pid {pid}) does not end")))
}

/// Starts the activity and waits for its first frame.
fn start(adb: &Adb<'_>, kind: StartupKind, target: &Target<'_>) -> Result<AmStart, AdbError> {
    let what = match (target.url, target.activity) {
        (Some(url), _) => format!("-a android.intent.action.VIEW -d {} {}", quoted(Path::new(url)), target.package),
        (None, Some(activity)) => {
            let activity = quoted(Path::new(activity));
            format!("-a android.intent.action.MAIN -c android.intent.category.LAUNCHER -n {activity}")
        }
        (None, None) => return Err(AdbError::Refused("neither an activity nor an address".to_owned())),
    };
    let flags = if kind == StartupKind::Warm { format!("-f {CLEAR_TASK} ") } else { String::new() };
    let answer = adb.shell(&format!("am start -W {flags}{what}")).map_err(|broken| broken.error)?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned() + "\n" + &answer.stderr;
    Ok(am_start(&text))
}

/// Copies the trace, removes it from the device and reads it.
fn take_trace(
    adb: &Adb<'_>,
    plan: &Plan<'_>,
    target: &Target<'_>,
    file: &str,
    launched: &mut Launched,
) -> Result<(), AdbError> {
    let name = format!("launch-{}.perfetto-trace", target.number);
    let to = plan.directory.join(&name);
    let copied = match adb.pull(file, &to, MOST_COPIED).map(|_| ()) {
        // Before Android 12 the shell may read what it may not open by adb's protocol for files.
        Err(AdbError::Failed(_)) => cat(adb, file, &to),
        other => other,
    };
    let removed = adb.shell(&format!("rm -f {file}")).map(|_| ()).map_err(|broken| broken.error);
    copied?;
    launched.trace = Some(name.clone());
    let opened = File::open(&to).map_err(AdbError::Unwritable)?;
    let mut reader = BufReader::new(opened);
    let found = read(&name, &mut Input::new(&name, &mut reader, &|| true));
    of_trace(found, target.package, launched);
    removed
}

fn cat(adb: &Adb<'_>, file: &str, to: &Path) -> Result<(), AdbError> {
    let answer = adb.shell(&format!("cat {file}")).map_err(|Broken { error, .. }| error)?;
    if answer.status != 0 {
        return Err(AdbError::Refused(format!("the trace cannot be copied: {}", answer.stderr.trim())));
    }
    let written = new_file(to).and_then(|mut trace| {
        trace.write_all(&answer.stdout).inspect_err(|_| {
            let _ = fs::remove_file(to);
        })
    });
    written.map_err(AdbError::Unwritable)
}

/// Takes what a trace shows of this launch: the first one of the package, and all starts of its processes.
fn of_trace(found: TraceStartups, package: &str, launched: &mut Launched) {
    if let Some(problem) = found.problem {
        launched.failure.get_or_insert(format!("the trace was not read to its end: {problem}"));
    }
    launched.startup = found.startups.into_iter().find(|one| one.package == package);
    let is_own = |name: &str| name.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    launched.children = found.children.into_iter().filter(|child| is_own(&child.process)).collect();
    if launched.startup.is_none() && launched.failure.is_none() {
        launched.failure = Some("the trace shows no launch of it".to_owned());
        launched.remedy = Some("check whether the device traces atrace's category am".to_owned());
    }
}

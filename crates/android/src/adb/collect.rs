//! Collecting evidence: one command after the other; what fails is noted and the rest goes on, until the device itself is gone.

use super::client::{Adb, Broken, ShellOutput};
use super::error::AdbError;
use crate::audit::places;
use crate::evidence::{
    ABSENT, DEXOPT, EvidenceManifest, EvidenceWriter, ID, LISTING, PROCESSES, PROPERTIES, Step, StepOutcome, WEBVIEW,
    file_name, members_text, package_text, path_text,
};
use crate::text::{self, DexoptState, code_paths, dexopt_states, is_device_path};
use slowpath_artifacts::access::quoted;
use slowpath_artifacts::gather::Listing;
use std::collections::BTreeSet;
use std::path::Path;

/// Bytes of an odex that are taken: header and key-value store are at its begin.
const ODEX_HEAD: u64 = 256 << 10;
/// Bytes of a vdex or dm file that are copied as a whole; of a larger one the head is.
const MOST_WHOLE: u64 = 16 << 20;
/// Words of one `ls`: a shell takes 128 KiB.
const MOST_NAMES: usize = 200;
/// Commands in a row that may fail by time or by a cut answer before the device counts as gone.
const PATIENCE: u32 = 3;

/// What is to be collected.
pub struct Asked<'a> {
    /// Packages, which have passed [`text::is_package_name`].
    pub packages: &'a [String],
    /// When it begins, RFC 3339.
    pub now: String,
    /// Called with what is done next.
    pub progress: &'a mut dyn FnMut(&str),
}

/// Collects into an empty directory. What was collected before the device went away is kept: the manifest so far, and why it ended.
///
/// # Errors
/// Nothing could be begun: the directory cannot be written.
pub fn collect(
    adb: &Adb<'_>,
    directory: &Path,
    asked: Asked<'_>,
) -> Result<(EvidenceManifest, Option<AdbError>), AdbError> {
    let (serial, version) = (adb.serial().to_owned(), adb.version().to_owned());
    let manifest = EvidenceManifest::new(asked.now, serial, version, asked.packages.to_vec());
    let writer = EvidenceWriter::begin(directory, manifest).map_err(AdbError::Unwritable)?;
    let mut collector = Collector { adb, writer, progress: asked.progress, failures: 0, taken: BTreeSet::new() };
    let ended = collector.all(asked.packages).err();
    Ok((collector.writer.done(), ended))
}

struct Collector<'a, 'b> {
    adb: &'a Adb<'b>,
    writer: EvidenceWriter,
    progress: &'a mut dyn FnMut(&str),
    /// Commands in a row that failed.
    failures: u32,
    /// Files of the device that came: packages share libraries.
    taken: BTreeSet<String>,
}

impl Collector<'_, '_> {
    fn all(&mut self, packages: &[String]) -> Result<(), AdbError> {
        let id = self.text("the user of adb's shell", "id", ID)?;
        let is_root = id.as_ref().map(|id| id.starts_with("uid=0("));
        self.writer.update(|manifest| manifest.is_root = is_root).map_err(AdbError::Unwritable)?;
        let properties = text::properties(&self.text("properties", "getprop", PROPERTIES)?.unwrap_or_default());
        self.text("processes", "ps -A -o PID,UID,NAME", PROCESSES)?;
        let dexopt = self.text("compilation of all packages", "dumpsys package dexopt", DEXOPT)?.unwrap_or_default();
        self.text("the WebView of the device", "dumpsys webviewupdate", WEBVIEW)?;
        let states = dexopt_states(&dexopt);
        let sets = properties.instruction_sets();
        for package in packages {
            self.package(package, &states, &sets)?;
        }
        self.writer.update(|manifest| manifest.is_complete = true).map_err(AdbError::Unwritable)
    }

    fn package(&mut self, package: &str, states: &[DexoptState], sets: &[&str]) -> Result<(), AdbError> {
        let paths = self.text(&format!("APKs of {package}"), &format!("pm path {package}"), &path_text(package))?;
        let about =
            self.text(&format!("package {package}"), &format!("dumpsys package {package}"), &package_text(package))?;
        let mut apks = code_paths(&paths.unwrap_or_default());
        let libraries = text::package(&about.unwrap_or_default()).library_files;
        apks.extend(libraries.into_iter().filter(|file| file.ends_with(".apk")));
        let mut wanted: Vec<String> = Vec::new();
        for apk in &apks {
            let known = states.iter().filter(|state| &state.apk == apk);
            let mut isas: Vec<(&str, Option<&str>)> =
                known.map(|state| (state.isa.as_str(), state.location.as_deref())).collect();
            if isas.is_empty() {
                isas = sets.iter().map(|isa| (*isa, None)).collect();
            }
            let artifacts = isas.iter().flat_map(|(isa, location)| places(apk, isa, *location));
            wanted.extend(artifacts.flat_map(|place| [place.odex, place.vdex]));
            wanted.push(apk.clone());
            wanted.push(dm_of(apk));
        }
        wanted.retain(|path| is_device_path(path));
        let listing = self.listed(package, &wanted)?;
        for apk in apks.iter().filter(|apk| is_device_path(apk)) {
            self.text(
                &format!("members of {apk}"),
                &format!("unzip -l {}", quoted(Path::new(apk))),
                &members_text(apk),
            )?;
        }
        let is_wanted = |path: &&String| [".odex", ".vdex", ".dm", ".dex"].iter().any(|end| path.ends_with(end));
        let unique: BTreeSet<&String> = wanted.iter().filter(is_wanted).collect();
        for path in unique {
            if let Some(size) = listing.get(Path::new(path)).and_then(|file| file.size) {
                self.file(path, size)?;
            }
        }
        Ok(())
    }

    /// Lists files by their names with every directory above them: for that a directory need only be searched, which adb's shell may,
    /// and not be read.
    fn listed(&mut self, package: &str, wanted: &[String]) -> Result<Listing, AdbError> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for path in wanted {
            names.extend(Path::new(path).ancestors().filter_map(Path::to_str));
        }
        let names: Vec<&str> = names.into_iter().collect();
        let mut all = Vec::new();
        for part in names.chunks(MOST_NAMES) {
            let words: Vec<String> = part.iter().map(|name| quoted(Path::new(name))).collect();
            let command = format!("ls -landZ {}", words.join(" "));
            let what = format!("files of {package} and the directories above them");
            let Some(answer) = self.answer(&what, &command, Some(LISTING))? else { continue };
            let absent: Vec<&str> =
                answer.stderr.lines().filter_map(absent).filter(|path| part.contains(path)).collect();
            if !absent.is_empty() {
                self.writer
                    .append(ABSENT, format!("{}\n", absent.join("\n")).as_bytes())
                    .map_err(AdbError::Unwritable)?;
            }
            all.extend_from_slice(&answer.stdout);
            all.push(b'\n');
        }
        Ok(Listing::parse(&all))
    }

    /// A file, or its head. What is not readable without root is noted.
    fn file(&mut self, path: &str, size: u64) -> Result<(), AdbError> {
        if self.taken.contains(path) {
            return Ok(());
        }
        let is_head = path.ends_with(".odex") || path.ends_with("@classes.dex") || size > MOST_WHOLE;
        if is_head {
            let command = format!("head -c {ODEX_HEAD} {}", quoted(Path::new(path)));
            if self.answer(&format!("the head of {path}"), &command, Some(&file_name(path)))?.is_some() {
                self.taken.insert(path.to_owned());
            }
            return Ok(());
        }
        (self.progress)(path);
        let name = file_name(path);
        let to = self.writer.place_of(&name).map_err(AdbError::Unwritable)?;
        let pulled = self.adb.pull(path, &to, MOST_WHOLE);
        let mut step = Step {
            what: format!("file {path}"),
            command: vec!["pull".to_owned(), path.to_owned()],
            file: None,
            bytes: 0,
            outcome: StepOutcome::Done,
            status: None,
            said: None,
            remedy: None,
        };
        match pulled {
            Ok(bytes) => {
                self.writer.count(&name, bytes).map_err(AdbError::Unwritable)?;
                self.taken.insert(path.to_owned());
                step.bytes = bytes;
                step.file = (bytes > 0).then_some(name);
                self.note(step, None)
            }
            Err(error @ AdbError::TooLarge { .. }) => {
                step.outcome = StepOutcome::Failed;
                step.remedy = Some(error.remedy().to_owned());
                step.said = Some(error.to_string());
                self.note(step, None)
            }
            Err(AdbError::Failed(said)) => {
                let is_refused = is_refusal(&said);
                step.outcome = if is_refused { StepOutcome::Refused } else { StepOutcome::Failed };
                step.remedy = Some(if is_refused { ROOT.to_owned() } else { "collect again".to_owned() });
                // `adb: error: failed to copy 'FROM' to 'TO': WHY`
                step.said = Some(said.rsplit("': ").next().unwrap_or(&said).to_owned());
                self.note(step, None)
            }
            Err(error) => self.broken(step, error),
        }
    }

    /// The output of a command as text, where there is any.
    fn text(&mut self, what: &str, command: &str, file: &str) -> Result<Option<String>, AdbError> {
        let answer = self.answer(what, command, Some(file))?;
        Ok(answer.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned()))
    }

    /// Runs a command and keeps its output. `None` where its answer is not whole.
    fn answer(&mut self, what: &str, command: &str, file: Option<&str>) -> Result<Option<ShellOutput>, AdbError> {
        (self.progress)(what);
        let mut step = Step {
            what: what.to_owned(),
            command: vec!["shell".to_owned(), command.to_owned()],
            file: file.map(str::to_owned),
            bytes: 0,
            outcome: StepOutcome::Done,
            status: None,
            said: None,
            remedy: None,
        };
        match self.adb.shell(command) {
            Ok(answer) => {
                self.keep(&mut step, &answer.stdout)?;
                step.status = Some(answer.status);
                judged(&mut step, &answer);
                self.note(step, None)?;
                Ok(Some(answer))
            }
            Err(Broken { error, kept }) => {
                self.keep(&mut step, &kept)?;
                self.broken(step, error)?;
                Ok(None)
            }
        }
    }

    fn keep(&mut self, step: &mut Step, bytes: &[u8]) -> Result<(), AdbError> {
        step.bytes = bytes.len() as u64;
        match (&step.file, bytes.is_empty()) {
            (Some(file), false) => {
                self.writer.append(file, bytes).map_err(AdbError::Unwritable)?;
                self.writer
                    .append(file, if file.starts_with("files/") { b"" } else { b"\n" })
                    .map_err(AdbError::Unwritable)
            }
            _ => {
                step.file = None;
                Ok(())
            }
        }
    }

    /// Notes a step that did not come to its end; an error where the next one would not either.
    fn broken(&mut self, mut step: Step, error: AdbError) -> Result<(), AdbError> {
        step.outcome = match error {
            AdbError::TimedOut { .. } => StepOutcome::TimedOut,
            AdbError::CutShort(_) => StepOutcome::CutShort,
            AdbError::Interrupted => StepOutcome::Interrupted,
            AdbError::Unwritable(_) => return Err(error),
            _ => StepOutcome::Disconnected,
        };
        step.said = Some(error.to_string());
        step.remedy = Some(error.remedy().to_owned());
        self.note(step, Some(error))
    }

    fn note(&mut self, step: Step, error: Option<AdbError>) -> Result<(), AdbError> {
        self.writer.note(step).map_err(AdbError::Unwritable)?;
        match error {
            None => {
                self.failures = 0;
                Ok(())
            }
            Some(error) if error.is_of_the_command() && self.failures + 1 < PATIENCE => {
                self.failures += 1;
                Ok(())
            }
            Some(error) => Err(error),
        }
    }
}

const ROOT: &str = "a device with root (`adb root`, userdebug builds); the audit does without it";

fn is_refusal(said: &str) -> bool {
    ["ermission denied", "ermission Denial"].iter().any(|words| said.contains(words))
}

/// How a command that came to its end is counted.
fn judged(step: &mut Step, answer: &ShellOutput) {
    let said = answer.stderr.trim();
    // A service that refuses says so on standard output.
    let is_refused = is_refusal(said) || answer.stdout.starts_with(b"Permission Denial");
    // That a file is not there is an answer.
    let rest = said.lines().filter(|line| absent(line).is_none()).count();
    if !is_refused && answer.status == 0 || (rest == 0 && !said.is_empty()) {
        return;
    }
    step.outcome = match (is_refused, answer.stdout.is_empty()) {
        (true, true) => StepOutcome::Refused,
        (true, false) => StepOutcome::PartlyRefused,
        (false, _) => StepOutcome::Failed,
    };
    let shown: String = said.lines().collect::<Vec<_>>().join("; ").chars().take(500).collect();
    step.said = Some(if shown.is_empty() { format!("it ended with status {}", answer.status) } else { shown });
    let missing = "the device has no such command, package or file: look at the package's name";
    step.remedy = Some(if is_refused { ROOT } else { missing }.to_owned());
}

/// The path in `ls: PATH: No such file or directory`, as toybox and GNU write it.
fn absent(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("ls: ")?.strip_suffix(": No such file or directory")?;
    Some(rest.strip_prefix("cannot access ").unwrap_or(rest).trim_matches('\''))
}

/// The dm file beside an APK.
fn dm_of(apk: &str) -> String {
    format!("{}.dm", apk.strip_suffix(".apk").unwrap_or(apk))
}

#[cfg(test)]
mod tests;

//! Variants of a build, built, launched and compared.
//!
//! Owns which variants there are ([`variants`]), what a build is given (flags, an order and an output path in its environment), building
//! each as the user whose build it is, the order they are linked by, and what is said of them ([`LayoutTrial`]). Leaves launches in
//! blocks, labs and what a difference means to `verify`, and the screen to `report`.
//!
//! A build is any command of a shell. It runs with the identity that the launches have: root's command runs it as the user who called
//! sudo. Nothing that it writes is parsed with privilege.

mod build;
mod ordering;
mod printed;
pub mod variants;

pub use printed::{BuiltFile, BuiltVariant, LayoutTrial, TRIAL_SCHEMA, VariantState};

use crate::order::Format;
use build::{Build, Made};
use slowpath_launch::Metric;
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::fresh_directory::FreshDirectory;
use slowpath_session::interrupt;
use slowpath_session::target::{Invocation, PATIENCE, Target};
use slowpath_tables::missing::declared;
use slowpath_verify::benchmark::{self, Benchmark, BenchmarkSettings, LaunchArm};
use slowpath_verify::conditions::Coldness;
use slowpath_verify::lab_session;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use variants::{BASELINE, LDFLAGS, OUTPUT, Variant, variant};

/// What stands for the binary in the command that is launched.
pub const PLACEHOLDER: &str = "{binary}";

/// How launches are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coolness {
    /// Warm, and cold where this machine can have a lab.
    Both,
    /// Cold alone.
    Cold(Coldness),
    /// Warm alone.
    Warm,
}

/// What is to be tried.
#[derive(Debug)]
pub struct Trial {
    /// The command that builds, for a shell.
    pub build: OsString,
    /// The variants; the baseline is built in any case.
    pub variants: Vec<&'static Variant>,
    /// The linker, where a variant is ordered.
    pub linker: &'static Format,
    /// Traces for the order; without any the baseline is traced.
    pub traces: Vec<PathBuf>,
    /// What is launched.
    pub command: Vec<OsString>,
    /// How.
    pub invocation: Invocation,
    /// How warm.
    pub coolness: Coolness,
}

/// Builds the variants, launches them in blocks, and says what they took.
///
/// # Errors
/// The baseline could not be built or launched, there is nothing to compare it with, or ctrl-C.
pub fn run(trial: &Trial, settings: &BenchmarkSettings, progress: &dyn Progress) -> Result<LayoutTrial, Failure> {
    if !trial.command.iter().any(|word| holds_placeholder(word)) {
        return Err(Failure::new(Kind::Usage, format!("the command has no {PLACEHOLDER}"))
            .hint(format!("write {PLACEHOLDER} in place of the built binary: -- {PLACEHOLDER} --version")));
    }
    let whose = Target::of(trial.invocation.clone(), vec![OsString::from("/bin/true")], None)?;
    whose.warnings.iter().for_each(|warning| progress.warn(warning));
    let directory = FreshDirectory::new(&whose.identity).map_err(|error| {
        Failure::new(Kind::Machine, format!("the directory for the builds could not be created: {error}"))
    })?;
    let wanted = wanted(&trial.variants);
    let is_ordered = wanted.iter().any(|variant| variant.ordered);
    let build = Build {
        command: &trial.build,
        user: trial.invocation.user.clone(),
        directory: directory.path(),
        linker: is_ordered.then_some(trial.linker),
    };
    let mut all: Vec<Made> = Vec::new();
    let mut ordered = None;
    for (number, variant) in wanted.iter().enumerate() {
        if variant.ordered && ordered.is_none() {
            progress.step("making the order");
            ordered = Some(order(trial, &build, &all)?);
        }
        progress.step(&format!("building {}", variant.name));
        let made = build.make(variant, number)?;
        if variant.name == BASELINE
            && let Some(reason) = &made.variant.reason
        {
            return Err(Failure::new(Kind::Target, format!("the baseline: {reason}"))
                .hint(format!("the command has to write the binary to ${OUTPUT}; its link has to take ${LDFLAGS}")));
        }
        all.push(compared_with_baseline(made, all.first()));
    }
    let mut notes: Vec<String> = ordered
        .iter()
        .map(|one| format!("the order has {} functions, made by algorithm {}", one.functions, one.algorithm))
        .collect();
    notes.extend(effects(&all));
    let arms = arms(trial, &all)?;
    if arms.len() < 2 {
        return Err(Failure::new(Kind::Usage, format!("no variant differs from the baseline: {}", reasons(&all)))
            .hint(format!("does the build command pass ${LDFLAGS} to its link?")));
    }
    let mut unavailable = Vec::new();
    let cold = cold(trial, settings, &arms, progress, &mut unavailable)?;
    // After ctrl-C what was measured cold is kept.
    let is_over = cold.is_some() && interrupt::requested();
    let goes_on = !is_over && !matches!(trial.coolness, Coolness::Cold(_));
    let metrics = [Metric::Wall, Metric::MinorFaults, Metric::PeakRss];
    let warm = goes_on.then(|| benchmark::run(&with(settings, &metrics), &arms, None, progress)).transpose()?;
    Ok(LayoutTrial {
        schema: TRIAL_SCHEMA.to_owned(),
        build: trial.build.to_string_lossy().into_owned(),
        command: trial.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        linker: is_ordered.then(|| trial.linker.name.to_owned()),
        ordered_functions: ordered.map(|one| one.functions),
        variants: all.into_iter().map(|made| made.variant).collect(),
        cold,
        warm,
        notes,
        unavailable,
    })
}

/// The baseline first, and each once.
fn wanted(asked: &[&'static Variant]) -> Vec<&'static Variant> {
    let mut wanted: Vec<&'static Variant> = variant(BASELINE).into_iter().collect();
    for one in asked {
        if !wanted.contains(one) {
            wanted.push(one);
        }
    }
    wanted
}

fn order(trial: &Trial, build: &Build<'_>, made: &[Made]) -> Result<ordering::Ordered, Failure> {
    let baseline = made.first().map(|made| made.path.as_path()).unwrap_or(Path::new(""));
    let target = target_of(trial, baseline)?;
    let (directory, path) = (build.directory, build.order());
    if trial.traces.is_empty() {
        ordering::of_launch(&target, directory, baseline, trial.linker, &path)
    } else {
        ordering::of_files(&target, directory, &trial.traces, trial.linker, &path)
    }
}

fn compared_with_baseline(mut made: Made, baseline: Option<&Made>) -> Made {
    if baseline.is_some_and(|baseline| made.digest.is_some() && made.digest == baseline.digest) {
        made.variant.state = VariantState::SameAsBaseline;
        made.variant.reason = Some("the same bytes as the baseline: the flags had no effect".to_owned());
    }
    made
}

/// What flags did not do, as the files themselves show.
fn effects(all: &[Made]) -> Vec<String> {
    let unpacked = all.iter().filter(|made| made.variant.state == VariantState::Built).filter(|made| {
        let asks = made.variant.variables.get(LDFLAGS).is_some_and(|flags| flags.contains("pack-relative-relocs"));
        let file = made.variant.file.as_ref();
        asks && file.is_some_and(|file| file.packed == Some(0) && file.relative.is_some_and(|count| count > 0))
    });
    let note = |made: &Made| {
        format!(
            "{}: its relocations are not packed: the linker does not know the flag, or the build does not pass it",
            made.variant.name
        )
    };
    unpacked.map(note).collect()
}

fn reasons(all: &[Made]) -> String {
    let reasons =
        all.iter().filter_map(|made| Some(format!("{}: {}", made.variant.name, made.variant.reason.as_ref()?)));
    reasons.collect::<Vec<_>>().join("; ")
}

fn arms(trial: &Trial, all: &[Made]) -> Result<Vec<LaunchArm>, Failure> {
    let built = all.iter().filter(|made| made.variant.state == VariantState::Built);
    built.map(|made| Ok(LaunchArm { name: made.variant.name.clone(), target: target_of(trial, &made.path)? })).collect()
}

fn target_of(trial: &Trial, binary: &Path) -> Result<Target, Failure> {
    let command = trial.command.iter().map(|word| with_binary(word, binary)).collect();
    Target::of(trial.invocation.clone(), command, Some(PATIENCE))
}

fn holds_placeholder(word: &OsStr) -> bool {
    word.as_bytes().windows(PLACEHOLDER.len()).any(|part| part == PLACEHOLDER.as_bytes())
}

fn with_binary(word: &OsStr, binary: &Path) -> OsString {
    let (bytes, mark) = (word.as_bytes(), PLACEHOLDER.as_bytes());
    let (mut text, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(mark) {
            text.extend_from_slice(binary.as_os_str().as_bytes());
            at += mark.len();
        } else {
            text.push(bytes[at]);
            at += 1;
        }
    }
    OsString::from_vec(text)
}

/// The settings with these metrics, unless others were asked for.
fn with(settings: &BenchmarkSettings, metrics: &[Metric]) -> BenchmarkSettings {
    let asked = settings.metrics.as_slice() != [Metric::Wall];
    let metrics = if asked { settings.metrics.clone() } else { metrics.to_vec() };
    BenchmarkSettings { metrics, ..settings.clone() }
}

fn cold(
    trial: &Trial,
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    progress: &dyn Progress,
    unavailable: &mut Vec<slowpath_tables::Unavailable>,
) -> Result<Option<Benchmark>, Failure> {
    let coldness = match trial.coolness {
        Coolness::Warm => return Ok(None),
        Coolness::Cold(coldness) => coldness,
        Coolness::Both => match lab_session::require("launch cold", true) {
            Ok(()) => Coldness::Lab,
            Err(failure) => {
                let remedy = "`slowpath doctor` says what this machine lacks";
                unavailable.push(declared::LAB.because(failure.chain(), remedy));
                return Ok(None);
            }
        },
    };
    let metrics = [Metric::Wall, Metric::BytesRead, Metric::PeakRss];
    benchmark::run(&with(settings, &metrics), arms, Some(coldness), progress).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_comes_first_and_each_variant_once() {
        let asked = ["relr", "baseline", "relr", "lazy"].map(|name| variant(name).unwrap());
        let names: Vec<&str> = wanted(&asked).iter().map(|one| one.name).collect();
        assert_eq!(names, [BASELINE, "relr", "lazy"]);
    }

    #[test]
    fn the_binary_stands_wherever_its_place_is_held() {
        let word = with_binary(OsStr::new("--run={binary}:{binary}"), Path::new("/t/x"));
        assert_eq!(word, "--run=/t/x:/t/x");
        assert!(holds_placeholder(OsStr::new("a{binary}")) && !holds_placeholder(OsStr::new("binary")));
    }
}

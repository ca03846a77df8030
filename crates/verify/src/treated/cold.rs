//! Cold launches in a lab with and without treatments: preload plans that are replayed beside them, other sizes of the readahead.
//!
//! Owns the arms, the plans of the shams, and how one launch of each arm is made and what it is in the comparison. Other treatments are
//! those of warm launches.

use super::Tried;
use crate::benchmark::{HINT, comparison_failure};
use crate::comparison::{Arm, ArmResult, Comparison, Made, Measured, NextBlock, Role, Sample, compare_until};
use crate::declared_arms::{self, DeclaredArm, SHAM_EMPTY, SHAM_READAHEAD, SHAM_UNRELATED};
use crate::lab_launch::{LaunchInLab, cold, warm};
use crate::lab_session::{InLab, UNRELATED, lab_failure};
use slowpath_fix::Treatment;
use slowpath_fix::preload_plan::{PlanOptions, PlannedFile, PlannedRange, PreloadPlan, Provenance, file};
use slowpath_lab::{KeptMounted, Lab, PageRun, Settings};
use slowpath_launch::{EndPolicy, LaunchSpec, Metric, StdioPolicy, measures};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::target::{Target, launcher};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, interrupt};
use slowpath_tables::{Bytes, PAGE_SIZE, Pages};
use std::path::Path;

/// An arm of cold launches, and what these have.
#[derive(Clone, Debug)]
pub struct ColdArm {
    /// As a comparison knows it.
    pub arm: Arm,
    /// Place of what it tries in the list of that; `None` for what it is compared with.
    pub tried: Option<usize>,
    treatment: Treatment,
}

impl ColdArm {
    fn beside(arm: &DeclaredArm, treatment: Treatment) -> Self {
        Self { arm: arm.arm(), tried: None, treatment }
    }
}

/// A cold launch, and one with everything in memory.
pub fn untreated() -> [ColdArm; 2] {
    [&declared_arms::COLD, &declared_arms::WARM].map(|arm| ColdArm::beside(arm, Treatment::None))
}

/// The arms: untreated launches, what is tried as far as a cold launch can have it, and the shams. `settings` are those of the other arms.
pub fn arms(tried: &[Tried], shams: &[ShamPlan], settings: Settings) -> Vec<ColdArm> {
    let mut arms = Vec::from(untreated());
    let treated = tried.iter().enumerate().filter_map(|(number, one)| {
        let sham = sham_of(&one.treatment)?.name.to_owned();
        let sham = (one.arm.role == Role::Fix).then_some(sham);
        let arm = Arm { sham, ..one.arm.clone() };
        Some(ColdArm { arm, tried: Some(number), treatment: one.treatment.clone() })
    });
    arms.extend(treated);
    arms.extend(shams.iter().map(|sham| {
        let plan = Treatment::PreloadPlan { file: sham.file(), sha256: None };
        ColdArm::beside(sham.arm, plan)
    }));
    if tried.iter().any(|one| matches!(one.treatment, Treatment::Readahead { .. })) {
        arms.push(ColdArm::beside(&SHAM_READAHEAD, Treatment::Readahead { kib: settings.read_ahead_kb }));
    }
    arms
}

/// The sham with which what gains like a treatment gains nothing by it; `None` of treatments that are none of a cold launch.
fn sham_of(treatment: &Treatment) -> Option<&'static DeclaredArm> {
    match treatment {
        Treatment::PreloadPlan { .. } => Some(&SHAM_EMPTY),
        Treatment::Readahead { .. } => Some(&SHAM_READAHEAD),
        Treatment::None
        | Treatment::Environment { .. }
        | Treatment::Files { .. }
        | Treatment::Regeneration { .. }
        | Treatment::PythonPreload { .. }
        | Treatment::Source { .. } => None,
    }
}

/// A preload plan with the effect of none, in a file beside those that are tried.
#[derive(Clone, Copy, Debug)]
pub struct ShamPlan {
    arm: &'static DeclaredArm,
    /// Bytes that it reads, of what no launch needs.
    pub bytes: Bytes,
}

impl ShamPlan {
    /// Writes the shams of a plan that reads `volume`, as the target's user: one that reads nothing, and one that reads as much of the
    /// lab's unrelated file.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_all(
        target: &Target,
        directory: &Path,
        lab: &Lab,
        volume: Bytes,
        provenance: &Provenance,
    ) -> Result<[Self; 2], Failure> {
        let size = lab.image().extra_size(Path::new(UNRELATED)).unwrap_or_default();
        let empty = PreloadPlan { provenance: provenance.clone(), ..PreloadPlan::default() };
        let unrelated = unrelated_plan(&lab.extra_path(Path::new(UNRELATED)), size, volume, provenance.clone());
        let plans = [(&SHAM_EMPTY, empty), (&SHAM_UNRELATED, unrelated)];
        let shams = plans.each_ref().map(|(arm, plan)| Self { arm, bytes: plan.bytes() });
        as_user(&target.identity, &Work::writing_beneath("writing the plans of the shams", directory), || {
            for (sham, (_, plan)) in shams.iter().zip(&plans) {
                let to = directory.join(sham.file());
                file::create(plan, &to).map_err(|error| {
                    Failure::new(Kind::Usage, format!("{} cannot be written: {error}", to.display()))
                })?;
            }
            Ok(())
        })?;
        Ok(shams)
    }

    /// Name of its arm.
    pub fn name(&self) -> &'static str {
        self.arm.name
    }

    fn file(&self) -> String {
        format!("{}.plan", self.arm.name)
    }
}

/// Ranges of the plan's usual size over the unrelated file of this size, as many bytes as the plan has.
fn unrelated_plan(path: &Path, size: Bytes, volume: Bytes, provenance: Provenance) -> PreloadPlan {
    let options = PlanOptions::default();
    let chunk = options.cap_bytes / PAGE_SIZE;
    let pages = volume.pages_up().min(size.pages_up()).0;
    let ranges = (0..pages)
        .step_by(chunk.max(1) as usize)
        .map(|first| PlannedRange { file: 0, page: Pages(first), pages: Pages(chunk.min(pages - first)) })
        .collect();
    let file = PlannedFile { path: path.to_string_lossy().into_owned(), size: size.0, mtime_ns: 0, build_id: None };
    PreloadPlan { provenance, options, files: vec![file], ranges }
}

/// Makes single launches.
pub struct ColdLaunches<'a> {
    target: &'a Target,
    lab: &'a mut Lab,
    /// Where the files of plans are.
    plans: &'a Path,
    /// The least that a launch is known to read.
    at_least: Bytes,
    /// Pages that launches are known to read; warm ones add to them.
    pages: &'a mut Vec<PageRun>,
    /// The conditions of all arms that have no others.
    settings: Settings,
    /// What the launch before has left in memory, for a warm one.
    kept: Option<KeptMounted>,
}

impl<'a> ColdLaunches<'a> {
    /// Launches of a target under the conditions that the lab has. Plans are files of the directory `plans`. `at_least` and `pages`: what a
    /// launch is known to read at least, and what any of them reads.
    pub fn new(
        target: &'a Target,
        lab: &'a mut Lab,
        plans: &'a Path,
        at_least: Bytes,
        pages: &'a mut Vec<PageRun>,
    ) -> Self {
        let settings = lab.settings();
        Self { target, lab, plans, at_least, pages, settings, kept: None }
    }

    /// Runs `most` blocks of all arms, or what `next(results, blocks done)` says.
    ///
    /// # Errors
    /// As [`compare_until`].
    pub fn compare(
        mut self,
        arms: &[ColdArm],
        most: usize,
        seed: u64,
        progress: &dyn Progress,
        next: impl FnMut(&[ArmResult], usize) -> NextBlock,
    ) -> Result<Comparison, Failure> {
        compare_until(
            arms.iter().map(|one| one.arm.clone()).collect(),
            most,
            seed,
            |arm, _| self.one(&arms[arm]),
            |Made { launches, planned, .. }| {
                progress.count("comparing launches", launches, planned);
                !interrupt::requested()
            },
            next,
        )
        .map_err(|error| comparison_failure(error, HINT))
    }

    /// One launch of an arm.
    ///
    /// # Errors
    /// It could not be made; a target that failed is none.
    pub fn one(&mut self, arm: &ColdArm) -> Result<Sample, Failure> {
        let kept = self.kept.take();
        let mut launched = match (arm.arm.role, &arm.treatment) {
            (Role::Warm, _) => self.warm(kept)?,
            (_, treatment) => {
                drop(kept);
                self.cold(treatment)?
            }
        };
        self.kept = launched.kept.take();
        Ok(sample(launched))
    }

    fn warm(&mut self, kept: Option<KeptMounted>) -> Result<LaunchInLab, Failure> {
        let target = self.target;
        let next = || target.spec(EndPolicy::KillTree, StdioPolicy::Capture).map_err(InLab);
        warm(self.lab, &mut launcher(), next, &mut interrupt::Interruptible, kept, self.pages)
            .map_err(|InLab(failure)| failure)
    }

    fn cold(&mut self, treatment: &Treatment) -> Result<LaunchInLab, Failure> {
        let (mut spec, _fresh) = self.target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        if let Treatment::PreloadPlan { file, .. } = treatment {
            spec = with_plan(spec, &self.plans.join(file));
        }
        let readahead = match treatment {
            Treatment::Readahead { kib } => Some(Settings { read_ahead_kb: *kib, ..self.settings }),
            _ => None,
        };
        if let Some(changed) = readahead {
            self.lab.set_settings(changed).map_err(failed(Kind::Machine))?;
        }
        // With another readahead nothing is kept: it would hold for the warm launch too.
        let keep = readahead.is_none();
        let hooks = &mut interrupt::Interruptible;
        let launched = cold(self.lab, &mut launcher(), spec, hooks, Some(self.at_least), keep);
        if readahead.is_some() {
            self.lab.set_settings(self.settings).map_err(failed(Kind::Machine))?;
        }
        launched.map_err(lab_failure)
    }
}

/// Puts the prefetcher before the command.
fn with_plan(mut spec: LaunchSpec, plan: &Path) -> LaunchSpec {
    let words = ["/proc/self/exe".into(), "preload".into(), "run".into(), plan.into(), "--".into()];
    spec.wrapper = Vec::from(words);
    spec
}

/// What a launch is in the comparison.
fn sample(launched: LaunchInLab) -> Sample {
    if interrupt::requested() {
        return Sample::Stopped;
    }
    if let Err(error) = launched.outcome.require_ready() {
        return Sample::Failed(error.to_string());
    }
    if let Some(reason) = launched.not_as_meant {
        return Sample::Discarded(reason);
    }
    let mut measures = measures(&launched.outcome);
    // The device's own counter: `ru_inblock` knows nothing of the prefetcher's reads.
    measures.insert(Metric::BytesRead, launched.io.bytes.0 as f64);
    let lacks_children = launched.outcome.usage.is_some_and(|usage| usage.lacks_children);
    Sample::Measured(Measured { measures, lacks_children, read_by_device: true, ..Measured::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_unrelated_file_is_named_by_its_own_size_and_read_as_far_as_the_plan_is_large() {
        let plan = |size, volume| unrelated_plan(Path::new("/x"), Bytes(size), Bytes(volume), Provenance::default());
        // A plan with another size than the file's would be skipped as a changed one.
        let read = plan(10_000_001, 300_000);
        assert_eq!((read.files[0].size, read.files[0].mtime_ns), (10_000_001, 0));
        assert_eq!(read.bytes(), Bytes(300_000).pages_up().bytes());
        assert_eq!(plan(10_000, 300_000).bytes(), Bytes(10_000));
        assert!(plan(10_000, 0).ranges.is_empty());
    }

    fn tried(name: &str, role: Role, treatment: Treatment) -> Tried {
        Tried { arm: Arm { name: name.to_owned(), title: String::new(), role, sham: None }, treatment }
    }

    #[test]
    fn each_treatment_of_a_cold_launch_is_an_arm_with_the_sham_of_its_kind() {
        let plan = || Treatment::PreloadPlan { file: "a.plan".to_owned(), sha256: None };
        let all = [
            tried("plan", Role::Fix, plan()),
            tried("variables", Role::Fix, Treatment::Environment { variables: BTreeMap::new() }),
            tried("rival", Role::Rival, plan()),
            tried("size", Role::Fix, Treatment::Readahead { kib: 512 }),
        ];
        let shams = [&SHAM_EMPTY, &SHAM_UNRELATED].map(|arm| ShamPlan { arm, bytes: Bytes(0) });
        let arms = arms(&all, &shams, Settings::default());
        let shown: Vec<_> =
            arms.iter().map(|one| (one.arm.name.as_str(), one.tried, one.arm.sham.as_deref())).collect();
        let expected = [
            ("cold", None, None),
            ("warm", None, None),
            ("plan", Some(0), Some("sham_empty")),
            ("rival", Some(2), None),
            ("size", Some(3), Some("sham_readahead")),
            ("sham_empty", None, None),
            ("sham_unrelated", None, None),
            ("sham_readahead", None, None),
        ];
        assert_eq!(shown, expected);
        // The device has what it has, by the same change.
        assert_eq!(arms[7].treatment, Treatment::Readahead { kib: Settings::default().read_ahead_kb });
    }

    #[test]
    fn without_another_readahead_there_is_no_sham_of_one() {
        let arms = arms(&[], &[], Settings::default());
        assert_eq!(arms.iter().map(|one| one.arm.name.as_str()).collect::<Vec<_>>(), ["cold", "warm"]);
    }
}

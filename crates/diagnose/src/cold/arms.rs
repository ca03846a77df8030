//! The arms of a diagnosis: plans as files, and how one launch of each arm is made.

use super::training::ReadByLaunches;
use crate::ArmSet;
use crate::plan_files::{trainings, write_plan};
use slowpath_analysis::io::merge::merge;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::{Order, PlanOptions, PlannedFile, PlannedRange, PreloadPlan, Provenance};
use slowpath_fix::{FixPlan, readahead_size};
use slowpath_lab::{KeptMounted, Lab, Settings};
use slowpath_launch::{EndPolicy, LaunchSpec, StdioPolicy};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::{Target, launcher};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_session::{Progress, interrupt};
use slowpath_tables::{Bytes, Pages};
use slowpath_verify::lab_session::{InLab, UNRELATED, lab_failure};
use slowpath_verify::{
    Arm, DeclaredArm, LaunchInLab, Measured, Metric, Role, Sample, cold, declared_arms, measures, warm,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What an arm does to the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing.
    Cold,
    /// Everything is in memory.
    Warm,
    /// The plan of this file is replayed beside the launch.
    Plan {
        /// The file.
        path: PathBuf,
        /// What it is for.
        kind: PlanKind,
    },
    /// The device reads ahead this much, in KiB.
    Readahead(u64),
}

/// An arm and its treatment.
#[derive(Clone, Debug)]
pub struct Treated {
    /// For the comparison.
    pub arm: Arm,
    /// For the launch.
    pub treatment: Treatment,
    /// Name of the fix, when it is one.
    pub fix: Option<&'static str>,
}

impl Treated {
    /// Whether it is the plan that is the fix, for which the prediction is made.
    pub fn is_the_fix(&self) -> bool {
        matches!(self.treatment, Treatment::Plan { kind: PlanKind::Fix, .. })
    }
}

/// A plan in a file.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PlanFile {
    /// Name of the arm.
    pub name: String,
    /// One line for the reader.
    pub title: String,
    /// The file.
    pub path: PathBuf,
    /// Bytes it asks for.
    pub bytes: Bytes,
    /// Options it was built with.
    pub options: PlanOptions,
    /// What is published of it, where it is the fix.
    pub fix: Option<FixPlan>,
    /// What it is for.
    kind: PlanKind,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PlanKind {
    /// The fix: what is predicted, published and applied.
    Fix,
    /// Without the fix's effect.
    Sham,
    /// What another tool would read.
    Rival,
    /// The fix with another option.
    Variant,
}

/// Name of the arm that is the fix.
pub const FIX: &str = slowpath_fix::preload_plan::NAME;

/// An arm that replays a plan: its name and title, what it is for, and how its plan is built.
struct Variant {
    name: &'static str,
    title: &'static str,
    kind: PlanKind,
    options: PlanOptions,
}

impl Variant {
    fn of(arm: &DeclaredArm, kind: PlanKind, options: PlanOptions) -> Self {
        Self { name: arm.name, title: arm.title, kind, options }
    }
}

fn variants(set: ArmSet) -> Vec<Variant> {
    let base = PlanOptions::default;
    let fix = Variant { name: FIX, title: "tight ranges in order of first use", kind: PlanKind::Fix, options: base() };
    let mut plans = vec![fix];
    if set != ArmSet::Quick {
        let whole_files = PlanOptions { whole_files: true, in_flight_bytes: None, ..base() };
        plans.push(Variant::of(&declared_arms::WHOLE_FILES, PlanKind::Rival, whole_files));
    }
    if set == ArmSet::Variants {
        let list = [
            (&declared_arms::ORDER_FILE, PlanOptions { order: Order::FileOffset, ..base() }),
            (&declared_arms::ORDER_RANDOM, PlanOptions { order: Order::Shuffled(1), ..base() }),
            (&declared_arms::GAP_0, PlanOptions { gap_pages: 0, ..base() }),
            (&declared_arms::GAP_8, PlanOptions { gap_pages: 8, ..base() }),
            (&declared_arms::GAP_32, PlanOptions { gap_pages: 32, ..base() }),
            (&declared_arms::CAP_64K, PlanOptions { cap_bytes: 64 << 10, ..base() }),
            (&declared_arms::CAP_1M, PlanOptions { cap_bytes: 1 << 20, ..base() }),
            (&declared_arms::THREADS_2, PlanOptions { threads: 2, ..base() }),
            (&declared_arms::THREADS_4, PlanOptions { threads: 4, ..base() }),
            (&declared_arms::IN_FLIGHT_4M, PlanOptions { in_flight_bytes: Some(4 << 20), ..base() }),
            (&declared_arms::ALL_AT_ONCE, PlanOptions { in_flight_bytes: None, ..base() }),
            (&declared_arms::METADATA, PlanOptions { metadata: true, ..base() }),
        ];
        plans.extend(list.into_iter().map(|(arm, options)| Variant::of(arm, PlanKind::Variant, options)));
    }
    plans
}

/// Builds and writes all plans of the set, as the target's user.
pub fn plans(
    set: ArmSet,
    target: &Target,
    directory: &Path,
    lab: &Lab,
    recordings: usize,
    progress: &dyn Progress,
) -> Result<Vec<PlanFile>, Failure> {
    let unrelated = lab.extra_path(Path::new(UNRELATED));
    let size = lab.image().extra_size(Path::new(UNRELATED)).unwrap_or_default();
    as_user(&target.identity, &Work::writing_beneath("making the plans", directory), || {
        let names: Vec<PathBuf> = (1..=recordings).map(|number| directory.join(format!("needed-{number}"))).collect();
        let (demands, recordings) = trainings(&names, |text| progress.warn(text))?;
        let merged = merge(&demands.iter().collect::<Vec<_>>());
        let provenance = Provenance { created: now_rfc3339(), command: target.words(), recordings };
        let mut files = Vec::new();
        for Variant { name, title, kind, options } in variants(set) {
            let plan = build(&merged, &options, provenance.clone()).plan;
            files.push(PlanFile::write(directory, name, title, kind, &plan)?);
        }
        let volume = files[0].bytes;
        let empty = PreloadPlan { provenance: provenance.clone(), ..PreloadPlan::default() };
        for (arm, plan) in [
            (&declared_arms::SHAM_EMPTY, &empty),
            (&declared_arms::SHAM_UNRELATED, &unrelated_plan(&unrelated, size, volume, provenance)),
        ] {
            files.push(PlanFile::write(directory, arm.name, arm.title, PlanKind::Sham, plan)?);
        }
        Ok(files)
    })
}

/// Ranges of the plan's usual size over the unrelated file of this size, as many bytes as the plan has.
fn unrelated_plan(path: &Path, size: Bytes, volume: Bytes, provenance: Provenance) -> PreloadPlan {
    let options = PlanOptions::default();
    let chunk = options.cap_bytes / slowpath_tables::PAGE_SIZE;
    let pages = volume.pages_up().min(size.pages_up()).0;
    let ranges = (0..pages)
        .step_by(chunk.max(1) as usize)
        .map(|first| PlannedRange { file: 0, page: Pages(first), pages: Pages(chunk.min(pages - first)) })
        .collect();
    let file = PlannedFile { path: path.to_string_lossy().into_owned(), size: size.0, mtime_ns: 0, build_id: None };
    PreloadPlan { provenance, options, files: vec![file], ranges }
}

impl PlanFile {
    /// Whether it is the fix.
    pub fn is_the_fix(&self) -> bool {
        self.kind == PlanKind::Fix
    }

    /// Whether it is there to read what nobody needs.
    pub fn is_sham_that_reads(&self) -> bool {
        self.kind == PlanKind::Sham && self.bytes > Bytes(0)
    }

    fn write(directory: &Path, name: &str, title: &str, kind: PlanKind, plan: &PreloadPlan) -> Result<Self, Failure> {
        let file = format!("{name}.plan");
        let path = directory.join(&file);
        write_plan(plan, &path)?;
        Ok(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            path,
            bytes: plan.bytes(),
            options: plan.options.clone(),
            fix: (kind == PlanKind::Fix && !plan.ranges.is_empty()).then(|| plan.fix_plan(&file)),
            kind,
        })
    }
}

/// A cold and a warm launch.
pub fn untreated() -> [Treated; 2] {
    [
        Treated { arm: declared_arms::COLD.arm(), treatment: Treatment::Cold, fix: None },
        Treated { arm: declared_arms::WARM.arm(), treatment: Treatment::Warm, fix: None },
    ]
}

/// The arms of the comparison.
pub fn choose(set: ArmSet, settings: Settings, plans: &[PlanFile]) -> Vec<Treated> {
    let mut arms = Vec::from(untreated());
    for plan in plans {
        let (role, fix) = match plan.kind {
            PlanKind::Fix => (Role::Fix, Some(FIX)),
            PlanKind::Variant => (Role::Fix, None),
            PlanKind::Sham => (Role::Sham, None),
            PlanKind::Rival => (Role::Rival, None),
        };
        arms.push(Treated {
            arm: Arm { name: plan.name.clone(), title: plan.title.clone(), role, sham: None },
            treatment: Treatment::Plan { path: plan.path.clone(), kind: plan.kind },
            fix,
        });
    }
    if set == ArmSet::Standard {
        for kib in readahead_size::LEVELS_KIB.into_iter().filter(|kib| *kib != settings.read_ahead_kb) {
            arms.push(Treated {
                arm: Arm { title: format!("readahead of {kib} KiB"), ..declared_arms::READAHEAD.of(&[&kib]) },
                treatment: Treatment::Readahead(kib),
                fix: Some(readahead_size::NAME),
            });
        }
    }
    arms
}

/// Puts the prefetcher before the command.
pub fn with_plan(mut spec: LaunchSpec, plan: &Path, report: Option<&Path>) -> LaunchSpec {
    let mut wrapper: Vec<OsString> = vec!["/proc/self/exe".into(), "preload".into(), "run".into(), plan.into()];
    if let Some(report) = report {
        wrapper.extend(["--report".into(), report.into()]);
    }
    wrapper.push("--".into());
    spec.wrapper = wrapper;
    spec
}

/// Makes single launches.
pub struct Launches<'a> {
    target: &'a Target,
    lab: &'a mut Lab,
    /// What launches are known to read; warm ones add to it.
    read: &'a mut ReadByLaunches,
    /// The conditions asked for.
    settings: Settings,
    /// What the launch before has left in memory, for a warm one.
    kept: Option<KeptMounted>,
}

impl<'a> Launches<'a> {
    /// Launches of a target. `read`: what they are known to read; `settings`: the conditions asked for.
    pub fn new(target: &'a Target, lab: &'a mut Lab, read: &'a mut ReadByLaunches, settings: Settings) -> Self {
        Self { target, lab, read, settings, kept: None }
    }

    /// One launch of an arm.
    pub fn one(&mut self, treated: &Treated) -> Result<Sample, Failure> {
        let target = self.target;
        let next = || target.spec(EndPolicy::KillTree, StdioPolicy::Capture);
        let mut hooks = interrupt::Interruptible;
        let kept = self.kept.take();
        let mut launched = match &treated.treatment {
            Treatment::Warm => {
                let next = || next().map_err(InLab);
                let launched = warm(self.lab, &mut launcher(), next, &mut hooks, kept, &mut self.read.pages);
                launched.map_err(|InLab(failure)| failure)?
            }
            treatment => {
                drop(kept);
                let (mut spec, _fresh) = next()?;
                if let Treatment::Plan { path, .. } = treatment {
                    spec = with_plan(spec, path, None);
                }
                let readahead = match treatment {
                    Treatment::Readahead(kib) => Some(Settings { read_ahead_kb: *kib, ..self.settings }),
                    _ => None,
                };
                if let Some(changed) = readahead {
                    self.lab.set_settings(changed).map_err(failed(Kind::Machine))?;
                }
                // With another readahead nothing is kept: it would hold for the warm launch too.
                let keep = readahead.is_none();
                let launched = cold(self.lab, &mut launcher(), spec, &mut hooks, Some(self.read.at_least), keep);
                if readahead.is_some() {
                    self.lab.set_settings(self.settings).map_err(failed(Kind::Machine))?;
                }
                launched.map_err(lab_failure)?
            }
        };
        self.kept = launched.kept.take();
        sample(launched)
    }
}

/// What a launch is in the comparison.
fn sample(launched: LaunchInLab) -> Result<Sample, Failure> {
    if interrupt::requested() {
        return Err(Failure::new(Kind::Interrupted, "interrupted; the recordings and the plan are kept"));
    }
    if let Err(error) = launched.outcome.require_ready() {
        return Ok(Sample::Failed(error.to_string()));
    }
    if let Some(reason) = launched.not_as_meant {
        return Ok(Sample::Discarded(reason));
    }
    let mut measures = measures(&launched.outcome);
    // The device's own counter: `ru_inblock` knows nothing of the prefetcher's reads.
    measures.insert(Metric::BytesRead, launched.io.bytes.0 as f64);
    let lacks_children = launched.outcome.usage.is_some_and(|usage| usage.lacks_children);
    Ok(Sample::Measured(Measured { measures, lacks_children, read_by_device: true, ..Measured::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn every_arm_that_is_not_the_fix_is_declared() {
        for set in [ArmSet::Quick, ArmSet::Standard, ArmSet::Variants] {
            for variant in variants(set).into_iter().filter(|variant| variant.kind != PlanKind::Fix) {
                assert!(declared_arms::named(variant.name).is_some(), "{}", variant.name);
            }
        }
    }
}

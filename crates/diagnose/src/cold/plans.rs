//! What a cold diagnosis tries, and what is published of it: preload plans as files, made from the trainings, and other sizes of the
//! readahead.
//!
//! Leaves arms, shams and launches to `verify`.

use crate::case::ArmSet;
use crate::plan_files::{trainings, write_plan};
use slowpath_analysis::io::merge::merge;
use slowpath_fix::preload_plan::build::build;
use slowpath_fix::preload_plan::{Order, PlanOptions, PreloadPlan, Provenance};
use slowpath_fix::{FixPlan, Treatment, readahead_size};
use slowpath_lab::Settings;
use slowpath_session::Progress;
use slowpath_session::failure::Failure;
use slowpath_session::recorded_launch::now_rfc3339;
use slowpath_session::target::Target;
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_tables::Bytes;
use slowpath_verify::declared_arms::{self, DeclaredArm};
use slowpath_verify::treated::Tried;
use slowpath_verify::{Arm, Role};
use std::path::{Path, PathBuf};

/// What is tried, and what it is to a reader.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The arm and its treatment.
    pub tried: Tried,
    /// Name of the fix, when it is one.
    pub fix: Option<&'static str>,
    /// What is published of it.
    pub plan: Option<FixPlan>,
    /// Whether the prediction is made for it: it is the plan that is the fix.
    pub is_predicted: bool,
}

/// A plan in a file.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// Bytes it asks for.
    pub bytes: Bytes,
    /// Options it was built with.
    pub options: PlanOptions,
    /// Name of the arm.
    name: String,
    /// One line for the reader.
    title: String,
    /// What launches of the arm have.
    treatment: Treatment,
    /// What is published of it, where it is the fix.
    fix: Option<FixPlan>,
    /// What it is for.
    kind: PlanKind,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum PlanKind {
    /// The fix: what is predicted, published and applied.
    Fix,
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

/// The plans of a set as files, the fix first, and what they were made from.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Plans {
    /// The plans.
    pub files: Vec<PlanFile>,
    /// What they were made from.
    pub provenance: Provenance,
}

/// Builds and writes all plans of the set, as the target's user.
pub fn plans(
    set: ArmSet,
    target: &Target,
    directory: &Path,
    recordings: usize,
    progress: &dyn Progress,
) -> Result<Plans, Failure> {
    as_user(&target.identity, &Work::writing_beneath("making the plans", directory), || {
        let names: Vec<PathBuf> = (1..=recordings).map(|number| directory.join(format!("needed-{number}"))).collect();
        let (demands, recordings) = trainings(&names, |text| progress.warn(text))?;
        let merged = merge(&demands.iter().collect::<Vec<_>>());
        let provenance = Provenance { created: now_rfc3339(), command: target.words(), recordings };
        let one = |variant: Variant| {
            let plan = build(&merged, &variant.options, provenance.clone()).plan;
            PlanFile::write(directory, variant, &plan)
        };
        let files = variants(set).into_iter().map(one).collect::<Result<_, _>>()?;
        Ok(Plans { files, provenance })
    })
}

impl Plans {
    /// The one that is the fix.
    pub fn fix(&self) -> Option<&PlanFile> {
        self.files.iter().find(|plan| plan.kind == PlanKind::Fix)
    }

    /// What is tried of a set, under the conditions `settings`.
    pub fn candidates(&self, set: ArmSet, settings: Settings) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = self.files.iter().map(PlanFile::candidate).collect();
        if set == ArmSet::Standard {
            let sizes = readahead_size::plans(settings.read_ahead_kb).into_iter();
            all.extend(sizes.map(|plan| Candidate {
                tried: Tried::fix(&plan),
                fix: Some(readahead_size::NAME),
                plan: Some(plan),
                is_predicted: false,
            }));
        }
        all
    }
}

impl PlanFile {
    fn candidate(&self) -> Candidate {
        let role = if self.kind == PlanKind::Rival { Role::Rival } else { Role::Fix };
        let is_fix = self.kind == PlanKind::Fix;
        let (name, title) = (self.name.clone(), self.title.clone());
        Candidate {
            tried: Tried { arm: Arm { name, title, role, sham: None }, treatment: self.treatment.clone() },
            fix: is_fix.then_some(FIX),
            plan: self.fix.clone(),
            is_predicted: is_fix,
        }
    }

    fn write(directory: &Path, variant: Variant, plan: &PreloadPlan) -> Result<Self, Failure> {
        let Variant { name, title, kind, .. } = variant;
        let file = format!("{name}.plan");
        let path = directory.join(&file);
        write_plan(plan, &path)?;
        let described = plan.fix_plan(&file);
        Ok(Self {
            path,
            bytes: plan.bytes(),
            options: plan.options.clone(),
            name: name.to_owned(),
            title: title.to_owned(),
            treatment: described.treatment.clone(),
            fix: (kind == PlanKind::Fix && !plan.ranges.is_empty()).then_some(described),
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_that_is_not_the_fix_is_declared() {
        for set in [ArmSet::Quick, ArmSet::Standard, ArmSet::Variants] {
            for variant in variants(set).into_iter().filter(|variant| variant.kind != PlanKind::Fix) {
                assert!(declared_arms::named(variant.name).is_some(), "{}", variant.name);
            }
        }
    }

    #[test]
    fn other_sizes_of_the_readahead_are_tried_and_published_under_one_name() {
        let plans = Plans { files: Vec::new(), provenance: Provenance::default() };
        let candidates = plans.candidates(ArmSet::Standard, Settings::default());
        assert_eq!(candidates.len(), 3);
        for candidate in candidates {
            let plan = candidate.plan.unwrap();
            assert_eq!((plan.name, plan.treatment), (candidate.tried.arm.name, candidate.tried.treatment));
            assert_eq!(candidate.fix, Some(plan.fix.as_str()));
        }
        assert!(plans.candidates(ArmSet::Quick, Settings::default()).is_empty());
    }
}

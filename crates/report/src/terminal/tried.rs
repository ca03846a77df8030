//! What the answer says of the arms that were tried.
//!
//! The fix of the tool leads, even where a rival gained more; other fixes and rivals come second, sham arms last and
//! only where they changed the launch.

use super::figures;
use super::line::{Line, Paint};
use super::style::Style;
use slowpath_diagnose::printed::{ArmRole, Decision, Diagnosis, Verdict};
use slowpath_tables::Quantity;
use slowpath_verify::printed::Outcome;

/// Role of the arm that a verdict judges. What was never launched is a fix that could not be tried.
fn role(diagnosis: &Diagnosis, verdict: &Verdict) -> ArmRole {
    diagnosis.launch.arms.iter().find(|arm| arm.name == verdict.arm).map_or(ArmRole::Fix, |arm| arm.role)
}

fn of_role(diagnosis: &Diagnosis, wanted: ArmRole) -> impl Iterator<Item = &Verdict> {
    diagnosis.verdicts.iter().filter(move |verdict| role(diagnosis, verdict) == wanted)
}

/// Change against the baseline; none counts as none.
fn change(verdict: &Verdict) -> f64 {
    verdict.measured.map_or(0.0, |measured| measured.value)
}

fn fastest<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Option<&'a Verdict> {
    verdicts.min_by(|a, b| change(a).total_cmp(&change(b)))
}

/// Whether the verdict is on a sham arm that showed no effect.
pub(crate) fn is_silent_sham(diagnosis: &Diagnosis, verdict: &Verdict) -> bool {
    role(diagnosis, verdict) == ArmRole::Sham
        && matches!(verdict.outcome, Outcome::NoDifference | Outcome::Inconclusive)
}

/// The fix to lead with: the first that can be kept (arms without a fix are variants of one), or the best of the others.
fn main_fix(diagnosis: &Diagnosis) -> Option<&Verdict> {
    let fixes = || of_role(diagnosis, ArmRole::Fix).filter(|verdict| verdict.decision != Some(Decision::NotTried));
    fixes()
        .find(|verdict| verdict.fix.is_some())
        .or_else(|| fastest(fixes().filter(|verdict| verdict.outcome == Outcome::Helps)))
        .or_else(|| fastest(fixes()))
}

/// The sentences about what was tried, each with a space before it.
pub(crate) fn sentences(diagnosis: &Diagnosis, style: &Style) -> String {
    let Some(main) = main_fix(diagnosis) else {
        return format!(" No fix was tried.{}", others(diagnosis, None, style));
    };
    let rest = others(diagnosis, Some(main), style);
    if main.outcome != Outcome::Helps {
        let mut tried = of_role(diagnosis, ArmRole::Fix).chain(of_role(diagnosis, ArmRole::Rival));
        if tried.all(|verdict| verdict.outcome != Outcome::Helps) {
            return format!(" Nothing that was tried made a cold launch measurably faster.{rest}");
        }
        return format!(" {} did not make a cold launch measurably faster.{rest}", main.arm);
    }
    let name = main.fix.as_ref().unwrap_or(&main.arm);
    let mut text = format!(" {name} makes it");
    if let Some(measured) = main.measured {
        let saving = -measured;
        let said = if is_rough(&saving) { figures::with_interval } else { figures::value };
        text.push_str(&format!(" {} faster", said(&saving, style)));
    } else {
        text.push_str(" faster");
    }
    if let Some(against) = main.against_sham {
        text.push_str(&format!(" ({} against the sham)", figures::value(&-against, style)));
    }
    if let Some(gap) = diagnosis.share_of_gap_removed.iter().find(|gap| gap.arm == main.arm) {
        let share = Quantity { low: None, high: None, ..gap.share };
        text.push_str(&format!(" and removes {} of the cold-warm difference", figures::value(&share, style)));
    }
    text + "." + &rest
}

/// What shams that changed the launch mean: one that is better explains what a fix seemed to gain, one that is worse does not.
pub(super) fn sham_sentences(better: &[String], worse: &[String]) -> String {
    let mut text = String::new();
    if !better.is_empty() {
        text.push_str(&format!(" But a sham helps too: {}.", better.join(", ")));
    }
    if !worse.is_empty() {
        text.push_str(&format!(" A sham is slower, which takes nothing from a fix: {}.", worse.join(", ")));
    }
    text
}

/// The line below a measured change that states it against the sham. A fix that is withdrawn has no gain that a sham could explain.
pub(super) fn against_sham(verdict: &Verdict, style: &Style) -> Option<Line> {
    let change = verdict.against_sham.filter(|_| verdict.decision != Some(Decision::Withdrawn))?;
    Some(Line::of(Paint::Quiet, &format!("    against the sham {}", figures::with_interval(&change, style)), style))
}

/// Whether a number alone would say more than is known: its interval is wider than itself.
fn is_rough(quantity: &Quantity) -> bool {
    quantity.low.zip(quantity.high).is_some_and(|(low, high)| high - low > quantity.value.abs())
}

/// Other arms that changed the launch: the best of the other fixes, the best rival, and every sham arm.
fn others(diagnosis: &Diagnosis, main: Option<&Verdict>, style: &Style) -> String {
    let helped = |wanted| {
        let different = move |verdict: &&Verdict| main.is_none_or(|main| main.arm != verdict.arm);
        fastest(of_role(diagnosis, wanted).filter(different).filter(|verdict| verdict.outcome == Outcome::Helps))
    };
    let with_change = |verdict: &Verdict| {
        let measured = verdict.measured.map_or_else(|| "not measured".to_owned(), |q| figures::value(&q, style));
        format!("{} {measured}", verdict.arm)
    };
    let beside: Vec<String> =
        [ArmRole::Fix, ArmRole::Rival].into_iter().filter_map(|role| helped(role).map(with_change)).collect();
    let shams = |outcome| -> Vec<String> {
        of_role(diagnosis, ArmRole::Sham).filter(|verdict| verdict.outcome == outcome).map(with_change).collect()
    };
    let mut text = String::new();
    if !beside.is_empty() {
        text.push_str(&format!(" Also faster: {}.", beside.join(", ")));
    }
    text + &sham_sentences(&shams(Outcome::Helps), &shams(Outcome::Hurts))
}

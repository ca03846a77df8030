//! The fix `avoid_copy`: the program uses data where they lie, without a copy of them.
//!
//! Owns saying where: the functions that copy in and that copy back, each with file and line, and their stacks, from the finding's
//! evidence. It is a change of the source, so slowpath predicts what it saves, each copy by itself, and does not try it.

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Trial};
use crate::proposal::Proposal;
use crate::proposal_per_finding;
use crate::source_place::{function_at, plan_in_source};
use slowpath_analysis::Finding;
use slowpath_analysis::finding::Row;
use slowpath_analysis::memory::memory_fixes::AVOID_COPY;

/// The fix.
pub const FIX: Declaration = Declaration {
    name: AVOID_COPY,
    former: &["look_in_place"],
    title: "data are used where they are, without a copy",
    what: "The program works on the data in place instead of copying them into a buffer and back.",
    why: "Both copies, and the faults of the buffer, are saved.",
    price: "a lock or a second buffer where others write the data; data that another process can change must be \
            checked once more",
    by_hand: "in the source, at the places that the finding names",
    trial: "not by slowpath: it is a change of the source",
    propose: Some(proposals),
};

/// One proposal a finding: each is another place in the source.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    proposal_per_finding::proposals(case.findings, plan)
}

fn plan(finding: &Finding, number: &str) -> FixPlan {
    let how = finding.fix_inputs.way(AVOID_COPY);
    let copies = ["copy in", "copy back"].map(|copy| (copy, with(finding, "copy", copy), with(finding, "saved", copy)));
    let place = |row: Option<&Row>| row.and_then(function_at).unwrap_or_else(|| "unknown code".to_owned());
    let places = copies.map(|(_, site, _)| place(site)).join(" and ");
    let changes = copies.map(|(copy, site, saved)| Change {
        what: format!("the source: the {copy}, {}", place(site)),
        from: site.and_then(|row| Some(format!("called by {}", row.get("stack")?.as_str()?))),
        to: match saved.and_then(saving) {
            Some(saving) => format!("nothing: it saves {saving}"),
            None => "nothing".to_owned(),
        },
    });
    FixPlan {
        changes: changes.to_vec(),
        side_effects: vec![
            "the data must not change while they are used: writers have to wait, or to write elsewhere".to_owned(),
        ],
        price: "a lock or a second buffer, where others write the data".to_owned(),
        security_cost:
            "data that another process can change are checked and used in place: it can change them between the two"
                .to_owned(),
        trial: Trial {
            possible: false,
            how: format!("change the source: {}", how.unwrap_or("use the data where they lie")),
        },
        ..plan_in_source(AVOID_COPY, number, &places)
    }
}

/// The first row of evidence in which a column has this text.
fn with<'a>(finding: &'a Finding, column: &str, text: &str) -> Option<&'a Row> {
    let mut rows = finding.evidence.iter().flat_map(|evidence| &evidence.rows);
    rows.find(|row| row.get(column).and_then(|value| value.as_str()) == Some(text))
}

/// `12.0 ms (8.0 to 17.0)`.
fn saving(row: &Row) -> Option<String> {
    let number = |column: &str| row.get(column)?.as_f64();
    Some(format!("{:.1} ms ({:.1} to {:.1})", number("saved_ms")?, number("low_ms")?, number("high_ms")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, proposed};
    use slowpath_analysis::finding::row;
    use slowpath_tables::{Quantity, Unit};

    #[test]
    fn both_places_in_the_source_are_shown_with_what_each_copy_costs() {
        let mut one = finding(AVOID_COPY, 10.0);
        one.evidence[0].rows.extend([
            row([
                ("saved", "copy in".into()),
                ("saved_ms", 6.0.into()),
                ("low_ms", 4.0.into()),
                ("high_ms", 9.0.into()),
            ]),
            row([
                ("copy", "copy in".into()),
                ("function", "capture".into()),
                ("source_file", "/src/video.cpp".into()),
                ("source_line", 151.into()),
                ("stack", "main;capture;memcpy".into()),
            ]),
            row([("copy", "copy back".into()), ("function", "deliver".into()), ("file", "libvideo.so".into())]),
        ]);
        let made = proposed(&FIX, &[one], &crate::Program::default(), &[], &Machine::default()).remove(0);
        assert_eq!(made.plan.title, "in the source: capture (video.cpp:151) and deliver in libvideo.so");
        let shown: Vec<_> =
            made.plan.changes.iter().map(|change| (change.from.as_deref(), change.to.as_str())).collect();
        let saves = "nothing: it saves 6.0 ms (4.0 to 9.0)";
        assert_eq!(shown, [(Some("called by main;capture;memcpy"), saves), (None, "nothing")]);
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(!made.plan.trial.possible && made.gap.is_none());
        assert_eq!(made.plan.trial.how, "change the source: keep one block");
    }

    #[test]
    fn without_evidence_of_who_copies_it_says_so_and_several_places_are_several_plans() {
        let findings = [finding(AVOID_COPY, 2.0), finding(AVOID_COPY, 1.0)];
        let made = proposed(&FIX, &findings, &crate::Program::default(), &[], &Machine::default());
        let shown: Vec<_> = made.iter().map(|one| (one.plan.name.as_str(), one.plan.title.as_str())).collect();
        let unknown = "in the source: unknown code and unknown code";
        assert_eq!(shown, [("avoid_copy 1", unknown), ("avoid_copy 2", unknown)]);
    }
}

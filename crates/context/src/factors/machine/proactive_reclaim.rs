//! Reclaim with memory to spare: schemes of DAMON, the kernel's monitor of accesses, that page out what nobody has touched for a while.
//!
//! Reads the schemes of the sysfs interface (`mm/damon/sysfs-schemes.c`) and those of the kernel's own, `damon_reclaim`
//! (`mm/damon/reclaim.c`). Who writes `memory.reclaim` from user space leaves nothing that could be read.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::place::{Missing, Place};
use crate::reading::{Reading, Value};
use crate::subject::Subject;
use crate::toggles::OF_MACHINE;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The factor.
pub const PROACTIVE_RECLAIM: Factor = Factor {
    name: "proactive_reclaim",
    former: Former::NONE,
    title: "proactive reclaim",
    by_hand: "`grep -r . /sys/kernel/mm/damon/admin/kdamonds/*/contexts/*/schemes/*/{action,access_pattern/age/min}`; `grep . \
              /sys/kernel/mm/damon/admin/kdamonds/*/state /sys/module/damon_reclaim/parameters/{enabled,min_age}`",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(REMEDIES),
    toggle: OF_MACHINE,
};

const REMEDIES: &[(&str, &str)] = &[(
    "demand a higher age of the scheme (access_pattern/age/min, min_age), or lock what a start needs (mlock, vmtouch -l)",
    "memory: it stays in use where the machine, or who rents it out, wanted it back",
)];

const KDAMONDS: &str = "sys/kernel/mm/damon/admin/kdamonds";
const RECLAIM: &str = "sys/module/damon_reclaim/parameters";

fn read(subject: &Subject<'_>) -> Reading {
    let sources = [of_sysfs(subject.place()), of_damon_reclaim(subject.place())];
    let unread = sources.iter().filter_map(|source| source.as_ref().err());
    let is_answered = sources.iter().any(Result::is_ok);
    // Who has one of the two interfaces can have no scheme in the other; what was refused could be one.
    match unread.min_by_key(|missing| **missing == Missing::Absent) {
        Some(missing) if !is_answered || *missing != Missing::Absent => {
            Reading::missing(missing, "this kernel reclaims under pressure only")
        }
        _ => Reading::known(Value::Set(sources.into_iter().flatten().flatten().collect())),
    }
}

/// What schemes that run and page out do.
fn of_sysfs(place: &Place) -> Result<BTreeSet<String>, Missing> {
    let mut found = BTreeSet::new();
    for kdamond in numbered(place, KDAMONDS)? {
        if place.read(&format!("{kdamond}/state"))?.trim() != "on" {
            continue;
        }
        for context in numbered(place, &format!("{kdamond}/contexts"))? {
            for scheme in numbered(place, &format!("{context}/schemes"))? {
                if place.read(&format!("{scheme}/action"))?.trim() == "pageout" {
                    found.insert(scheme_in_words(place, &context, &scheme)?);
                }
            }
        }
    }
    Ok(found)
}

/// The directories of a directory whose names are numbers.
fn numbered(place: &Place, directory: &str) -> Result<Vec<String>, Missing> {
    let names = place.list(directory)?.into_iter().filter(|name| name.parse::<u32>().is_ok());
    Ok(names.map(|name| format!("{directory}/{name}")).collect())
}

fn scheme_in_words(place: &Place, context: &str, scheme: &str) -> Result<String, Missing> {
    let number = |path: String| number(place, &path);
    // The age counts aggregation intervals (Documentation/admin-guide/mm/damon/usage.rst).
    let age = number(format!("{scheme}/access_pattern/age/min"))?;
    let interval_us = number(format!("{context}/monitoring_attrs/intervals/aggr_us"))?;
    let whose = match place.read(&format!("{context}/operations"))?.trim() {
        "paddr" => "any memory",
        _ => "memory of some processes",
    };
    let mut words = format!("DAMON pages out {whose} idle for {} s", seconds(age.saturating_mul(interval_us)));
    let (bytes, ms) =
        (number(format!("{scheme}/quotas/bytes"))?, number(format!("{scheme}/quotas/reset_interval_ms"))?);
    if bytes > 0 && ms > 0 {
        // Writing to a string cannot fail.
        let _ = write!(words, ", at most {} MiB in {} s", bytes >> 20, seconds(ms.saturating_mul(1000)));
    }
    Ok(words)
}

fn of_damon_reclaim(place: &Place) -> Result<BTreeSet<String>, Missing> {
    if place.read(&format!("{RECLAIM}/enabled"))?.trim() != "Y" {
        return Ok(BTreeSet::new());
    }
    let age_us = number(place, &format!("{RECLAIM}/min_age"))?;
    Ok(BTreeSet::from([format!("damon_reclaim pages out any memory idle for {} s", seconds(age_us))]))
}

fn number(place: &Place, path: &str) -> Result<u64, Missing> {
    let text = place.read(path)?;
    text.trim().parse().map_err(|_| Missing::Failed(format!("/{path} holds no number")))
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "pages of files leave the page cache and memory is swapped out with any amount of memory free: a start after a pause reads them \
         from the device again. Ages are those of regions of physical memory: pages that were read a moment ago can go, too",
        "Documentation/admin-guide/mm/damon/usage.rst; Documentation/admin-guide/mm/damon/reclaim.rst",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn write(directory: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn read_copy(directory: &Path) -> Reading {
        let place = Place::Saved(directory.to_owned());
        read(&Subject::process(&place, "", None))
    }

    /// The files of a scheme as Linux 6.18 has them.
    fn scheme(directory: &Path, state: &str, action: &str, operations: &str) {
        let context = format!("{KDAMONDS}/0/contexts/0");
        write(
            directory,
            &[
                (&format!("{KDAMONDS}/nr_kdamonds"), "1\n"),
                (&format!("{KDAMONDS}/0/state"), state),
                (&format!("{context}/operations"), operations),
                (&format!("{context}/monitoring_attrs/intervals/aggr_us"), "5000000\n"),
                (&format!("{context}/schemes/nr_schemes"), "1\n"),
                (&format!("{context}/schemes/0/action"), action),
                (&format!("{context}/schemes/0/access_pattern/age/min"), "12\n"),
                (&format!("{context}/schemes/0/quotas/bytes"), "134217728\n"),
                (&format!("{context}/schemes/0/quotas/reset_interval_ms"), "1000\n"),
            ],
        );
    }

    fn words(reading: &Reading) -> Vec<&str> {
        match reading.value() {
            Some(Value::Set(words)) => words.iter().map(String::as_str).collect(),
            _ => panic!("{reading:?}"),
        }
    }

    #[test]
    fn schemes_that_run_and_page_out_are_told_with_their_age_and_quota() {
        let directory = tempfile::tempdir().unwrap();
        scheme(directory.path(), "on\n", "pageout\n", "paddr\n");
        write(
            directory.path(),
            &[(&format!("{RECLAIM}/enabled"), "Y\n"), (&format!("{RECLAIM}/min_age"), "120500000\n")],
        );
        let expected = [
            "DAMON pages out any memory idle for 60 s, at most 128 MiB in 1 s",
            "damon_reclaim pages out any memory idle for 120.5 s",
        ];
        assert_eq!(words(&read_copy(directory.path())), expected);
        write(directory.path(), &[(&format!("{RECLAIM}/enabled"), "N\n")]);
        assert_eq!(words(&read_copy(directory.path())), expected[..1]);
        write(
            directory.path(),
            &[
                (&format!("{KDAMONDS}/0/contexts/0/schemes/0/quotas/bytes"), "0\n"),
                (&format!("{KDAMONDS}/0/contexts/0/operations"), "vaddr\n"),
            ],
        );
        assert_eq!(words(&read_copy(directory.path())), ["DAMON pages out memory of some processes idle for 60 s"]);
    }

    #[test]
    fn schemes_that_are_off_or_do_something_else_page_nothing_out() {
        for (state, action) in [("off\n", "pageout\n"), ("on\n", "stat\n")] {
            let directory = tempfile::tempdir().unwrap();
            scheme(directory.path(), state, action, "paddr\n");
            write(directory.path(), &[(&format!("{RECLAIM}/enabled"), "N\n")]);
            assert_eq!(words(&read_copy(directory.path())), Vec::<&str>::new());
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_none() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(read_copy(directory.path()), Reading::Unavailable { .. }));
        scheme(directory.path(), "on\n", "pageout\n", "paddr\n");
        write(directory.path(), &[(&format!("{KDAMONDS}/0/contexts/0/schemes/0/access_pattern/age/min"), "x\n")]);
        assert!(
            matches!(read_copy(directory.path()), Reading::Unavailable { reason, .. } if reason.contains("age/min"))
        );
    }
}

//! Reclaim with memory to spare: schemes of DAMON, the kernel's monitor of accesses, that page out what nobody has touched for a while.
//!
//! Reads the schemes of the sysfs interface (`mm/damon/sysfs-schemes.c`) and those of the kernel's own, `damon_reclaim`
//! (`mm/damon/reclaim.c`). Who writes `memory.reclaim` from user space leaves nothing that could be read.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::{KernelFiles, Missing};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::OF_MACHINE;
use std::collections::BTreeSet;

/// The factor.
pub const PROACTIVE_RECLAIM: Factor = Factor {
    name: "proactive_reclaim",
    former: Former::NONE,
    title: "proactive reclaim",
    what: "Schemes of DAMON, the kernel's access monitor, that page out what nobody accessed for a while, with \
           memory to spare: those in sysfs, and the kernel's own DAMON_RECLAIM.",
    why: "Pages of files leave the page cache, or memory is swapped out: a start after a pause reads them from the \
          device again. Ages are those of regions of physical memory, so pages that were accessed a moment ago can \
          go too.",
    by_hand: "`grep -r . /sys/kernel/mm/damon/admin/kdamonds /sys/module/damon_reclaim/parameters`, as root",
    scope: Scope::Machine,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "demand a higher age of the scheme (access_pattern/age/min, min_age), or lock what a start needs (mlock, vmtouch -l)",
        "memory: it stays in use where the machine, or who rents it out, wanted it back",
    )]),
    toggle: OF_MACHINE,
};

const KDAMONDS: &str = "sys/kernel/mm/damon/admin/kdamonds";
const RECLAIM: &str = "sys/module/damon_reclaim/parameters";

fn read(task: &TaskFiles<'_>) -> Reading {
    let sources = [of_sysfs(task.kernel_files()), of_damon_reclaim(task.kernel_files())];
    let refused = sources.iter().filter_map(|source| source.as_ref().err());
    // What failed counts before what is missing: of a copy nobody knows whether that kernel has both interfaces.
    let refused = refused
        .min_by_key(|missing| [Missing::NotSaved, Missing::Absent].iter().position(|one| one == *missing))
        .cloned();
    let schemes: BTreeSet<String> = sources.into_iter().flatten().flatten().collect();
    match refused {
        Some(Missing::Denied) => Reading::unavailable("the kernel reports it to root alone", "run it as root"),
        Some(missing) if missing != Missing::Absent && (missing != Missing::NotSaved || schemes.is_empty()) => {
            Reading::missing(&missing, "")
        }
        _ if schemes.is_empty() => Reading::absent("this machine reclaims under pressure only"),
        _ => Reading::known(Value::Set(schemes)),
    }
}

/// What schemes that run and page out do.
fn of_sysfs(kernel_files: &KernelFiles) -> Result<BTreeSet<String>, Missing> {
    let mut found = BTreeSet::new();
    for kdamond in numbered(kernel_files, KDAMONDS)? {
        if word(kernel_files, &format!("{kdamond}/state"))? != "on" {
            continue;
        }
        for context in numbered(kernel_files, &format!("{kdamond}/contexts"))? {
            for scheme in numbered(kernel_files, &format!("{context}/schemes"))? {
                if word(kernel_files, &format!("{scheme}/action"))? == "pageout" {
                    found.insert(scheme_in_words(kernel_files, &context, &scheme).map_err(seen_in_part)?);
                }
            }
        }
    }
    Ok(found)
}

/// A scheme that runs is there, whatever is missing of it.
fn seen_in_part(missing: Missing) -> Missing {
    match missing {
        Missing::Absent | Missing::NotSaved => Missing::Failed("a scheme that runs lacks a file".to_owned()),
        other => other,
    }
}

/// The directories of a directory whose names are numbers.
fn numbered(kernel_files: &KernelFiles, directory: &str) -> Result<Vec<String>, Missing> {
    let names = kernel_files.list(directory)?.into_iter().filter(|name| name.parse::<u32>().is_ok());
    Ok(names.map(|name| format!("{directory}/{name}")).collect())
}

/// Documentation/admin-guide/mm/damon/usage.rst says what the files hold: an age counts aggregation intervals, and an access is one that
/// was seen in a sample of such an interval.
fn scheme_in_words(kernel_files: &KernelFiles, context: &str, scheme: &str) -> Result<String, Missing> {
    let of_scheme = |name: &str| number(kernel_files, &format!("{scheme}/{name}"));
    let interval_us = number(kernel_files, &format!("{context}/monitoring_attrs/intervals/aggr_us"))?;
    let age_us = of_scheme("access_pattern/age/min")?.saturating_mul(interval_us);
    let whose = match word(kernel_files, &format!("{context}/operations"))?.as_str() {
        "paddr" => "physical memory",
        _ => "memory of some processes",
    };
    let mut parts = vec![format!("DAMON pages out {whose} idle for {} s", seconds(age_us))];
    let accesses = of_scheme("access_pattern/nr_accesses/max")?;
    if accesses > 0 {
        parts.push(format!("idle: at most {accesses} accesses seen in {} s", seconds(interval_us)));
    }
    let (bytes, ms) = (of_scheme("quotas/bytes")?, of_scheme("quotas/reset_interval_ms")?);
    if bytes > 0 && ms > 0 {
        parts.push(format!("at most {} KiB in {} s", bytes >> 10, seconds(ms.saturating_mul(1000))));
    }
    parts.extend(filters(kernel_files, scheme));
    let metric = word(kernel_files, &format!("{scheme}/watermarks/metric"))?;
    if metric != "none" {
        let [low, mid, high] = ["low", "mid", "high"].map(|name| of_scheme(&format!("watermarks/{name}")));
        parts.push(format!("by {metric} from {} to {} per mille, begun below {}", low?, high?, mid?));
    }
    Ok(parts.join(", "))
}

/// Which pages a scheme takes. Kernels have one, two or three of these directories, and an older one says by `matching` alone what is left
/// out.
fn filters(kernel_files: &KernelFiles, scheme: &str) -> Vec<String> {
    let all = ["filters", "core_filters", "ops_filters"].map(|name| format!("{scheme}/{name}"));
    let all = all.iter().filter_map(|directory| numbered(kernel_files, directory).ok()).flatten();
    let in_words = |filter: String| {
        let is = |name: &str| word(kernel_files, &format!("{filter}/{name}")).ok().map(|word| word == "Y");
        let not = if is("matching")? { "" } else { "not " };
        let taken = if is("allow") == Some(true) { "taken" } else { "left out" };
        Some(format!("{not}{} {taken}", word(kernel_files, &format!("{filter}/type")).ok()?))
    };
    all.filter_map(in_words).collect()
}

fn of_damon_reclaim(kernel_files: &KernelFiles) -> Result<BTreeSet<String>, Missing> {
    let path = |name: &str| format!("{RECLAIM}/{name}");
    if word(kernel_files, &path("enabled"))? != "Y" {
        return Ok(BTreeSet::new());
    }
    let mut parts = vec![format!(
        "damon_reclaim pages out physical memory idle for {} s",
        seconds(number(kernel_files, &path("min_age"))?)
    )];
    // Above this share of free memory it does nothing. Not every kernel has the two.
    parts.extend(
        number(kernel_files, &path("wmarks_high")).ok().map(|most| format!("below {most} per mille of free memory")),
    );
    if word(kernel_files, &path("skip_anon")).is_ok_and(|word| word == "Y") {
        parts.push("anon left out".to_owned());
    }
    Ok(BTreeSet::from([parts.join(", ")]))
}

fn word(kernel_files: &KernelFiles, path: &str) -> Result<String, Missing> {
    Ok(kernel_files.read(path)?.trim().to_owned())
}

fn number(kernel_files: &KernelFiles, path: &str) -> Result<u64, Missing> {
    word(kernel_files, path)?.parse().map_err(|_| Missing::Failed(format!("/{path} holds no number")))
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "pages of files leave the page cache, or memory is swapped out, with memory to spare: a start after a pause reads them from the \
         device again. Ages are those of regions of physical memory: pages that were read a moment ago can go, too",
        "Documentation/admin-guide/mm/damon/usage.rst; Documentation/admin-guide/mm/damon/reclaim.rst",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const CONTEXT: &str = "sys/kernel/mm/damon/admin/kdamonds/0/contexts/0";

    fn write(directory: &Path, below: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = directory.join(below).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    fn read_copy(directory: &Path) -> Reading {
        let kernel_files = KernelFiles::Saved(directory.to_owned());
        read(&TaskFiles::process(&kernel_files, "", None))
    }

    /// The files of a machine with one scheme, as Linux 6.18 has them.
    fn machine(state: &str, action: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), KDAMONDS, &[("nr_kdamonds", "1"), ("0/state", state)]);
        let of_context =
            [("operations", "paddr"), ("monitoring_attrs/intervals/aggr_us", "5000000"), ("schemes/nr_schemes", "1")];
        write(directory.path(), CONTEXT, &of_context);
        let of_scheme = [
            ("action", action),
            ("access_pattern/age/min", "12"),
            ("access_pattern/nr_accesses/max", "1"),
            ("quotas/bytes", "134217728"),
            ("quotas/reset_interval_ms", "1000"),
            ("watermarks/metric", "none"),
            ("ops_filters/nr_filters", "2"),
            ("ops_filters/0/type", "anon"),
            ("ops_filters/0/matching", "Y"),
            ("ops_filters/0/allow", "N"),
            ("ops_filters/1/type", "unmapped"),
            ("ops_filters/1/matching", "Y"),
            ("ops_filters/1/allow", "Y"),
        ];
        write(directory.path(), &format!("{CONTEXT}/schemes/0"), &of_scheme);
        directory
    }

    fn words(reading: &Reading) -> Vec<&str> {
        match reading.value() {
            Some(Value::Set(words)) => words.iter().map(String::as_str).collect(),
            _ => panic!("{reading:?}"),
        }
    }

    const SCHEME: &str = "DAMON pages out physical memory idle for 60 s, idle: at most 1 accesses seen in 5 s, at most 131072 KiB in 1 s, \
                          anon left out, unmapped taken";

    #[test]
    fn schemes_that_run_and_page_out_are_shown_with_age_quota_and_filters() {
        let directory = machine("on", "pageout");
        // A copy of a kernel without the other interface.
        assert_eq!(words(&read_copy(directory.path())), [SCHEME]);
        let own = [("enabled", "Y"), ("min_age", "120500000"), ("wmarks_high", "500"), ("skip_anon", "Y")];
        write(directory.path(), RECLAIM, &own);
        let shown = "damon_reclaim pages out physical memory idle for 120.5 s, below 500 per mille of free memory, anon left out";
        assert_eq!(words(&read_copy(directory.path())), [SCHEME, shown]);
    }

    #[test]
    fn a_scheme_without_quota_that_memory_switches_on_is_shown_as_such() {
        let directory = machine("on", "pageout");
        write(directory.path(), CONTEXT, &[("operations", "vaddr")]);
        let differs = [
            ("access_pattern/nr_accesses/max", "0"),
            ("quotas/bytes", "0"),
            ("watermarks/metric", "free_mem_rate"),
            ("watermarks/low", "50"),
            ("watermarks/mid", "400"),
            ("watermarks/high", "500"),
        ];
        write(directory.path(), &format!("{CONTEXT}/schemes/0"), &differs);
        fs::remove_dir_all(directory.path().join(CONTEXT).join("schemes/0/ops_filters")).unwrap();
        let shown = "DAMON pages out memory of some processes idle for 60 s, by free_mem_rate from 50 to 500 per mille, begun \
                    below 400";
        assert_eq!(words(&read_copy(directory.path())), [shown]);
    }

    #[test]
    fn where_nothing_is_paged_out_a_machine_has_none_as_one_whose_kernel_could_not() {
        for (state, action) in [("off", "pageout"), ("on", "stat")] {
            let directory = machine(state, action);
            write(directory.path(), RECLAIM, &[("enabled", "N")]);
            assert!(matches!(read_copy(directory.path()), Reading::Absent { .. }), "{state} {action}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_none() {
        assert!(matches!(read_copy(tempfile::tempdir().unwrap().path()), Reading::Unavailable { .. }));
        // The other interface could have one.
        assert!(matches!(read_copy(machine("off", "pageout").path()), Reading::Unavailable { .. }));
        let directory = machine("on", "pageout");
        write(directory.path(), &format!("{CONTEXT}/schemes/0"), &[("access_pattern/age/min", "x")]);
        assert!(
            matches!(read_copy(directory.path()), Reading::Unavailable { reason, .. } if reason.contains("age/min"))
        );
    }
}

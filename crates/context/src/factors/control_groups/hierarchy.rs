//! Which cgroups count for a process: its own group first, then those above up to the root.
//!
//! Of a process that runs here the names of its groups are taken, which the kernel writes as this process's cgroup namespace has them
//! (cgroup_namespaces(7)); where the hierarchies are, [`super::mounted`] knows.

use super::mounted::{Group, Mounts};
use crate::kernel_files::Missing;
use crate::task_files::TaskFiles;
use std::collections::{BTreeMap, BTreeSet};

/// Beginning of the parts that limit huge pages; their size follows.
pub(super) const HUGE_PAGE_LIMIT: &str = "huge_page_limit ";

/// A group and those above it.
pub(super) type Chain<'a> = Vec<Group<'a>>;

/// The cgroups of a process.
pub(super) struct Groups<'a> {
    /// By controller (`cpu`, `memory`).
    pub(super) version_1: BTreeMap<String, Chain<'a>>,
    /// The one of the unified hierarchy.
    pub(super) version_2: Option<Chain<'a>>,
}

impl<'a> Groups<'a> {
    /// From `/proc/PID/cgroup` (cgroups(7)) and the mounts that show the hierarchies.
    pub(super) fn of(task: &TaskFiles<'a>) -> Result<Self, Missing> {
        let groups = task.file("cgroup")?;
        let mut mounts = Mounts::of(task);
        let mut found = Self { version_1: BTreeMap::new(), version_2: None };
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            // A hierarchy with a name only counts processes for somebody, and limits nothing.
            if controllers.starts_with("name=") {
                continue;
            }
            let Some((hierarchy, top)) = mounts.find(controllers) else { continue };
            let chain: Chain<'_> = levels(&top, path).into_iter().map(|below| Group::new(&hierarchy, below)).collect();
            if controllers.is_empty() {
                found.version_2 = Some(chain);
            } else {
                for controller in controllers.split(',') {
                    found.version_1.insert(controller.to_owned(), chain.clone());
                }
            }
        }
        Ok(found)
    }
}

/// Paths of the group and of those above it, below the mount point, which is the last one. A mount can show a part of the hierarchy only
/// (in containers): what lies outside of it is not seen.
fn levels(top: &str, group: &str) -> Vec<String> {
    let shown = group.strip_prefix(top.trim_end_matches('/')).unwrap_or("");
    let mut below: Vec<&str> = shown.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
    let mut levels = Vec::new();
    loop {
        levels.push(below.join("/"));
        if below.pop().is_none() {
            return levels;
        }
    }
}

/// The first number of a file in each group of the chain where there is one; `max` and words are none.
pub(super) fn numbers(chain: &[Group<'_>], file: &str) -> impl Iterator<Item = f64> {
    let texts = chain.iter().filter_map(move |group| group.read(file));
    texts.filter_map(|text| text.split_whitespace().next()?.parse().ok())
}

/// The least share of a CPU, and the period in us in which it is counted, of what each level allows (both in us).
pub(super) fn least_share(levels: impl Iterator<Item = (f64, f64)>) -> Option<(String, String)> {
    let (quota, period) = levels
        .filter(|(quota, period)| *quota > 0.0 && *period > 0.0)
        .reduce(|a, b| if b.0 / b.1 < a.0 / a.1 { b } else { a })?;
    Some((format!("{:.1} % of a CPU", quota / period * 100.0), period.to_string()))
}

/// The least limit of huge pages in bytes, of each size that the controller reports in files with this ending.
pub(super) fn huge_page_limits(chain: &[Group<'_>], ending: &str) -> Vec<(String, String)> {
    // Not each level has the controller.
    let names: BTreeSet<String> = chain.iter().flat_map(Group::names).collect();
    let limit = |name: &String| {
        let size = name.strip_prefix("hugetlb.")?.strip_suffix(ending)?;
        // What counts reservations is another limit.
        let bytes = numbers(chain, name).filter(|bytes| *bytes < UNLIMITED).reduce(f64::min)?;
        (!size.contains('.')).then(|| (format!("{HUGE_PAGE_LIMIT}{size}"), bytes.to_string()))
    };
    names.iter().filter_map(limit).collect()
}

/// What version 1 shows where there is no limit of bytes: LONG_MAX rounded down to pages, of 4 or of 64 KiB, and for huge pages to
/// those.
pub(super) const UNLIMITED: f64 = (i64::MAX / (1 << 34) * (1 << 34)) as f64;

/// Weights from the root's child down to the own group: what each level gives.
pub(super) fn weights(chain: &[Group<'_>], file: &str) -> Option<String> {
    let words: Vec<String> = chain
        .iter()
        .rev()
        .filter_map(|group| group.read(file))
        .filter_map(|text| Some(text.trim_start_matches("default ").split_whitespace().next()?.to_owned()))
        .collect();
    (!words.is_empty()).then(|| words.join(" > "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::KernelFiles;

    #[test]
    fn a_group_is_looked_for_below_the_mount_that_shows_its_part() {
        assert_eq!(levels("/", "/a/b"), ["a/b", "a", ""]);
        assert_eq!(levels("/docker/1", "/docker/1/x"), ["x", ""]);
        assert_eq!(levels("/other", "/a"), [""]);
        assert_eq!(levels("/", "/../.."), [""]);
    }

    #[test]
    fn what_is_read_beneath_a_hierarchy_is_what_its_paths_show() {
        let (kernel_files, own) = (KernelFiles::here(), std::process::id());
        let groups = Groups::of(&TaskFiles::process(&kernel_files, &format!("proc/{own}"), Some(own))).unwrap();
        let all: Vec<&Group<'_>> = groups.version_1.values().chain(&groups.version_2).flatten().collect();
        if all.is_empty() {
            println!("skipped: no hierarchy of cgroups is mounted here");
        }
        for group in all {
            let path = group.path();
            // Of version 2 and of version 1, and in none.
            for file in ["cgroup.controllers", "cgroup.clone_children", "no.such.file"] {
                let text = std::fs::read_to_string(path.join(file)).ok();
                assert_eq!(group.read(file), text, "{} {file}", path.display());
            }
            assert!(group.names().iter().any(|name| name == "cgroup.procs"), "{}", path.display());
            assert_eq!((group.read(".."), group.read("../../../etc/hostname")), (None, None));
        }
    }
}

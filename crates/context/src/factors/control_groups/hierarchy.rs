//! Where the files of a process's cgroups are: its own group first, then those above up to the root.

use crate::place::Missing;
use crate::subject::Subject;
use procfs_core::FromRead;
use procfs_core::process::MountInfos;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Directories (without the first slash) of a group and of those above it.
pub(super) type Chain = Vec<String>;

/// The cgroups of a process.
pub(super) struct Groups {
    /// By controller (`cpu`, `memory`).
    pub(super) version_1: BTreeMap<String, Chain>,
    /// The one of the unified hierarchy.
    pub(super) version_2: Option<Chain>,
}

impl Groups {
    /// From `/proc/PID/cgroup` (cgroups(7)) and the mounts that show the hierarchies.
    pub(super) fn of(subject: &Subject<'_>) -> Result<Self, Missing> {
        let groups = subject.file("cgroup")?;
        let mounts = subject.file("mountinfo").ok();
        let mounts = mounts.and_then(|text| MountInfos::from_read(text.as_bytes()).ok());
        let mounts = mounts.map(|MountInfos(mounts)| mounts).unwrap_or_default();
        let mut found = Self { version_1: BTreeMap::new(), version_2: None };
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let is_unified = controllers.is_empty();
            let mount = mounts.iter().find(|mount| match mount.fs_type.as_str() {
                "cgroup2" => is_unified,
                "cgroup" => !is_unified && controllers.split(',').all(|one| mount.super_options.contains_key(one)),
                _ => false,
            });
            let Some(mount) = mount else { continue };
            let chain = chain(&mount.mount_point, &mount.root, path);
            if is_unified {
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

/// The group's directory below the mount, and those above it down to the mount point. A mount can show a part of the hierarchy only
/// (in containers): what lies outside of it is not seen.
fn chain(mount_point: &Path, mount_root: &str, group: &str) -> Chain {
    let shown = group.strip_prefix(mount_root.trim_end_matches('/')).unwrap_or("");
    let base = mount_point.to_string_lossy().trim_start_matches('/').trim_end_matches('/').to_owned();
    let mut below: Vec<&str> = shown.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
    let mut chain = Vec::new();
    loop {
        let directory = std::iter::once(base.as_str()).chain(below.iter().copied()).collect::<Vec<_>>().join("/");
        chain.push(directory);
        if below.pop().is_none() {
            return chain;
        }
    }
}

/// The first number of a file in each directory of the chain where there is one; `max` and words are none.
pub(super) fn numbers<'a>(
    place: &'a crate::place::Place,
    chain: &'a Chain,
    file: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    let text = move |directory: &String| place.read(&format!("{directory}/{file}")).ok();
    chain.iter().filter_map(text).filter_map(|text| text.split_whitespace().next()?.parse().ok())
}

/// The least share of a CPU, and the period in us in which it is counted, of what each level allows (both in us).
pub(super) fn least_share(levels: impl Iterator<Item = (f64, f64)>) -> Option<(String, String)> {
    let (quota, period) = levels
        .filter(|(quota, period)| *quota > 0.0 && *period > 0.0)
        .reduce(|a, b| if b.0 / b.1 < a.0 / a.1 { b } else { a })?;
    Some((format!("{:.1} % of a processor", quota / period * 100.0), period.to_string()))
}

/// The least limit of huge pages in bytes, of each size that the controller reports in files with this ending.
pub(super) fn huge_page_limits(place: &crate::place::Place, chain: &Chain, ending: &str) -> Vec<(String, String)> {
    // Not each level has the controller.
    let names: BTreeSet<String> = chain.iter().flat_map(|group| place.list(group).unwrap_or_default()).collect();
    let limit = |name: &String| {
        let size = name.strip_prefix("hugetlb.")?.strip_suffix(ending)?;
        // What counts reservations is another limit.
        let bytes = numbers(place, chain, name).filter(|bytes| *bytes < UNLIMITED).reduce(f64::min)?;
        (!size.contains('.')).then(|| (format!("{}{size}", super::HUGE_PAGE_LIMIT), bytes.to_string()))
    };
    names.iter().filter_map(limit).collect()
}

/// What version 1 shows where there is no limit of bytes: LONG_MAX rounded down to pages, of 4 or of 64 KiB, and for huge pages to
/// those.
pub(super) const UNLIMITED: f64 = (i64::MAX / (1 << 34) * (1 << 34)) as f64;

/// Weights from the root's child down to the own group: what each level gives.
pub(super) fn weights(place: &crate::place::Place, chain: &Chain, file: &str) -> Option<String> {
    let text = |directory: &String| place.read(&format!("{directory}/{file}")).ok();
    let words: Vec<String> = chain
        .iter()
        .rev()
        .filter_map(text)
        .filter_map(|text| Some(text.trim_start_matches("default ").split_whitespace().next()?.to_owned()))
        .collect();
    (!words.is_empty()).then(|| words.join(" > "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_looked_for_below_the_mount_that_shows_its_part() {
        let of = |root: &str, group: &str| chain(Path::new("/sys/fs/cgroup/cpu"), root, group);
        assert_eq!(of("/", "/a/b"), ["sys/fs/cgroup/cpu/a/b", "sys/fs/cgroup/cpu/a", "sys/fs/cgroup/cpu"]);
        assert_eq!(of("/docker/1", "/docker/1/x"), ["sys/fs/cgroup/cpu/x", "sys/fs/cgroup/cpu"]);
        assert_eq!(of("/other", "/a"), ["sys/fs/cgroup/cpu"]);
        assert_eq!(of("/", "/../.."), ["sys/fs/cgroup/cpu"]);
    }
}

//! What is known beside the trace: counters of the kernel that have no event. Owns reading them; what they explain is
//! [`super::explain`]'s.

use std::collections::BTreeMap;
use std::path::Path;

/// Growth between the start of the iteration and the miss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Steal time by CPU, in ns, as counted in [`TICK`]s; CPUs without any are left out.
    pub stolen: BTreeMap<u32, u64>,
    /// Throttled time of the server's cgroup and those above it, in ns.
    pub throttled: u64,
}

impl Beside {
    /// The counters as they stand now, for a serving process.
    pub fn now(server: u32) -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let groups = std::fs::read_to_string(format!("/proc/{server}/cgroup")).unwrap_or_default();
        let read = |file: &str| std::fs::read_to_string(file).ok();
        Self { stolen: stolen(&stat), throttled: throttled(&groups, read) }
    }

    /// What grew since.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (cpu, stolen) in &mut self.stolen {
            *stolen = stolen.saturating_sub(before.stolen.get(cpu).copied().unwrap_or(0));
        }
        self.stolen.retain(|_, stolen| *stolen > 0);
        Self { stolen: self.stolen, throttled: self.throttled.saturating_sub(before.throttled) }
    }
}

/// In what steal time is counted, in ns (USER_HZ is 100).
pub const TICK: u64 = 10_000_000;

/// Steal time by CPU: field 8 of the `cpuN` lines of /proc/stat (proc_stat(5)).
fn stolen(stat: &str) -> BTreeMap<u32, u64> {
    let of = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split(' ');
        // The first line, of all CPUs, has no number.
        let cpu = fields.next()?.parse().ok()?;
        Some((cpu, fields.nth(7)?.parse::<u64>().ok()?.saturating_mul(TICK)))
    };
    stat.lines().map_while(|line| line.starts_with("cpu").then(|| of(line))).flatten().collect()
}

/// Throttled time in ns of a cgroup and all above it: each may have a quota. `groups` is the text of `/proc/PID/cgroup`.
fn throttled(groups: &str, read: impl Fn(&str) -> Option<String>) -> u64 {
    let root = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            list if list.split(',').any(|one| one == "cpu") => "/sys/fs/cgroup/cpu",
            _ => return None,
        };
        // The group of a process may have gone since, and hierarchies of version 1 come first.
        let levels = Path::new(path).ancestors().map(|level| format!("{mount}{}/cpu.stat", level.display()));
        let found: Vec<u64> = levels.filter_map(|file| of_group(&read(&file.replace("//", "/"))?)).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    });
    root.unwrap_or(0)
}

/// `throttled_usec` of cgroup v2, `throttled_time` of v1.
fn of_group(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let factor = match key {
            "throttled_usec" => 1000,
            "throttled_time" => 1,
            _ => return None,
        };
        value.parse::<u64>().ok()?.checked_mul(factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_read_by_cpu() {
        let stat = "cpu  9 9 9 9 9 9 9 30 9 9\ncpu0 1 1 1 1 1 1 1 10 1 1\ncpu12 1 1 1 1 1 1 1 20 1 1\nintr 5 cpu3\n";
        let before = Beside { stolen: stolen(stat), throttled: 5 };
        assert_eq!(before.stolen, BTreeMap::from([(0, 10 * TICK), (12, 20 * TICK)]));
        let after = Beside { stolen: stolen(&stat.replace(" 20 1", " 23 1")), throttled: 7 };
        assert_eq!(after.since(&before), Beside { stolen: [(12, 3 * TICK)].into(), throttled: 2 });
        assert!(stolen("").is_empty() && stolen("cpu0 1").is_empty());
    }

    #[test]
    fn throttled_time_is_that_of_the_group_and_of_all_above_it() {
        let read = |file: &str| {
            let text = match file {
                "/sys/fs/cgroup/cpu/a/b/cpu.stat" => "nr_throttled 1\nthrottled_time 7\n",
                "/sys/fs/cgroup/cpu/a/cpu.stat" => "nr_throttled 0\nthrottled_time 100\n",
                "/sys/fs/cgroup/c/cpu.stat" => "usage_usec 9\nthrottled_usec 3\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(throttled("5:memory:/x\n3:cpu,cpuacct:/a/b\n0::/c\n", read), 107);
        assert_eq!(throttled("0::/c\n", read), 3000);
        assert_eq!(throttled("0::/gone\n1:cpu:/gone\n", read), 0);
    }
}

//! How limits get into a launch: in a group below the caller's own, so that the limits of that one count as they do for the caller.

use super::hierarchy::HUGE_PAGE_LIMIT;
use crate::reading::Value;
use crate::toggles::{Contrast, DifferingPart, GroupFile, How, Outcome, SYS_NICE, Setting, both, or_none};
use slowpath_launch::Metric;

/// What may stand in a file.
enum Rule {
    /// Bytes; the caller's own group cannot be exceeded.
    AtMostOwn,
    /// A line for each device; those of the caller's own group hold anyway.
    LinePerDevice,
    /// A value for the group alone.
    Value,
}

/// A file of one version of cgroups.
struct ControllerFile {
    controller: &'static str,
    file: &'static str,
}

/// A part that is written as it was read.
struct FilePart {
    name: &'static str,
    /// Of version 1 and of version 2.
    places: [Option<ControllerFile>; 2],
    /// What stands there where there is no limit; none: what the caller has.
    unlimited: Option<[&'static str; 2]>,
    rule: Rule,
    how: &'static How,
}

const fn at(controller: &'static str, file: &'static str) -> Option<ControllerFile> {
    Some(ControllerFile { controller, file })
}

const fn bytes(name: &'static str, places: [Option<ControllerFile>; 2]) -> FilePart {
    FilePart { name, places, unlimited: Some(["-1", "max"]), rule: Rule::AtMostOwn, how: &MEMORY }
}

const fn per_device(name: &'static str, places: [Option<ControllerFile>; 2]) -> FilePart {
    FilePart { name, places, unlimited: Some(["", ""]), rule: Rule::LinePerDevice, how: &STORAGE }
}

/// In the order in which they are written.
const FILES: [FilePart; 11] = [
    FilePart {
        name: "cpu.idle",
        places: [None, at("cpu", "cpu.idle")],
        unlimited: Some(["0", "0"]),
        rule: Rule::Value,
        how: &SHARE,
    },
    bytes("memory.max", [at("memory", "memory.limit_in_bytes"), at("memory", "memory.max")]),
    bytes("memory.memsw.limit_in_bytes", [at("memory", "memory.memsw.limit_in_bytes"), None]),
    bytes("memory.high", [None, at("memory", "memory.high")]),
    bytes("memory.swap.max", [None, at("memory", "memory.swap.max")]),
    FilePart {
        name: "swappiness",
        places: [at("memory", "memory.swappiness"), None],
        unlimited: None,
        rule: Rule::Value,
        how: &MEMORY,
    },
    per_device("io_read_bps", [at("blkio", "blkio.throttle.read_bps_device"), None]),
    per_device("io_write_bps", [at("blkio", "blkio.throttle.write_bps_device"), None]),
    per_device("io_read_iops", [at("blkio", "blkio.throttle.read_iops_device"), None]),
    per_device("io_write_iops", [at("blkio", "blkio.throttle.write_iops_device"), None]),
    per_device("io.max", [None, at("io", "io.max")]),
];

const WITHOUT: &str = "a cgroup of the same kind without a limit";

const QUOTA: How = How {
    irreversible: false,
    counters: &[Metric::ThrottledPeriods],
    mechanism: "when a period's quota is used up, all threads of the group are throttled until the next period",
    sham: WITHOUT,
};
const SHARE: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay, Metric::InvoluntarySwitches],
    mechanism: "the weight divides contended CPUs between groups, and threads wait longer for their turn",
    sham: "a cgroup of the same kind with the default weight",
};
const PROCESSORS: How = How {
    irreversible: false,
    counters: &[Metric::RunDelay, Metric::InvoluntarySwitches],
    mechanism: "threads that may use fewer CPUs wait for each other and for others there",
    sham: "a cgroup of the same kind with all CPUs and nodes of the caller",
};
const MEMORY: How = How {
    irreversible: false,
    counters: &[Metric::MemoryLimitHits, Metric::MajorFaults],
    mechanism: "at its limit the group reclaims its own pages at each fault, and reads evicted file pages again",
    sham: WITHOUT,
};
const STORAGE: How = How {
    irreversible: false,
    counters: &[Metric::Waiting],
    mechanism: "reads and writes beyond the rate wait",
    sham: WITHOUT,
};

/// The parts that differ, in the order in which their files are written.
pub(super) fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let differing = contrast.differing();
    let own = contrast.here.value("control_groups");
    let mut parts = Vec::new();
    let order = |name: &str| FILES.iter().position(|part| part.name == name).map_or(0, |place| place + 1);
    let mut names: Vec<_> = differing.iter().map(|one| one.0).collect();
    names.sort_by_key(|name| order(name));
    for name in names {
        let Some((_, fast, slow)) = differing.iter().find(|one| one.0 == name).copied() else { continue };
        let of_own = own.and_then(|own| own.part(name));
        let part = OnePart { contrast, name, fast, slow, own: of_own };
        parts.push(part.applied().named(name));
    }
    parts
}

struct OnePart<'a> {
    contrast: &'a Contrast<'a>,
    name: &'a str,
    fast: Option<&'a str>,
    slow: Option<&'a str>,
    own: Option<&'a str>,
}

impl OnePart<'_> {
    fn applied(&self) -> DifferingPart {
        match self.name {
            "cpu.max" => self.set(&QUOTA, |quota| self.quota(quota)),
            "processor_period_us" if self.contrast.differs("control_groups", Some("cpu.max")) => {
                self.follows("it is the period of the quota, and set with it")
            }
            "processor_period_us" => self.set(&QUOTA, |_| Err("it is set with a quota only".to_owned())),
            "cpu.weight" if self.weight(self.fast) == self.weight(self.slow) => {
                self.follows("it is the weight that any group has that is made for another limit")
            }
            "cpu.weight" => self.set(&SHARE, |weight| self.weight_files(weight)),
            "cpu.rt_runtime_us" => self.follows(
                "a cgroup of its own has no budget for real-time threads until it gets one; this concerns no other threads",
            ),
            "cpuset.cpus" => self.set(&PROCESSORS, |list| self.processor_set(list, None)),
            "cpuset.mems" => self.set(&PROCESSORS, |list| self.processor_set(None, list)),
            "io.weight" => self.set(&STORAGE, |_| {
                Err("weights of storage count only under some schedulers of the device: they are not set by slowpath".to_owned())
            }),
            name => match FILES.iter().find(|part| part.name == name) {
                Some(part) => self.set(part.how, |value| self.file(part, value)),
                None => self.huge_page_limit(),
            },
        }
    }

    fn set(&self, how: &How, set: impl Fn(Option<&str>) -> Result<Vec<Setting>, String>) -> DifferingPart {
        let outcome = both(set(self.fast), set(self.slow), how);
        DifferingPart::whole(or_none(self.fast), or_none(self.slow), outcome)
    }

    fn follows(&self, why: &str) -> DifferingPart {
        let outcome = Outcome::Follows(why.to_owned());
        DifferingPart::whole(or_none(self.fast), or_none(self.slow), outcome)
    }

    /// Files of the group of a controller.
    fn files(&self, controller: &str, writes: &[(&str, &str)], weak: &[(&str, &str)]) -> Result<Vec<Setting>, String> {
        let group = self.contrast.here.hierarchies.of(controller)?;
        let file = |write: Option<(&str, &str)>, weak: bool| {
            Setting::Group(GroupFile {
                parent: group.directory.clone(),
                enable: group.unified.then(|| controller.to_owned()),
                write: write.map(|(name, text)| (name.to_owned(), text.to_owned())),
                weak,
            })
        };
        let strong = writes.iter().map(|write| file(Some(*write), false));
        let weak = weak.iter().map(|write| file(Some(*write), true));
        let mut files: Vec<Setting> = weak.chain(strong).collect();
        if files.is_empty() {
            files.push(file(None, true));
        }
        Ok(files)
    }

    /// `20.0 % of a CPU`, as the reading reports it.
    fn quota(&self, quota: Option<&str>) -> Result<Vec<Setting>, String> {
        let percent = |text: &str| text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
        let unified = self.contrast.here.hierarchies.of("cpu")?.unified;
        let period = self.period(quota);
        let Some(wanted) = quota.map(|quota| percent(quota).ok_or_else(|| format!("{quota:?} is no quota"))) else {
            if self.own.is_some() {
                return Err(ALREADY.to_owned());
            }
            let none = ("cpu.cfs_quota_us", "-1");
            return if unified {
                self.files("cpu", &[("cpu.max", "max")], &[])
            } else {
                self.files("cpu", &[("cpu.cfs_period_us", &period.to_string()), none], &[])
            };
        };
        let wanted = wanted?;
        if self.own.and_then(percent).is_some_and(|own| own < wanted) {
            return Err(ALREADY.to_owned());
        }
        let time = (wanted / 100.0 * period as f64).round().max(1000.0) as u64;
        if unified {
            return self.files("cpu", &[("cpu.max", &format!("{time} {period}"))], &[]);
        }
        let (period, time) = (period.to_string(), time.to_string());
        self.files("cpu", &[("cpu.cfs_period_us", &period), ("cpu.cfs_quota_us", &time)], &[])
    }

    /// The period that goes with a quota; 100 ms where none was read, which is what new groups have.
    fn period(&self, quota: Option<&str>) -> u64 {
        let (fast, slow) = self.contrast.other("control_groups");
        let context = if quota == self.fast { fast } else { slow };
        let read = context.and_then(|value| value.part("processor_period_us")).and_then(|text| text.parse().ok());
        read.unwrap_or(100_000)
    }

    /// A weight where a group has one: what new groups have otherwise.
    fn weight<'b>(&self, weight: Option<&'b str>) -> &'b str {
        let unified = self.contrast.here.hierarchies.of("cpu").is_ok_and(|group| group.unified);
        weight.unwrap_or(if unified { "weight 100" } else { "shares 1024" })
    }

    /// `shares 512` or `weight 50`; further numbers are of groups above.
    fn weight_files(&self, weight: Option<&str>) -> Result<Vec<Setting>, String> {
        let unified = self.contrast.here.hierarchies.of("cpu")?.unified;
        let (word, file) = if unified { ("weight ", "cpu.weight") } else { ("shares ", "cpu.shares") };
        let numbers = self
            .weight(weight)
            .strip_prefix(word)
            .ok_or_else(|| "cgroup v1 and v2 weights have different scales: they are not converted".to_owned())?;
        // What stands above the made group is the caller's own.
        let own = self.own.and_then(|own| own.strip_prefix(word)).map(|own| format!("{own} > ")).unwrap_or_default();
        let rest = match weight {
            Some(_) => numbers.strip_prefix(&own).unwrap_or(numbers),
            None => numbers,
        };
        if rest.parse::<u64>().is_err() {
            return Err(format!(
                "several nested cgroups set it ({numbers}), and a launch gets one below the caller's own"
            ));
        }
        // Beside tasks and groups of others, more than what each new group has is more than a user may have.
        let normal = self.weight(None).strip_prefix(word).and_then(|normal| normal.parse::<u64>().ok());
        let here = self.contrast.here;
        if rest.parse::<u64>().ok() > normal && !here.may(SYS_NICE) {
            return Err(here.lacks(SYS_NICE, "CAP_SYS_NICE"));
        }
        self.files("cpu", &[(file, rest)], &[])
    }

    /// CPUs and memory nodes; what is not given is the caller's own.
    fn processor_set(&self, processors: Option<&str>, nodes: Option<&str>) -> Result<Vec<Setting>, String> {
        let own = self.contrast.here.value("control_groups");
        let own = |part: &str| own.and_then(|own| own.part(part)).map(str::to_owned);
        let (own_processors, own_nodes) = (own("cpuset.cpus"), own("cpuset.mems"));
        let mut weak = Vec::new();
        weak.extend(own_nodes.as_deref().map(|nodes| ("cpuset.mems", nodes)));
        weak.extend(own_processors.as_deref().map(|processors| ("cpuset.cpus", processors)));
        let mut strong = Vec::new();
        strong.extend(nodes.map(|nodes| ("cpuset.mems", nodes)));
        strong.extend(processors.map(|processors| ("cpuset.cpus", processors)));
        self.files("cpuset", &strong, &weak)
    }

    fn file(&self, part: &FilePart, value: Option<&str>) -> Result<Vec<Setting>, String> {
        if matches!(part.rule, Rule::AtMostOwn) {
            let number = |text: &str| text.parse::<f64>().ok();
            let (own, wanted) = (self.own.and_then(number), value.and_then(number));
            if own.is_some_and(|own| wanted.is_none_or(|wanted| wanted > own)) {
                return Err(ALREADY.to_owned());
            }
        }
        let hierarchies = &self.contrast.here.hierarchies;
        let here = part.places.iter().enumerate().find_map(|(version, place)| {
            let ControllerFile { controller, file } = place.as_ref()?;
            let group = hierarchies.of(controller).ok().filter(|group| usize::from(group.unified) == version)?;
            Some((version, controller, file, group))
        });
        let Some((version, controller, file, group)) = here else {
            let controller = part.places.iter().flatten().next().map_or("", |place| place.controller);
            hierarchies.of(controller)?;
            return Err("this machine has the other cgroup version, which has no such limit".to_owned());
        };
        if !group.directory.join(file).exists() && !group.unified {
            return Err(format!("this kernel has no {file}"));
        }
        if matches!(part.rule, Rule::LinePerDevice) {
            let own: Vec<&str> = self.own.map(|own| own.split(", ").collect()).unwrap_or_default();
            let lines = value.map(|value| value.split(", ").filter(|line| !own.contains(line)).collect::<Vec<_>>());
            let writes: Vec<(&str, &str)> = lines.unwrap_or_default().into_iter().map(|line| (*file, line)).collect();
            return self.files(controller, &writes, &[]);
        }
        let text = value.or(part.unlimited.map(|unlimited| unlimited[version])).or(self.own);
        let text = text.ok_or_else(|| "the caller's own value is not known".to_owned())?;
        self.files(controller, &[(file, text)], &[])
    }

    /// `huge_page_limit 2MB` and so on.
    fn huge_page_limit(&self) -> DifferingPart {
        let Some(size) = self.name.strip_prefix(HUGE_PAGE_LIMIT) else {
            return self.set(&MEMORY, |_| Err("slowpath does not know how it is set".to_owned()));
        };
        self.set(&MEMORY, |value| {
            let unified = self.contrast.here.hierarchies.of("hugetlb")?.unified;
            let file = format!("hugetlb.{size}.{}", if unified { "max" } else { "limit_in_bytes" });
            let none = if unified { "max" } else { "-1" };
            self.files("hugetlb", &[(&file, value.unwrap_or(none))], &[])
        })
    }
}

const ALREADY: &str = "the caller's own cgroup has a tighter limit";

/// Whether a part of what a thread may use follows from this part of its cgroups.
pub(crate) fn explains_affinity(contrast: &Contrast<'_>, name: &str, of_group: &str) -> bool {
    let (fast, slow) = contrast.other("control_groups");
    let part = |value: Option<&Value>, name: &str| value.and_then(|value| value.part(name)).map(str::to_owned);
    let follows = |group: Option<&Value>, own: Option<&Value>| match (part(group, of_group), part(own, name)) {
        (Some(group), Some(own)) => group == own,
        (None, _) => true,
        _ => false,
    };
    part(fast, of_group) != part(slow, of_group) && follows(fast, contrast.fast) && follows(slow, contrast.slow)
}

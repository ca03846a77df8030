//! What some faults cost together, and how far that can be trusted.
//!
//! **Value.** A fault whose duration is not known counts as long as the others are on average.
//!
//! A duration is what the thread ran in the fault, and what it waited for storage or for memory, where waits were recorded
//! ([`crate::time::off_cpu_times`]). Else it is of the clock, not of the CPU: a thread that another one displaces in a fault is in it
//! for longer.
//!
//! **Interval.** *Low* has every fault of the median duration, which such outliers do not move; a fault that has to wait for memory is
//! not in it either. *High* has unknown durations as long as that which only a twentieth of the known ones exceeds.

use crate::time::off_cpu_times::FaultTimes;
use slowpath_tables::{FaultKind, Nanos};

/// Sums over faults; times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FaultSums {
    /// How many.
    pub count: u64,
    /// Those of unknown duration.
    pub untimed: u64,
    /// Those that waited for storage.
    pub major: u64,
    /// Those that the kernel took in a system call.
    pub by_kernel: u64,
    /// Median duration.
    pub median: f64,
    /// Mean of the known durations; that of all, where several kinds are added up.
    pub mean: f64,
    /// What their threads did not run in them and is in none of the durations.
    pub off_cpu: Nanos,
    time: f64,
    undisturbed: f64,
    low: f64,
    high: f64,
}

impl FaultSums {
    /// Adds up those of these rows.
    pub fn of(rows: impl Iterator<Item = usize>, faults: &FaultTimes<'_>) -> Self {
        let mut sums = Self::default();
        let mut durations = Vec::new();
        for row in rows {
            let fault = &faults.rows[row];
            sums.count += 1;
            sums.major += u64::from(fault.kind == FaultKind::Major);
            sums.by_kernel += u64::from(fault.kernel);
            sums.off_cpu += faults.off_cpu.in_fault(row, fault);
            durations.extend(faults.time(row).map(|time| time.0));
        }
        durations.sort_unstable();
        sums.untimed = sums.count - durations.len() as u64;
        let timed = durations.iter().fold(0u64, |sum, one| sum.saturating_add(*one)) as f64;
        sums.mean = timed / durations.len().max(1) as f64;
        sums.median = quantile(&durations, 0.5) as f64;
        let long = quantile(&durations, 0.95) as f64;
        sums.time = timed + sums.untimed as f64 * sums.mean;
        let cut = durations.iter().map(|one| (*one as f64).min(long)).sum::<f64>();
        sums.undisturbed = cut / durations.len().max(1) as f64 * sums.count as f64;
        sums.low = sums.median * sums.count as f64;
        sums.high = timed + sums.untimed as f64 * long.max(sums.mean);
        sums
    }

    /// With faults of another kind: those that bring huge pages last some hundred times as long, so the median of both together would
    /// say nothing of either. The median stays that of the first, where there are any.
    pub fn with(self, other: Self) -> Self {
        let (count, time) = (self.count + other.count, self.time + other.time);
        Self {
            count,
            untimed: self.untimed + other.untimed,
            major: self.major + other.major,
            by_kernel: self.by_kernel + other.by_kernel,
            median: if self.count > 0 { self.median } else { other.median },
            mean: time / count.max(1) as f64,
            off_cpu: self.off_cpu + other.off_cpu,
            time,
            undisturbed: self.undisturbed + other.undisturbed,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    /// What one of them counts for that lasted so long, in whole ns.
    pub fn weight(&self, time: Option<Nanos>) -> u64 {
        time.map_or(self.mean.round() as u64, |time| time.0)
    }

    /// Time in them.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Time in them where none is taken to last longer than that which only a twentieth of them exceeds: a thread that was displaced in
    /// a fault of a microsecond is in it for some milliseconds, of which it uses no CPU time.
    pub fn undisturbed(&self) -> f64 {
        self.undisturbed
    }

    /// Lower end of [`FaultSums::time`]; where most durations are longer than their mean it is above, so callers cut it.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Upper end of [`FaultSums::time`].
    pub fn high(&self) -> f64 {
        self.high
    }
}

/// The value that this share of the values does not exceed, nearest rank; 0 for no values.
pub(crate) fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// The values in order.
pub(crate) fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// How many moments a second, from the first to the last; `None` where there is no time between.
pub(crate) fn per_second(moments: impl Iterator<Item = u64>) -> Option<f64> {
    let moments = sorted(moments);
    let (first, last) = (moments.first()?, moments.last()?);
    (last > first).then(|| (moments.len() - 1) as f64 / ((last - first) as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::off_cpu_times;
    use slowpath_recording::Tables;

    #[test]
    fn what_faults_count_for_adds_up_to_the_time_in_them() {
        let text = "== faults\nts duration pid start kind\n1 1000 7 1 minor\n2 - 7 1 minor\n3 9000 7 1 minor\n4 - 7 1 minor\n\
                    5 2000 7 1 minor\n";
        let summed = |text: &str| {
            let tables = Tables::from_text(text).unwrap();
            let off_cpu = off_cpu_times::follow(&tables);
            let faults = FaultTimes { rows: &tables.faults, off_cpu: &off_cpu };
            let sums = FaultSums::of(0..5, &faults);
            assert_eq!((0..5).map(|row| sums.weight(faults.time(row))).sum::<u64>() as f64, sums.time());
            (sums.mean, sums.median, sums.untimed, sums.off_cpu.0)
        };
        assert_eq!(summed(text), (4000.0, 2000.0, 2, 0));
        let waits = "== off_cpu\nts duration pid start reason runnable\n10 6000 7 1 runnable 6000\n";
        assert_eq!(summed(&format!("{text}{waits}")), (2000.0, 2000.0, 2, 6000));
    }
}

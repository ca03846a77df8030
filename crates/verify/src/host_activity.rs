//! What the rest of the machine did while a launch ran: what explains a launch that stands out, beside what the launch
//! itself counted. Read before and after each launch, outside the measured interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What the machine did during one launch, in milliseconds. What the kernel does not tell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostActivity {
    /// Time that the hypervisor gave to others, summed over CPUs (`/proc/stat`, to 10 ms).
    pub stolen: Option<f64>,
    /// CPU time of all other processes and of interrupts, summed over CPUs (`/proc/stat`, to 10 ms).
    pub others: Option<f64>,
    /// Time in which some task waited for a CPU (`/proc/pressure/cpu`).
    pub waited_for_cpu: Option<f64>,
    /// Time in which some task waited for storage (`/proc/pressure/io`).
    pub waited_for_io: Option<f64>,
    /// Time in which some task waited for memory (`/proc/pressure/memory`).
    pub waited_for_memory: Option<f64>,
}

/// The machine's counters at one moment.
#[derive(Clone, Debug)]
pub struct Moment {
    busy: Option<f64>,
    stolen: Option<f64>,
    pressures: [Option<f64>; 3],
}

/// Milliseconds of a tick of `/proc/stat` (`USER_HZ` is 100 on every Linux).
const TICK_MS: f64 = 10.0;

/// The files with the machine's counters, kept open: looking at them again then takes a few us.
#[derive(Debug)]
pub struct HostCounters {
    stat: Option<File>,
    pressures: [Option<File>; 3],
}

impl Default for HostCounters {
    fn default() -> Self {
        Self::new()
    }
}

impl HostCounters {
    /// Opens what the kernel offers.
    pub fn new() -> Self {
        let pressures = ["cpu", "io", "memory"].map(|name| File::open(format!("/proc/pressure/{name}")).ok());
        Self { stat: File::open("/proc/stat").ok(), pressures }
    }

    /// The counters now.
    pub fn look(&self) -> Moment {
        let mut buffer = [0; 4096];
        let (busy, stolen) = first_line(&self.stat, &mut buffer).and_then(cpu_times).unzip();
        let pressures = self.pressures.each_ref().map(|file| first_line(file, &mut buffer).and_then(some_total));
        Moment { busy, stolen, pressures }
    }
}

/// The first line of a file of `/proc`: what is looked for stands there.
fn first_line<'a>(file: &Option<File>, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = file.as_ref()?.read_at(buffer, 0).ok()?;
    let line = buffer[..length].split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()
}

impl Moment {
    /// What happened since `before`, during a launch that itself used `own_cpu_ms` of CPU time.
    pub fn since(&self, before: &Self, own_cpu_ms: f64) -> HostActivity {
        let change = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        let [cpu, io, memory] = [0, 1, 2].map(|index| change(self.pressures[index], before.pressures[index]));
        HostActivity {
            stolen: change(self.stolen, before.stolen),
            others: change(self.busy, before.busy).map(|busy| (busy - own_cpu_ms).max(0.0)),
            waited_for_cpu: cpu,
            waited_for_io: io,
            waited_for_memory: memory,
        }
    }
}

/// Busy and stolen time of all CPUs in ms, from the first line of `/proc/stat` (proc(5)): user, nice, system, idle,
/// iowait, irq, softirq, steal; guest time is part of user time.
fn cpu_times(line: &str) -> Option<(f64, f64)> {
    let mut fields = line.strip_prefix("cpu ")?.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = fields.next()??;
    }
    let [user, nice, system, _, _, irq, softirq, steal] = ticks;
    Some(((user + nice + system + irq + softirq) as f64 * TICK_MS, steal as f64 * TICK_MS))
}

/// The total of the line `some` of a pressure file, in ms (Documentation/accounting/psi.rst counts in us).
fn some_total(line: &str) -> Option<f64> {
    let (_, total) = line.strip_prefix("some ")?.rsplit_once("total=")?;
    Some(total.trim().parse::<u64>().ok()? as f64 / 1e3)
}

/// Something that a launch must exceed the usual by before it is named as a reason, ms: below the resolution of a tick
/// nothing is reported.
const NAMEABLE_MS: f64 = 10.0;

impl HostActivity {
    /// What was unlike the launch's usual host activity, in words: each thing that took at least [`NAMEABLE_MS`] more and
    /// twice as long as in the median launch of `usual`.
    pub fn unlike(&self, usual: &[Self]) -> Vec<String> {
        type Part = fn(&HostActivity) -> Option<f64>;
        const PARTS: [(Part, &str); 5] = [
            (|one| one.stolen, "stolen by the hypervisor"),
            (|one| one.others, "of CPU time used by other processes"),
            (|one| one.waited_for_cpu, "with a task waiting for a CPU"),
            (|one| one.waited_for_io, "with a task waiting for storage"),
            (|one| one.waited_for_memory, "with a task waiting for memory"),
        ];
        let named = |(part, words): (Part, &str)| {
            let here = part(self)?;
            let mut values: Vec<f64> = usual.iter().filter_map(part).collect();
            values.sort_by(f64::total_cmp);
            let median = values.get(values.len() / 2).copied().unwrap_or(0.0);
            let unlike = here - median >= NAMEABLE_MS && here >= 2.0 * median;
            unlike.then(|| format!("{here:.0} ms {words} (usually {median:.0})"))
        };
        PARTS.into_iter().filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_gives_busy_and_stolen_time() {
        assert_eq!(cpu_times("cpu  100 5 50 9999 7 1 2 30 4 0"), Some((1580.0, 300.0)));
        assert_eq!((cpu_times("cpu  1 2 3"), cpu_times("cpu0 1 1 1 1 1 1 1 1")), (None, None));
    }

    #[test]
    fn the_total_of_some_is_read_in_milliseconds() {
        assert_eq!(some_total("some avg10=0.00 avg60=0.10 avg300=0.00 total=123456"), Some(123.456));
        assert_eq!(some_total("full avg10=0.00 avg60=0.00 avg300=0.00 total=9"), None);
        assert_eq!(some_total(""), None);
    }

    #[test]
    fn this_machine_tells_its_cpu_times() {
        let counters = HostCounters::new();
        let before = counters.look();
        let around = counters.look().since(&before, 0.0);
        assert!(around.others.is_some() && around.stolen.is_some(), "{around:?}");
    }

    #[test]
    fn only_what_is_much_more_than_usual_is_named() {
        let quiet = HostActivity { stolen: Some(0.0), others: Some(20.0), ..HostActivity::default() };
        let busy = HostActivity { stolen: Some(5.0), others: Some(180.0), ..HostActivity::default() };
        assert_eq!(busy.unlike(&[quiet, quiet, busy]), ["180 ms of CPU time used by other processes (usually 20)"]);
        assert!(quiet.unlike(&[quiet, busy, busy]).is_empty());
    }
}

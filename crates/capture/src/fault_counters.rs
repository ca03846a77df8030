//! The kernel's counters of page faults of the whole machine, and of the recorder itself.
//!
//! Owns reading them. What the machine counts and no recorded process does is for `analysis` to tell.

use slowpath_process::StatLine;
use slowpath_recording::MachineFaults;

/// Counters since boot and since the start of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaultCounters {
    faults: u64,
    major: u64,
    recorder: u64,
}

impl FaultCounters {
    /// Those of this moment; `None` where the kernel reports none. `writer` is a process of the recorder's own. `vmstat` reads
    /// `/proc/vmstat`: after the recorder's own, so that the machine's hold all of these.
    pub(crate) fn now(writer: Option<u32>, vmstat: impl FnOnce() -> String) -> (Option<Self>, String) {
        let of = |pid: u32| StatLine::of(pid).and_then(|stat| faults_of_process(&stat)).unwrap_or(0);
        let own = of(std::process::id());
        let writer = writer.map_or(0, of);
        let vmstat = vmstat();
        let machine = faults_of_machine(&vmstat);
        let counters = machine.map(|(faults, major)| Self { faults, major, recorder: own.saturating_add(writer) });
        (counters, vmstat)
    }

    /// By how much they grew; a writer that is gone by now makes its part 0.
    pub(crate) fn since(&self, before: &Self) -> MachineFaults {
        MachineFaults {
            faults: self.faults.saturating_sub(before.faults),
            major: self.major.saturating_sub(before.major),
            recorder: self.recorder.saturating_sub(before.recorder),
        }
    }
}

/// `pgfault` and `pgmajfault` of `/proc/vmstat`.
pub(crate) fn faults_of_machine(vmstat: &str) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(found, _)| *found == name)?.1.trim().parse().ok()
    };
    Some((value("pgfault")?, value("pgmajfault")?))
}

/// Minor and major faults of all threads of a process, also of ended ones: fields 10 and 12 of `/proc/PID/stat`
/// (proc_pid_stat(5)).
fn faults_of_process(stat: &StatLine) -> Option<u64> {
    Some(stat.field::<u64>(10)?.saturating_add(stat.field(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_whole_names() {
        let text = "nr_free_pages 7\npgfault 1000\npgmajfault 30\npgfaultx 1\n";
        assert_eq!(faults_of_machine(text), Some((1000, 30)));
        assert_eq!(faults_of_machine("pgfaults 5\npgmajfault 30\n"), None);
        assert_eq!(faults_of_machine("pgfault 5\npgmajfault x\n"), None);
    }

    #[test]
    fn a_name_that_looks_like_fields_is_no_field() {
        let faults = |line: &[u8]| faults_of_process(&StatLine::parse(line).unwrap());
        assert_eq!(faults(b"7 (a) S 1 2 3 (\xff) S 1 7 7 0 -1 4194560 311 9999 5 8888 0 0"), Some(316));
        assert_eq!(faults(b"7 (a) S 1"), None);
    }

    #[test]
    fn the_machine_counts_the_faults_that_the_recorder_takes() {
        let now = || FaultCounters::now(None, || std::fs::read_to_string("/proc/vmstat").unwrap()).0.unwrap();
        let before = now();
        let mut memory = vec![0u8; 4 << 20];
        for page in memory.chunks_mut(4096) {
            page[0] = 1;
        }
        std::hint::black_box(&memory);
        let grown = now().since(&before);
        assert!(grown.recorder >= 2 && grown.faults >= grown.recorder, "{grown:?}");
    }
}

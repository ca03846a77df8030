//! Events whose samples show what the CPU ran, and which of them an import takes. What becomes of a sample is for
//! [`crate::perf_sample`].

/// An event whose samples show what the CPU ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuEvent {
    /// `cpu-clock`: time.
    CpuClock,
    /// `task-clock`: time.
    TaskClock,
    /// `cycles`.
    Cycles,
    /// `ref-cycles`.
    ReferenceCycles,
}

impl CpuEvent {
    /// The event of this name with its modifiers. `cpu_core/cycles/` and `cpu_atom/cycles/` are one: each counts on its own kind of core.
    pub fn of(name: &str) -> Option<Self> {
        name.split([':', '/', ',']).find_map(|word| match word {
            "cpu-clock" => Some(Self::CpuClock),
            "task-clock" => Some(Self::TaskClock),
            "cycles" | "cpu-cycles" => Some(Self::Cycles),
            "ref-cycles" => Some(Self::ReferenceCycles),
            _ => None,
        })
    }

    /// Whether its periods are in ns.
    pub fn is_clock(self) -> bool {
        matches!(self, Self::CpuClock | Self::TaskClock)
    }

    /// What its samples are counted as where they are left out.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "cpu-clock",
            Self::TaskClock => "task-clock",
            Self::Cycles => "cycles",
            Self::ReferenceCycles => "ref-cycles",
        }
    }
}

/// Which event is the CPU samples of an import. Each event samples all CPU time: rows of two would say that it was twice as much.
#[derive(Debug, Default)]
pub struct CpuSamples {
    event: Option<CpuEvent>,
    is_settled: bool,
}

impl CpuSamples {
    /// Whether a sample was seen: what is announced from now on is too late.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A trace says before its samples that it has some of this event. A clock goes before cycles, which stand for no time.
    pub fn announce(&mut self, event: CpuEvent) {
        let is_better = self.event.is_none_or(|known| event.is_clock() && !known.is_clock());
        if is_better && !self.is_settled {
            self.event = Some(event);
        }
    }

    /// A sample of this event came: whether it is one of the import's. Those of the event that was announced are, or else of
    /// the first that comes.
    pub fn takes(&mut self, event: CpuEvent) -> bool {
        self.is_settled = true;
        *self.event.get_or_insert(event) == event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_with_its_modifiers_and_on_either_kind_of_core() {
        for (name, event) in [
            ("cpu-clock:ppp", CpuEvent::CpuClock),
            ("cpu-clock/period=1000000/", CpuEvent::CpuClock),
            ("task-clock", CpuEvent::TaskClock),
            ("cycles:P", CpuEvent::Cycles),
            ("cpu_core/cycles/P", CpuEvent::Cycles),
            ("cpu_atom/cpu-cycles,period=7/", CpuEvent::Cycles),
            ("ref-cycles:u", CpuEvent::ReferenceCycles),
        ] {
            assert_eq!(CpuEvent::of(name), Some(event), "{name}");
        }
        for other in ["", "cpu_core/instructions/", "cache-misses", "cycles-ct", "minor-faults"] {
            assert_eq!(CpuEvent::of(other), None, "{other}");
        }
    }

    #[test]
    fn a_clock_goes_before_cycles_until_samples_come() {
        let mut samples = CpuSamples::default();
        for event in [CpuEvent::Cycles, CpuEvent::TaskClock, CpuEvent::CpuClock, CpuEvent::Cycles] {
            samples.announce(event);
        }
        assert_eq!(samples.event, Some(CpuEvent::TaskClock));
        let mut settled = CpuSamples { event: Some(CpuEvent::Cycles), is_settled: true };
        settled.announce(CpuEvent::CpuClock);
        assert_eq!(settled.event, Some(CpuEvent::Cycles));
    }
}

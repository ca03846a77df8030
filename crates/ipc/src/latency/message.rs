//! What a caller asks and a server answers: a few bytes in front of the payload.

use super::work::burn;
use crate::scheduling::{asked, clock_ns, cpu, effective, now_ns, thread};

/// Payload of a request by default, as in the original.
pub const PAYLOAD: usize = 16;
/// Length of a reply.
pub(super) const REPLY: usize = 32;
/// How often a server looks whether its caller is blocked before it answers a probe: about a second.
const LOOKS: u32 = 20_000;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Answer at once.
    Transact,
    /// Wait until the caller is blocked, then say with which priority you run.
    Probe {
        /// The caller's process.
        process: u32,
        /// The caller's thread.
        thread: u32,
    },
    /// Compute for some CPU time, and say how long another process ran meanwhile.
    Compute {
        /// CPU time in us.
        us: u32,
        /// The other process.
        beside: u32,
    },
}

impl Request {
    /// Writes it into a payload of at least [`PAYLOAD`] bytes.
    pub(super) fn write(self, payload: &mut [u8]) {
        let (kind, one, two) = match self {
            Self::Transact => (0, 0, 0),
            Self::Probe { process, thread } => (1, process, thread),
            Self::Compute { us, beside } => (2, us, beside),
        };
        for (slot, value) in payload.chunks_exact_mut(4).zip([kind, one, two]) {
            slot.copy_from_slice(&u32::to_ne_bytes(value));
        }
    }

    fn read(payload: &[u8]) -> Self {
        let word = |index: usize| {
            payload.get(index * 4..index * 4 + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        match word(0) {
            1 => Self::Probe { process: word(1), thread: word(2) },
            2 => Self::Compute { us: word(1), beside: word(2) },
            _ => Self::Transact,
        }
    }
}

/// What the server says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub served: u64,
    /// Of a computation: how long the other process ran, in ns.
    pub beside_ns: u64,
    pub thread: u32,
    pub cpu: u16,
    pub policy: u8,
    pub priority: u8,
    pub nice: i8,
    /// Of a probe: whether the caller was seen blocked.
    pub caller_blocked: bool,
    /// Of a probe: the priority in force (proc_pid_stat(5), field 18).
    pub effective: i16,
}

impl Reply {
    /// What to answer to a payload; `work` is done before.
    pub(super) fn to(payload: &[u8], work: Option<fn()>) -> Self {
        let served = now_ns();
        if let Some(work) = work {
            work();
        }
        let own = asked().unwrap_or_default();
        let mut reply = Self {
            served,
            thread: thread(),
            cpu: cpu() as u16,
            policy: own.policy as u8,
            priority: own.priority as u8,
            nice: own.nice as i8,
            ..Self::default()
        };
        match Request::read(payload) {
            Request::Transact => {}
            Request::Probe { process, thread: caller } => {
                // A caller that has not arrived at its wait yet could not lend anything.
                reply.caller_blocked = caller == reply.thread || (0..LOOKS).any(|_| blocked(process, caller));
                let in_force = effective(std::process::id(), reply.thread).map_or(0, |(_, priority)| priority);
                reply.effective = in_force as i16;
            }
            Request::Compute { us, beside } => {
                let clock = clock_of(beside);
                let before = clock_ns(clock);
                burn(u64::from(us) * 1000);
                reply.beside_ns = clock_ns(clock).saturating_sub(before);
            }
        }
        reply
    }

    /// As bytes.
    pub(super) fn to_bytes(self) -> [u8; REPLY] {
        let mut bytes = [0; REPLY];
        bytes[0..8].copy_from_slice(&self.served.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.beside_ns.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.thread.to_ne_bytes());
        bytes[20..22].copy_from_slice(&self.cpu.to_ne_bytes());
        bytes[22..24].copy_from_slice(&self.effective.to_ne_bytes());
        bytes[24] = self.policy;
        bytes[25] = self.priority;
        bytes[26..27].copy_from_slice(&self.nice.to_ne_bytes());
        bytes[27] = u8::from(self.caller_blocked);
        bytes
    }

    /// From bytes; `None` when there are too few.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            served: u64::from_ne_bytes(*bytes.get(0..8)?.first_chunk()?),
            beside_ns: u64::from_ne_bytes(*bytes.get(8..16)?.first_chunk()?),
            thread: u32::from_ne_bytes(*bytes.get(16..20)?.first_chunk()?),
            cpu: u16::from_ne_bytes(*bytes.get(20..22)?.first_chunk()?),
            effective: i16::from_ne_bytes(*bytes.get(22..24)?.first_chunk()?),
            policy: *bytes.get(24)?,
            priority: *bytes.get(25)?,
            nice: bytes.get(26)?.cast_signed(),
            caller_blocked: *bytes.get(27)? != 0,
        })
    }
}

fn blocked(process: u32, thread: u32) -> bool {
    effective(process, thread).is_none_or(|(state, _)| state != 'R')
}

/// The CPU clock of a process: clock_getcpuclockid(3) is this arithmetic (`CPUCLOCK_SCHED` is 2).
fn clock_of(process: u32) -> libc::clockid_t {
    (!process.cast_signed() << 3) | 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_come_back_as_they_were() {
        for request in
            [Request::Transact, Request::Probe { process: 7, thread: 8 }, Request::Compute { us: 9, beside: 10 }]
        {
            let mut payload = [0xff; PAYLOAD];
            request.write(&mut payload);
            assert_eq!(Request::read(&payload), request);
        }
        let reply =
            Reply { served: 1, thread: 2, cpu: 3, effective: -100, nice: -20, priority: 99, ..Reply::default() };
        assert_eq!(Reply::from_bytes(&reply.to_bytes()), Some(reply));
        assert_eq!(Reply::from_bytes(&[0; 8]), None);
    }

    #[test]
    fn a_computation_says_how_long_another_process_ran() {
        let mut payload = [0; PAYLOAD];
        Request::Compute { us: 2000, beside: std::process::id() }.write(&mut payload);
        // This very process: at least what it computed.
        assert!(Reply::to(&payload, None).beside_ns >= 2_000_000);
    }
}

//! The launches of a bisection: the command behind a wrapper as it was given, or with some differences as in the slow context and the
//! others as in the fast one.

use super::sides::Sides;
use crate::benchmark::pad;
use crate::bisection::{Choice, Group, Side};
use crate::{HostCounters, Measured, Metric, Moment, Sample, measures};
use slowpath_context::factors::environment::BYTES;
use slowpath_context::toggles::{self, Plan, Prepared};
use slowpath_launch::{EndPolicy, LaunchError, LaunchSpec, Launcher, ProcessLauncher, ReadyWhen, StdioPolicy};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::interrupt::{self, Interruptible};
use slowpath_session::target::{Target, launch_failure, launcher, not_ready};
use std::ffi::OsString;

/// Makes single launches.
pub struct Arms<'a> {
    target: &'a Target,
    given: &'a Sides,
    prepared: &'a Prepared,
    /// The environment that the preparation began with.
    base: Vec<(OsString, OsString)>,
    count: usize,
    /// Bytes of the environment of any arm, once it is padded; 0: the size is a difference of its own.
    bytes: usize,
    launcher: ProcessLauncher,
    counters: HostCounters,
    last: Option<Moment>,
    seed: u64,
}

impl<'a> Arms<'a> {
    /// Of these contexts.
    ///
    /// # Errors
    /// A launch cannot be prepared.
    pub fn new(
        target: &'a Target,
        given: &'a Sides,
        plan: &Plan,
        prepared: &'a Prepared,
        base: Vec<(OsString, OsString)>,
        seed: u64,
    ) -> Result<Self, Failure> {
        let count = plan.candidates.len();
        let (launcher, counters) = (launcher(), HostCounters::new());
        let mut arms = Self { target, given, prepared, base, count, bytes: 0, launcher, counters, last: None, seed };
        // Where the size is a candidate itself, arms are not made equal in it.
        if !plan.candidates.iter().any(|one| one.name.contains(BYTES)) {
            let fast = bytes(&arms.reproduced(&Group::new())?);
            let mut most = fast;
            for one in 0..count {
                // Each candidate changes other variables than the others, so that what they add adds up.
                most += bytes(&arms.reproduced(&Group::from([one]))?).saturating_sub(fast);
            }
            arms.bytes = most;
        }
        Ok(arms)
    }

    fn reproduced(&self, slow: &Group) -> Result<LaunchSpec, Failure> {
        let side = |one| if slow.contains(&one) { toggles::Side::Slow } else { toggles::Side::Fast };
        let sides: Vec<toggles::Side> = (0..self.count).map(side).collect();
        self.prepared.spec(&sides).map_err(|error| Failure::from(&error))
    }

    /// The conditions of a launch, and what makes its environment as large as that of the others.
    fn spec(&self, choice: &Choice, fresh: LaunchSpec) -> Result<(LaunchSpec, usize), Failure> {
        let missing = |spec: &LaunchSpec| self.bytes.saturating_sub(bytes(spec));
        let group = match choice {
            Choice::Given(side) => {
                let wrapper = match side {
                    Side::Fast => &self.given.fast.wrapper,
                    Side::Slow => &self.given.slow.wrapper,
                };
                // What the wrapper does to its environment is what the reproduction does.
                let all = match side {
                    Side::Fast => Group::new(),
                    Side::Slow => (0..self.count).collect(),
                };
                let padding = missing(&self.reproduced(&all)?);
                let mut spec = fresh;
                spec.argv.splice(0..0, wrapper.iter().flatten().cloned());
                return Ok((spec, padding));
            }
            Choice::Slow(group) => group,
        };
        let mut spec = self.reproduced(group)?;
        let padding = missing(&spec);
        spec.argv = fresh.argv;
        // Values with a fresh directory in them.
        for (name, value) in fresh.env {
            let is_new = !self.base.iter().any(|(known, old)| *known == name && *old == value);
            let present = spec.env.iter_mut().find(|(known, _)| *known == name);
            if let (true, Some((_, old))) = (is_new, present) {
                *old = value;
            }
        }
        Ok((spec, padding))
    }

    /// One launch.
    ///
    /// # Errors
    /// It could not be made. A target that failed is none, and neither is a difference that cannot be applied.
    pub fn one(&mut self, choice: &Choice, block: usize) -> Result<Sample, Failure> {
        let (fresh, _fresh) = self.target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let (mut spec, padding) = self.spec(choice, fresh)?;
        let (name, mut value) = pad(self.seed, block);
        value.push("x".repeat(padding));
        spec.env.push((name, value));
        // A command that has ended has no memory to look at.
        spec.memory = self.target.ready != ReadyWhen::Exit;
        let before = self.last.take().unwrap_or_else(|| self.counters.look());
        let launched = self.launcher.launch(&spec, &mut Interruptible);
        let after = self.counters.look();
        self.last = Some(after.clone());
        if interrupt::requested() {
            return Ok(Sample::Stopped);
        }
        let outcome = match launched {
            Ok(outcome) => outcome,
            // With this difference it cannot be started, which is an answer.
            Err(error @ (LaunchError::Setup { .. } | LaunchError::Exec(_))) if matches!(choice, Choice::Slow(_)) => {
                return Ok(Sample::Failed(Failure::from_error(Kind::Target, &error).chain()));
            }
            Err(error) => return Err(launch_failure(&error)),
        };
        if let Some(failure) = not_ready(&outcome) {
            return Ok(Sample::Failed(failure.to_string()));
        }
        let measures = measures(&outcome);
        let own = measures.get(&Metric::Cpu).copied().unwrap_or(0.0);
        Ok(Sample::Measured(Measured { measures, around: after.since(&before, own), ..Measured::default() }))
    }
}

/// Bytes of an environment, as the kernel lays it out.
fn bytes(spec: &LaunchSpec) -> usize {
    spec.env.iter().map(|(name, value)| name.len() + value.len() + "=\0".len()).sum()
}

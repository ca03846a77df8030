//! A launcher for the unit tests of other crates: it starts nothing and returns what it was given.

use std::collections::VecDeque;

use crate::{Hooks, LaunchError, LaunchOutcome, LaunchSpec, Launcher, StopReason};

/// Returns its scripted results in order and remembers the specifications it was asked to launch.
#[derive(Debug, Default)]
pub struct ScriptedLauncher {
    results: VecDeque<Result<LaunchOutcome, LaunchError>>,
    launched: Vec<LaunchSpec>,
}

impl ScriptedLauncher {
    /// A launcher that will return `results`, first to last.
    pub fn new(results: impl IntoIterator<Item = Result<LaunchOutcome, LaunchError>>) -> Self {
        ScriptedLauncher { results: results.into_iter().collect(), launched: Vec::new() }
    }

    /// Adds a launch that is ready after `nanos` ns.
    pub fn push_ready(&mut self, nanos: u64) {
        self.results.push_back(Ok(ready_after(nanos)));
    }

    /// Adds a result.
    pub fn push(&mut self, result: Result<LaunchOutcome, LaunchError>) {
        self.results.push_back(result);
    }

    /// The specifications of the launches so far.
    pub fn launched(&self) -> &[LaunchSpec] {
        &self.launched
    }
}

/// The pid that scripted launches give to the hooks.
pub const SCRIPTED_PID: i32 = 4_194_305;

/// An outcome that was ready after `nanos` ns, for scripts to change.
pub fn ready_after(nanos: u64) -> LaunchOutcome {
    let released_at = 1_000_000_000;
    LaunchOutcome {
        pid: SCRIPTED_PID,
        released_at,
        ready_at: Some(released_at + nanos),
        resolution: 0,
        stop: StopReason::Ready,
        exit: None,
        usage: None,
        first_thread: None,
        groups: None,
        memory: Vec::new(),
        stdout_tail: None,
        stderr_tail: None,
        url: None,
        left_out: Vec::new(),
    }
}

impl Launcher for ScriptedLauncher {
    fn launch(&mut self, spec: &LaunchSpec, hooks: &mut dyn Hooks) -> Result<LaunchOutcome, LaunchError> {
        spec.validate()?;
        self.launched.push(spec.clone());
        let outcome = self.results.pop_front().unwrap_or_else(|| {
            Err(LaunchError::InvalidSpec(format!("the script has no result for launch {}", self.launched.len())))
        })?;
        hooks.before_release(outcome.pid).map_err(LaunchError::Hook)?;
        hooks.on_released(outcome.released_at);
        hooks.on_tick();
        if let Some(at) = outcome.ready_at {
            hooks.on_ready(at);
        }
        Ok(outcome)
    }
}

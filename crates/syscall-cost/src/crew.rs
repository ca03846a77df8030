//! The threads of the arms.

use crate::arm::{Arm, Refused};
use crate::baton::Baton;
use crate::state::ThreadState;
use crate::workload::Bench;
use slowpath_seccomp::Program;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a thread may take to begin, and a burst to be done: on a CPU that others use at a higher priority it is late.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Room for a thread that calls a handful of functions.
const STACK: usize = 128 << 10;

/// A thread that waits for its bursts.
pub(crate) struct Member {
    /// Which arm it is.
    pub(crate) arm: Arm,
    /// Asks it for bursts.
    pub(crate) baton: Arc<Baton>,
    /// What the kernel says of it.
    pub(crate) state: ThreadState,
}

/// Why a thread is none of the arm's, and what would change that.
pub(crate) type Missing = (String, String);

impl Member {
    /// Its last burst is done. A thread with a filter waits until the process ends.
    pub(crate) fn dismiss(&self) {
        if !self.arm.is_filtered() {
            self.baton.dismiss();
        }
    }
}

/// Starts the thread of an arm, on the CPUs of the caller, and reads its state.
///
/// # Errors
/// The kernel refuses what the arm has, or the thread did not begin.
pub(crate) fn enlist(arm: Arm, programs: &Arc<Vec<Program>>, bench: &Arc<Bench>) -> Result<Member, Missing> {
    let baton = Arc::new(Baton::begun());
    let begun = Arc::new((AtomicU32::new(0), OnceLock::<Result<(), Refused>>::new()));
    let (theirs, telling, programs, bench) = (baton.clone(), begun.clone(), programs.clone(), bench.clone());
    let work = move || {
        let (tid, applied) = &*telling;
        // SAFETY: takes and touches nothing.
        let own = unsafe { libc::syscall(libc::SYS_gettid) };
        tid.store(u32::try_from(own).unwrap_or_default(), Ordering::Relaxed);
        // From here on it allocates nothing: its filter may refuse what that needs.
        let _ = applied.set(arm.apply(&programs));
        theirs.serve(&bench);
    };
    let started = std::thread::Builder::new().name(arm.name().to_owned()).stack_size(STACK).spawn(work);
    let missing = |reason: String| (reason, "run it again on a machine that is less busy".to_owned());
    started.map_err(|error| missing(format!("there is no thread for it: {error}")))?;
    baton.done(PATIENCE).ok_or_else(|| missing(format!("its thread did not begin within {} s", PATIENCE.as_secs())))?;
    let (tid, applied) = &*begun;
    match applied.get() {
        Some(Ok(())) => {}
        Some(Err(refused)) => return Err(refused.reason_and_remedy()),
        None => return Err(missing("its thread reported nothing".to_owned())),
    }
    let state = ThreadState::of(tid.load(Ordering::Relaxed));
    let state = state.map_err(|error| (format!("its state cannot be read: {error}"), "a mounted /proc".to_owned()))?;
    Ok(Member { arm, baton, state })
}

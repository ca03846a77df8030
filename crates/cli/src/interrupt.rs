//! Ctrl-C and SIGTERM: remembered, so that the command ends cleanly and keeps what it has. A second one ends at once.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use slowpath_launch::Hooks;
use std::sync::atomic::{AtomicU32, Ordering};

static SEEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn remember(_: i32) {
    if SEEN.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: _exit is async-signal-safe; kernel objects and the target's tree hang on this process.
        unsafe { libc::_exit(130) }
    }
}

/// Begins to remember.
pub fn watch() {
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only touches an atomic and calls _exit.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// True once the user asked to stop.
pub fn requested() -> bool {
    SEEN.load(Ordering::Relaxed) > 0
}

/// Hooks of a launch that ends when the user asks to stop.
pub struct Interruptible;

impl Hooks for Interruptible {
    fn follows(&self) -> bool {
        false
    }

    fn stop_requested(&self) -> bool {
        requested()
    }
}

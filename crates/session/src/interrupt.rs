//! Ctrl-C and SIGTERM: remembered, so that the command ends cleanly and keeps what it has. A second one ends at once.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use slowpath_launch::Hooks;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static SEEN: AtomicU32 = AtomicU32::new(0);
/// Of the terminal's, and not passed on yet.
static FROM_TERMINAL: AtomicBool = AtomicBool::new(false);

/// `si_code` of what the kernel itself sends, as for a key of the terminal (include/uapi/asm-generic/siginfo.h).
const SI_KERNEL: i32 = 0x80;

extern "C" fn remember(signal: i32, information: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid one.
    if signal == libc::SIGINT && unsafe { (*information).si_code } == SI_KERNEL {
        FROM_TERMINAL.store(true, Ordering::Relaxed);
    }
    if SEEN.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: _exit is async-signal-safe; kernel objects and the target's tree hang on this process.
        unsafe { libc::_exit(130) }
    }
}

/// Begins to remember.
pub fn watch() {
    let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO;
    let action = SigAction::new(SigHandler::SigAction(remember), flags, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only touches an atomic and calls _exit.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// True once the user asked to stop.
pub fn requested() -> bool {
    SEEN.load(Ordering::Relaxed) > 0
}

/// True once for each ctrl-C of the terminal, for a target that is not of its session.
pub fn of_terminal() -> bool {
    FROM_TERMINAL.swap(false, Ordering::Relaxed)
}

/// Hooks of a launch that ends when the user asks to stop.
pub struct Interruptible;

impl Hooks for Interruptible {
    fn follows(&self) -> bool {
        false
    }

    fn interrupted(&mut self) -> bool {
        of_terminal()
    }

    fn stop_requested(&self) -> bool {
        requested()
    }
}

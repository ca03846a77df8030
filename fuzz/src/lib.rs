//! What all fuzzers have in common: one target of `slowpath_foreign_data` gets the bytes.

#[doc(hidden)]
pub use libfuzzer_sys::fuzz_target;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a target. The hook of libFuzzer aborts at once; but some parsers expect a panic of a library and take it for damage (the
/// Parquet decoder, the DWARF parser), so here only what nobody catches is a finding.
pub fn run(name: &str, bytes: &[u8]) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string())));
    });
    let target = slowpath_foreign_data::named(name);
    if catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err() {
        LAST_PANIC.with(|last| eprintln!("{}", last.borrow()));
        std::process::abort();
    }
}

/// A fuzzer of the target of this name.
#[macro_export]
macro_rules! fuzz {
    ($name:literal) => {
        $crate::fuzz_target!(|bytes: &[u8]| $crate::run($name, bytes));
    };
}

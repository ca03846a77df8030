//! `slowpath_zygote` for C, declared in `include/slowpath_zygote.h`, and for Python, whose module is `crates/zygote/python/slowpath_zygote.py`.
//!
//! No panic crosses it; every text it gives belongs to the caller. Leaves all that is decided to `slowpath_zygote`.

mod asking;
mod serving;

pub use asking::{
    Request, slowpath_zygote_close, slowpath_zygote_descriptor, slowpath_zygote_pid, slowpath_zygote_signal,
    slowpath_zygote_spawn, slowpath_zygote_wait,
};
pub use serving::{ChildGiven, Program, slowpath_zygote_serve};

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int};

/// Done.
const FINE: c_int = 0;
/// Wrong usage, as the exit code of the command.
const WRONG: c_int = 2;
/// It cannot be done.
const CANNOT: c_int = 3;

/// Why something was not done: a code and words.
type Failed = (c_int, String);

fn cannot(error: impl Error) -> Failed {
    (CANNOT, chain(&error))
}

fn chain(error: &dyn Error) -> String {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {}", chain(cause)));
    format!("{error}{cause}")
}

/// Frees a text that was given. Null is nothing to free.
///
/// # Safety
/// `text` is null, or was given by a function of this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw`, as the caller says.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// # Safety
/// `text` is null or a string that lives as long as its use.
unsafe fn borrowed<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// # Safety
/// `list` is null, or strings up to a null, all of which live as long as their use.
unsafe fn strings<'a>(list: *const *const c_char) -> Vec<&'a CStr> {
    let mut found = Vec::new();
    if list.is_null() {
        return found;
    }
    // SAFETY: each is read before the next, up to the null, as the caller says.
    while let Some(one) = unsafe { borrowed(*list.add(found.len())) } {
        found.push(one);
    }
    found
}

/// The code, with the words where there are some.
///
/// # Safety
/// `place` is null or may be written.
unsafe fn returned(done: Result<(), Failed>, place: *mut *mut c_char) -> c_int {
    let (code, text) = match done {
        Ok(()) => (FINE, None),
        // A path in a message may hold a null byte.
        Err((code, text)) => (code, Some(CString::new(text.replace('\0', "\\0")).unwrap_or_default())),
    };
    if !place.is_null() {
        // SAFETY: as the caller says.
        unsafe { *place = text.map_or(std::ptr::null_mut(), CString::into_raw) };
    }
    code
}

fn crashed() -> Failed {
    (CANNOT, "the library crashed; standard error says where".to_owned())
}

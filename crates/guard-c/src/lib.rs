//! `slowpath_guard` for C, declared in `include/slowpath_guard.h`, and for Python, `python/slowpath_guard.py`.
//!
//! No panic crosses it; every text it gives belongs to the caller. Leaves all that is decided to `slowpath_guard`.

use slowpath_guard::{Options, guard};
use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// `SLOWPATH_GUARD_REPAIR`: run the commands of the policy.
const REPAIR: c_uint = 1;

/// Wrong usage, as the exit code of the command.
const USAGE: c_int = 2;
/// It cannot be done.
const CANNOT: c_int = 3;

/// Checks the artifacts of a policy. See `include/slowpath_guard.h`.
///
/// # Safety
/// `policy` is a string. `user` is a string or null. `lines` and `error` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_guard_check(
    policy: *const c_char,
    flags: c_uint,
    user: *const c_char,
    lines: *mut *mut c_char,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller says that these are strings or null.
    let (policy, user) = unsafe { (borrowed(policy), borrowed(user)) };
    let done = catch_unwind(AssertUnwindSafe(|| checked(policy, flags, user)));
    let (code, said, why) = match done {
        Ok((code, Ok(said))) => (code, Some(said), None),
        Ok((code, Err(why))) => (code, None, Some(why)),
        Err(_) => (CANNOT, None, Some("the check crashed; standard error says where".to_owned())),
    };
    // SAFETY: the caller says that these are null or may be written.
    unsafe {
        give(lines, said);
        give(error, why);
    }
    code
}

/// Frees a text that `slowpath_guard_check` gave. Null is nothing to free.
///
/// # Safety
/// `text` is null, or came from `slowpath_guard_check` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_guard_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw`, as the caller says.
        drop(unsafe { CString::from_raw(text) });
    }
}

fn checked(policy: Option<&CStr>, flags: c_uint, user: Option<&CStr>) -> (c_int, Result<String, String>) {
    let Some(policy) = policy else { return (USAGE, Err("the path of the policy is NULL".to_owned())) };
    if flags & !REPAIR != 0 {
        return (USAGE, Err(format!("the flags {:#x} are not known", flags & !REPAIR)));
    }
    let user = match user.map(CStr::to_str).transpose() {
        Ok(user) => user.map(str::to_owned),
        Err(_) => return (USAGE, Err("the user is no UTF-8".to_owned())),
    };
    let options = Options { repair: flags & REPAIR != 0, user };
    match guard(Path::new(OsStr::from_bytes(policy.to_bytes())), &options) {
        Ok(report) => (report.exit_code().into(), Ok(report.json_lines())),
        Err(failed) => {
            let cause = failed.source().map_or_else(String::new, |cause| format!(": {cause}"));
            (failed.exit_code().into(), Err(format!("{failed}{cause}")))
        }
    }
}

/// # Safety
/// `text` is null or a string that lives as long as its use.
unsafe fn borrowed<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// # Safety
/// `place` is null or may be written.
unsafe fn give(place: *mut *mut c_char, text: Option<String>) {
    if place.is_null() {
        return;
    }
    // JSON holds no null byte, and a path in a message may.
    let text = text.map(|text| CString::new(text.replace('\0', "\\0")).unwrap_or_default());
    // SAFETY: as the caller says.
    unsafe { *place = text.map_or(std::ptr::null_mut(), CString::into_raw) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    fn call(policy: *const c_char, flags: c_uint) -> (c_int, Option<String>, Option<String>) {
        let (mut lines, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: strings or null, and two places of ours.
        let code = unsafe { slowpath_guard_check(policy, flags, null(), &mut lines, &mut error) };
        let taken = |text: *mut c_char| {
            // SAFETY: it was given, and is freed once.
            let said = unsafe { borrowed(text) }.map(|text| text.to_str().unwrap().to_owned());
            // SAFETY: as above.
            unsafe { slowpath_guard_free(text) };
            said
        };
        (code, taken(lines), taken(error))
    }

    #[test]
    fn what_is_wrong_is_a_code_and_a_text_and_never_a_crash() {
        assert_eq!(call(null(), 0).0, USAGE);
        assert_eq!(call(c"/none".as_ptr(), 2).2.unwrap(), "the flags 0x2 are not known");
        let (code, lines, error) = call(c"/none/policy.toml".as_ptr(), 0);
        assert!(code == USAGE && lines.is_none() && error.unwrap().contains("/none/policy.toml cannot be used"));
        // SAFETY: nothing may be written, and nothing is read but the path.
        let code =
            unsafe { slowpath_guard_check(c"/none".as_ptr(), 0, null(), std::ptr::null_mut(), std::ptr::null_mut()) };
        assert_eq!(code, USAGE);
    }
}

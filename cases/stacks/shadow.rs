//! The stack kept by hand, for Rust: see shadow.h, whose C implementation it uses.

use std::ffi::{CString, c_char, c_uint};
use std::os::unix::ffi::OsStrExt;

#[repr(C)]
struct Shadow {
    depth: c_uint,
    active: [*const c_char; 120],
}

unsafe extern "C" {
    // The thread's own, by a function, because thread-local variables of C are not for Rust.
    fn shadow_of_thread() -> *mut Shadow;
    fn shadow_begin(directory: *const c_char, generation: c_uint);
    fn shadow_note() -> *mut u8;
    fn shadow_end();
}

/// A function is active until this is dropped, also by a panic.
pub struct Active(c_uint);

impl Active {
    #[inline(always)]
    pub fn new(name: &'static std::ffi::CStr) -> Self {
        // SAFETY: the stack is the thread's own, and deeper than the program goes.
        unsafe {
            let shadow = &mut *shadow_of_thread();
            let before = shadow.depth;
            shadow.active[before as usize] = name.as_ptr();
            shadow.depth = before + 1;
            Self(before)
        }
    }
}

impl Drop for Active {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { (*shadow_of_thread()).depth = self.0 }
    }
}

/// Logs the stack and touches a fresh page.
#[inline(always)]
pub fn touch() {
    // SAFETY: the page is mapped writable.
    unsafe { shadow_note().write_volatile(1) }
}

/// Runs `body` with a log in the directory that the program's first argument names.
pub fn logged(body: impl FnOnce()) {
    let directory = std::env::args_os().nth(1).expect("a directory for the log");
    let directory: &'static CString = Box::leak(Box::new(CString::new(directory.as_bytes()).expect("no NUL")));
    // SAFETY: the name of the directory lives on.
    unsafe { shadow_begin(directory.as_ptr(), 0) };
    body();
    // SAFETY: the log has begun.
    unsafe { shadow_end() };
}

//! A program in C that serves children.

use crate::{Failed, WRONG, borrowed, cannot, crashed, returned};
use slowpath_zygote::listener::{Bound, inherited};
use slowpath_zygote::policy::Policy;
use slowpath_zygote::{Child, Preloaded, Word, readiness, serve};
use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// `struct slowpath_zygote_child`.
#[repr(C)]
#[derive(Debug)]
pub struct ChildGiven {
    argument_count: usize,
    arguments: *const *const c_char,
    variable_count: usize,
    variables: *const *const c_char,
    seed: *const c_uchar,
}

/// A hook.
type Hook = Option<unsafe extern "C" fn(*mut c_void)>;

/// `struct slowpath_zygote_program`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Program {
    run: Option<unsafe extern "C" fn(*const ChildGiven, *mut c_void) -> c_int>,
    before_fork: Hook,
    after_fork_in_zygote: Hook,
    after_fork_in_child: Hook,
    data: *mut c_void,
}

impl Program {
    fn call(&self, hook: Hook) {
        if let Some(hook) = hook {
            // SAFETY: a function of the caller's, with the caller's data; the header says that it may be called here.
            unsafe { hook(self.data) };
        }
    }
}

/// Words as C has them: pointers up to a null, and what they point to.
fn listed(words: &[Word]) -> (Vec<CString>, Vec<*const c_char>) {
    // A request holds no null bytes.
    let words: Vec<CString> = words.iter().filter_map(|word| CString::new(word.0.clone()).ok()).collect();
    let pointers = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    (words, pointers)
}

impl Preloaded for Program {
    fn before_fork(&mut self) {
        self.call(self.before_fork);
    }

    fn after_fork_in_zygote(&mut self) {
        self.call(self.after_fork_in_zygote);
    }

    fn after_fork_in_child(&mut self) {
        self.call(self.after_fork_in_child);
    }

    fn run(&mut self, child: &Child) -> i32 {
        let Some(run) = self.run else { return 1 };
        let (arguments, variables) = (listed(&child.arguments), listed(&child.environment));
        let given = ChildGiven {
            argument_count: arguments.0.len(),
            arguments: arguments.1.as_ptr(),
            variable_count: variables.0.len(),
            variables: variables.1.as_ptr(),
            seed: child.seed.as_ptr(),
        };
        // SAFETY: a function of the caller's, with the caller's data, and a structure that lives until it returns.
        unsafe { run(&raw const given, self.data) }
    }
}

/// Serves children. See `include/slowpath_zygote.h`.
///
/// # Safety
/// `socket` and `policy` are strings or null. `program` is null or such a structure, whose functions may be called. `error` is null or may
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_serve(
    socket: *const c_char,
    policy: *const c_char,
    program: *const Program,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller says that these are strings or null, and a structure or null.
    let (socket, policy, program) = unsafe { (borrowed(socket), borrowed(policy), program.as_ref()) };
    let done = catch_unwind(AssertUnwindSafe(|| served(socket, policy, program)));
    // SAFETY: as the caller says.
    unsafe { returned(done.unwrap_or_else(|_| Err(crashed())), error) }
}

fn served(socket: Option<&CStr>, policy: Option<&CStr>, program: Option<&Program>) -> Result<(), Failed> {
    let wrong = |text: &str| (WRONG, text.to_owned());
    let mut program = *program.filter(|program| program.run.is_some()).ok_or_else(|| wrong("there is no run"))?;
    let handed = env::var(readiness::POLICY).unwrap_or_default();
    // SAFETY: the process has one thread, as serving demands; children must not find it.
    unsafe { env::remove_var(readiness::POLICY) };
    let text = policy.map_or(Ok(handed.as_str()), CStr::to_str).map_err(|_| wrong("the policy is no UTF-8"))?;
    let policy = Policy::parse(text).map_err(|error| (WRONG, error.to_string()))?;
    match socket {
        Some(path) => {
            let bound = Bound::at(Path::new(OsStr::from_bytes(path.to_bytes()))).map_err(cannot)?;
            let listener = bound.socket().try_clone().map_err(cannot)?;
            serve(listener, &policy, &mut program).map_err(cannot)?;
        }
        None => {
            let listener = inherited().map_err(cannot)?;
            let listener =
                listener.ok_or_else(|| wrong("no path is given, and no socket is handed over (LISTEN_FDS)"))?;
            serve(listener, &policy, &mut program).map_err(cannot)?;
        }
    }
    Ok(())
}

//! The template of a shared library: this very program, started anew, which loads it and serves.

use crate::c_strings::c_path;
use crate::child::{Child, Preloaded, probe};
use crate::listener::inherited;
use crate::message::Word;
use crate::policy::Policy;
use crate::preload::PROBE;
use crate::readiness;
use crate::server::serve;
use std::env;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

pub use crate::preload::LIBRARY_ARGUMENT;

/// `int main(int, char **)`.
type Entry = unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int;

/// A library that was loaded; it is never unloaded.
struct Library {
    entry: Entry,
}

fn last_error() -> io::Error {
    // SAFETY: it gives null or a string that lives until the next call of these functions, of which there is none before it is copied.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    };
    io::Error::other(text)
}

fn symbol(handle: *mut c_void, name: &CStr) -> io::Result<*mut c_void> {
    // SAFETY: a handle that was opened, and a string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() { Err(last_error()) } else { Ok(found) }
}

impl Library {
    fn load(path: &Path, entry: &str) -> io::Result<Self> {
        // SAFETY: runs what the library does when it is loaded, which is what it was named for.
        let handle = unsafe { libc::dlopen(c_path(path)?.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(last_error());
        }
        if let Ok(preload) = symbol(handle, c"slowpath_zygote_preload") {
            // SAFETY: the documentation says that a function of this name takes and gives nothing.
            let preload: unsafe extern "C" fn() = unsafe { std::mem::transmute(preload) };
            // SAFETY: as above; it is called once, by the one thread.
            unsafe { preload() };
        }
        let found = symbol(handle, &CString::new(entry)?)?;
        // SAFETY: the documentation says that the entry is such a function.
        Ok(Self { entry: unsafe { std::mem::transmute::<*mut c_void, Entry>(found) } })
    }

    fn call(&self, arguments: &[Word]) -> c_int {
        let words: Vec<CString> = arguments.iter().filter_map(|word| CString::new(word.0.clone()).ok()).collect();
        let mut pointers: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        pointers.push(std::ptr::null_mut());
        // SAFETY: as many strings as it says and a null, all of which live as long as the call. A `main` may change them.
        unsafe { (self.entry)(count, pointers.as_mut_ptr()) }
    }
}

impl Preloaded for Library {
    fn run(&mut self, child: &Child) -> i32 {
        self.call(&child.arguments)
    }
}

/// The whole life of a template: its arguments are the library, the entry, and where it does its work once: `once` and the words for that.
/// Gives the exit code.
pub fn library_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    // As a program in C has it, and its children expect it.
    // SAFETY: the default runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match served(arguments) {
        Ok(code) => code,
        Err(error) => {
            let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
            eprintln!("slowpath: {error}{cause}");
            1
        }
    }
}

fn served(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Box<dyn std::error::Error>> {
    let (path, entry) = (arguments.next().ok_or("no library")?, arguments.next().ok_or("no entry")?);
    let entry = entry.to_str().ok_or("an entry is a name of C")?.to_owned();
    let policy = Policy::parse(&env::var(readiness::POLICY).unwrap_or_default())?;
    // SAFETY: this thread is the only one.
    unsafe { env::remove_var(readiness::POLICY) };
    let listener = inherited()?;
    let mut library = Library::load(Path::new(&path), &entry)?;
    match listener {
        Some(listener) => {
            serve(listener, &policy, &mut library)?;
            Ok(0)
        }
        None => {
            if env::var_os(PROBE).is_some() {
                probe();
                return Ok(0);
            }
            let words: Vec<Word> = arguments.skip(1).map(|word| Word(word.into_vec())).collect();
            // Exit codes are the lowest 8 bits.
            Ok(library.call(&words) as u8)
        }
    }
}

//! A program in C that asks for children.

use crate::{CANNOT, FINE, Failed, WRONG, borrowed, cannot, crashed, returned, strings};
use slowpath_zygote::{AskedFilter, AskedIdentity, Client, Ending, Namespace, SpawnError, SpawnRequest, Spawned, Word};
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const IDENTITY: c_uint = 1;
const ALLOW_SPECULATION: c_uint = 2;
const OF_USER: c_uint = 4;
const FLAGS: c_uint = IDENTITY | ALLOW_SPECULATION | OF_USER;

/// `struct slowpath_zygote_request`.
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    arguments: *const *const c_char,
    variables: *const *const c_char,
    namespaces: *const c_char,
    filter: *const c_void,
    filter_length: usize,
    flags: c_uint,
    uid: c_uint,
    gid: c_uint,
    descriptor_count: usize,
    descriptors: *const c_int,
    numbers: *const c_uint,
    zygote_uid: c_uint,
}

/// A list of the caller's.
///
/// # Safety
/// `list` is null or as many values, which live as long as their use.
unsafe fn list<'a, T>(list: *const T, count: usize) -> &'a [T] {
    // SAFETY: as the caller says.
    if list.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(list, count) } }
}

/// What is asked for, and the descriptors that go along.
///
/// # Safety
/// As `include/slowpath_zygote.h` says of the structure.
unsafe fn request<'a>(given: &Request) -> Result<(SpawnRequest, Vec<BorrowedFd<'a>>), Failed> {
    let wrong = |text: String| (WRONG, text);
    if given.flags & !FLAGS != 0 {
        return Err(wrong(format!("the flags {:#x} are not known", given.flags & !FLAGS)));
    }
    let words = |list| {
        // SAFETY: strings up to a null, as the header says.
        let found = unsafe { strings(list) };
        found.into_iter().map(|word| Word(word.to_bytes().to_owned())).collect()
    };
    // SAFETY: lists of as many values, as the header says.
    let (descriptors, numbers, filter) = unsafe {
        (
            list(given.descriptors, given.descriptor_count),
            list(given.numbers, given.descriptor_count),
            list(given.filter.cast::<u8>(), given.filter_length),
        )
    };
    if descriptors.len() != given.descriptor_count || numbers.len() != given.descriptor_count {
        return Err(wrong("descriptor_count and no list of descriptors, or none of numbers".to_owned()));
    }
    if let Some(closed) = descriptors.iter().find(|fd| **fd < 0) {
        return Err(wrong(format!("{closed} is no descriptor")));
    }
    // SAFETY: a string or null, as the header says.
    let names =
        unsafe { borrowed(given.namespaces) }.map(|names| names.to_string_lossy().into_owned()).unwrap_or_default();
    let namespaces = names.split(',').filter(|name| !name.is_empty()).map(Namespace::named).collect::<Result<_, _>>();
    let has = |flag| given.flags & flag != 0;
    let asked = SpawnRequest {
        arguments: words(given.arguments),
        environment: words(given.variables),
        identity: has(IDENTITY).then(|| AskedIdentity { uid: given.uid, gid: given.gid, groups: Vec::new() }),
        namespaces: namespaces.map_err(wrong)?,
        filter: (!filter.is_empty())
            .then(|| AskedFilter { program: Word(filter.to_owned()), allow_speculation: has(ALLOW_SPECULATION) }),
        descriptors: numbers.to_vec(),
        probe: false,
    };
    // SAFETY: not negative; open until the call returns, as the header says, and a closed one is answered with an error.
    let given = descriptors.iter().map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) }).collect();
    Ok((asked, given))
}

/// Asks for a child. See `include/slowpath_zygote.h`.
///
/// # Safety
/// As the header says: strings and lists that live until it returns, `child` and `error` null or to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_spawn(
    socket: *const c_char,
    given: *const Request,
    child: *mut *mut Spawned,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller says that these are a string or null, a structure or null, and a place or null.
    let (socket, given, place) = unsafe { (borrowed(socket), given.as_ref(), child.as_mut()) };
    let Some(place) = place else {
        // SAFETY: as the caller says.
        return unsafe { returned(Err((WRONG, "child is NULL".to_owned())), error) };
    };
    *place = std::ptr::null_mut();
    let done = catch_unwind(AssertUnwindSafe(|| spawned(socket, given)));
    let done = done.unwrap_or_else(|_| Err(crashed())).map(|child| *place = Box::into_raw(Box::new(child)));
    // SAFETY: as the caller says.
    unsafe { returned(done, error) }
}

fn spawned(socket: Option<&CStr>, given: Option<&Request>) -> Result<Spawned, Failed> {
    let socket = socket.ok_or_else(|| (WRONG, "socket is NULL".to_owned()))?;
    let given = given.ok_or_else(|| (WRONG, "request is NULL".to_owned()))?;
    // SAFETY: the caller of the function of C says so.
    let (request, descriptors) = unsafe { request(given) }?;
    request.check().map_err(|refusal| (WRONG, refusal.to_string()))?;
    let user = (given.flags & OF_USER != 0).then_some(given.zygote_uid);
    let client = Client::connect_to(Path::new(OsStr::from_bytes(socket.to_bytes())), user).map_err(cannot)?;
    client.spawn(request, &descriptors).map_err(cannot)
}

/// Waits for its end. See `include/slowpath_zygote.h`.
///
/// # Safety
/// `child` is null or was given by [`slowpath_zygote_spawn`] and not closed; `status` and `error` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_wait(
    child: *mut Spawned,
    status: *mut c_int,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: as the caller says.
    let (child, status) = unsafe { (child.as_ref(), status.as_mut()) };
    let waited = || -> Result<(), Failed> {
        let child = child.ok_or_else(|| (WRONG, "child is NULL".to_owned()))?;
        let ending = child.wait().map_err(cannot)?;
        if let Some(status) = status {
            // As wait(2) has them.
            *status = match ending {
                Ending::Exited(code) => (code & 0xff) << 8,
                Ending::Killed(signal) => signal & 0x7f,
            };
        }
        Ok(())
    };
    let done = catch_unwind(AssertUnwindSafe(waited)).unwrap_or_else(|_| Err(crashed()));
    // SAFETY: as the caller says.
    unsafe { returned(done, error) }
}

/// Has the zygote send it a signal.
///
/// # Safety
/// `child` is null or was given by [`slowpath_zygote_spawn`] and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_signal(child: *mut Spawned, signal: c_int) -> c_int {
    // SAFETY: as the caller says.
    let Some(child) = (unsafe { child.as_ref() }) else { return WRONG };
    match child.signal(signal) {
        Ok(()) => FINE,
        Err(SpawnError::Refused(_)) => WRONG,
        Err(_) => CANNOT,
    }
}

/// Its process id; -1 of null.
///
/// # Safety
/// `child` is null or was given by [`slowpath_zygote_spawn`] and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_pid(child: *const Spawned) -> c_int {
    // SAFETY: as the caller says.
    unsafe { child.as_ref() }.map_or(-1, |child| child.pid)
}

/// A descriptor that is readable when it has ended; -1 of null.
///
/// # Safety
/// `child` is null or was given by [`slowpath_zygote_spawn`] and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_descriptor(child: *const Spawned) -> c_int {
    // SAFETY: as the caller says.
    unsafe { child.as_ref() }.map_or(-1, |child| child.as_fd().as_raw_fd())
}

/// Ends and frees it.
///
/// # Safety
/// `child` is null or was given by [`slowpath_zygote_spawn`] and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slowpath_zygote_close(child: *mut Spawned) {
    if !child.is_null() {
        // SAFETY: it came from `Box::into_raw`, as the caller says.
        drop(unsafe { Box::from_raw(child) });
    }
}

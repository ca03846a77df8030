//! The HTML file of `browser:HTML_FILE`.
//!
//! The target may be able to replace it, or to hold back who opens it, and what is read is served to the target. So whoever has more than
//! the target has it read in a worker of the target's user, for a limited time, and once: all launches of a command get the same page.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use slowpath_process::{Duty, Sandbox, Worker, foreign_file};

use crate::Identity;

/// Larger pages are not what a start is measured with, and they are kept in memory.
const PAGE_LIMIT: u64 = 16 << 20;
/// How long it may take to read one: much longer than a disk needs.
const LIMIT: Duration = Duration::from_secs(10);

/// A page that was read, and as which user.
struct Known {
    path: PathBuf,
    uid: u32,
    page: String,
}

/// What this process has read: few, most often one.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The page in this file, as it was when this process first asked for it, and as that user may read it.
pub(crate) fn of(path: &Path, identity: &Identity) -> Result<String, String> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.iter().find(|known| known.path == path && known.uid == identity.uid) {
        return Ok(known.page.clone());
    }
    let page = read(path, identity)?;
    known.push(Known { path: path.to_owned(), uid: identity.uid, page: page.clone() });
    Ok(page)
}

fn read(path: &Path, identity: &Identity) -> Result<String, String> {
    let named = |why: String| format!("cannot read the page {} as {}: {why}", path.display(), identity.user);
    let read = || foreign_file::read(path, PAGE_LIMIT).map_err(|error| error.to_string());
    let bytes =
        if identity.has_all_that_this_process_has() { read() } else { read_as(identity, read) }.map_err(named)?;
    String::from_utf8(bytes).map_err(|_| format!("the page {} is not in UTF-8", path.display()))
}

/// The first byte of the worker's answer says whether the page or the reason follows.
fn read_as(identity: &Identity, read: impl FnOnce() -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
    let sandbox = Sandbox::new(identity.credentials(), Duty::Read).silent();
    let answered = Worker::start(&sandbox, &[], || match read() {
        Ok(bytes) => [&[0], bytes.as_slice()].concat(),
        Err(why) => [&[1], why.as_bytes()].concat(),
    });
    let mut bytes = answered.and_then(|worker| worker.wait(LIMIT, || true)).map_err(|error| error.to_string())?;
    let is_page = bytes.first() == Some(&0);
    bytes.drain(..1.min(bytes.len()));
    if is_page { Ok(bytes) } else { Err(String::from_utf8_lossy(&bytes).into_owned()) }
}

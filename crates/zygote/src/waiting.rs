//! Waiting for any of many descriptors, also of more than the limit of the process allows to open by now.

use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::time::Duration;

/// How long nothing is looked at between two looks, where they cannot be waited for together.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until something happened to one of them, for a time at most; none: however long it takes. May return before with nothing.
///
/// poll(2) refuses more descriptors than the soft `RLIMIT_NOFILE`, and somebody can lower that below what is open (with prlimit): they are
/// looked at in parts then, because a zygote that ends would take all its children with it.
///
/// # Errors
/// What ppoll(2) says otherwise.
pub(crate) fn waited(fds: &mut [PollFd<'_>], timeout: Option<TimeSpec>) -> nix::Result<()> {
    let most = match ppoll(fds, timeout, None) {
        Ok(_) => return Ok(()),
        Err(Errno::EINVAL) => getrlimit(Resource::RLIMIT_NOFILE)?.0,
        Err(errno) => return Err(errno),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    if most >= fds.len() {
        return Err(Errno::EINVAL);
    }
    let mut happened = 0;
    for part in fds.chunks_mut(most) {
        happened += ppoll(part, Some(TimeSpec::zero()), None)?;
    }
    if happened == 0 {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

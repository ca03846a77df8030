//! Says to whoever started this process that it is ready: `slowpath zygote serve` through a descriptor, a service manager through its
//! socket (sd_notify(3)).

use std::env;
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable with the number of the descriptor.
pub const DESCRIPTOR: &str = "SLOWPATH_ZYGOTE_READY";

/// The variable with the policy as text, for programs that `slowpath zygote serve` starts.
pub const POLICY: &str = "SLOWPATH_ZYGOTE_POLICY";

/// Says it, once. Nobody who listens is no error: the zygote serves anyway.
pub(crate) fn say() {
    let descriptor = env::var(DESCRIPTOR).ok().and_then(|text| text.parse::<RawFd>().ok()).filter(|fd| *fd > 2);
    // SAFETY: a zygote has one thread. Its children must not speak in its name.
    unsafe { env::remove_var(DESCRIPTOR) };
    if let Some(descriptor) = descriptor {
        // SAFETY: whoever set the variable hands the descriptor over to this process.
        let _ = unsafe { File::from_raw_fd(descriptor) }.write_all(b"1");
        return;
    }
    notify("READY=1");
    // SAFETY: as above.
    unsafe { env::remove_var("NOTIFY_SOCKET") };
}

/// Says something to the service manager, where there is one.
pub fn notify(what: &str) {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.to_str().and_then(|name| name.strip_prefix('@')) {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(what.as_bytes(), &address);
    }
}

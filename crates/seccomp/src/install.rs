//! Gives the calling thread a filter, for good: no call takes one back.

use crate::program::Program;
use std::io;

/// Whether the kernel may switch off CPU optimisations of the thread because of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speculation {
    /// It must not (`SECCOMP_FILTER_FLAG_SPEC_ALLOW`, Linux 4.17 and later).
    Allowed,
    /// It decides by its own default.
    AsTheKernelLikes,
}

/// The thread and what it starts get no privilege by executing a program: without this, only root may install a filter.
///
/// # Errors
/// The kernel refuses.
pub fn forbid_new_privileges() -> io::Result<()> {
    const ZERO: libc::c_ulong = 0;
    const ONE: libc::c_ulong = 1;
    // SAFETY: takes integers and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, ONE, ZERO, ZERO, ZERO) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Installs a filter in the calling thread alone, with nothing allocated.
///
/// # Errors
/// EINVAL: the instructions are no filter, or the kernel does not know the flag; EACCES: [`forbid_new_privileges`] was not called; ENOMEM: the
/// thread has too many instructions in all of its filters.
pub fn install(program: &Program, speculation: Speculation) -> io::Result<()> {
    let instructions = program.instructions();
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        // `Instruction` is `struct sock_filter`, field by field; the kernel only reads it.
        filter: instructions.as_ptr().cast_mut().cast(),
    };
    let flags = match speculation {
        Speculation::Allowed => libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
        Speculation::AsTheKernelLikes => 0,
    };
    // SAFETY: the kernel reads the structure and as many instructions as it says, all of which live until the call returns.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

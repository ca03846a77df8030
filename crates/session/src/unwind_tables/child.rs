//! The children: one kind parses the files that it is sent, and may do nothing else; another opens, as the user, the files that a program
//! maps when it starts.

use super::wire::{Mapped, Received, Request, SEALS, TableAnswer, receive, send};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use slowpath_process::{Wait, is_answered_by_a_program};
use slowpath_symbols::startup;
use slowpath_symbols::unwind_table::{Row, UnwindTable};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files larger than this are not read: no program's code is.
const LARGEST_FILE: u64 = 4 << 30;

/// Answers until the recorder ends.
pub fn serve(socket: &OwnedFd) {
    super::ask_for_short_slices();
    while let Received::Message(Request, file) = receive(socket, Wait::Forever) {
        if tell(socket, file.as_ref().and_then(parse).as_ref()).is_err() {
            return;
        }
    }
}

/// Sends the files that `program` maps when it starts, but none of a user's own file system (FUSE): the recorder holds what it is sent, and
/// closing such a file could take for ever.
pub fn list(socket: &OwnedFd, program: &Path) {
    for path in startup::files_of(program) {
        // What a file system holds up ends with this process.
        let Ok(there) = File::options().read(true).custom_flags(libc::O_PATH).open(path) else { continue };
        if !matches!(is_answered_by_a_program(&there), Ok(false)) {
            continue;
        }
        // A pipe or a terminal does not hold this up.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let again = format!("/proc/self/fd/{}", there.as_raw_fd());
        let Ok(file) = File::options().read(true).custom_flags(flags).open(again) else { continue };
        if file.metadata().is_ok_and(|metadata| metadata.is_file())
            && send(socket, &Mapped { generation: generation(&file) }, Some(&file), Wait::Forever).is_err()
        {
            return;
        }
    }
}

/// `FS_IOC_GETVERSION`, `_IOR('v', 1, long)` of include/uapi/linux/fs.h; the kernel writes an int all the same.
const GET_VERSION: libc::c_ulong = 0x8008_7601;

/// What distinguishes an inode from an earlier one with its number; none where the file system has no such call.
fn generation(file: &File) -> Option<u32> {
    // Room for a long, as the number of the call says.
    let mut version = [0i32; 2];
    // SAFETY: the call writes at most a long to a place of that size, and the descriptor is open.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), GET_VERSION, version.as_mut_ptr()) };
    (result == 0).then(|| version[0].cast_unsigned())
}

fn tell(socket: &OwnedFd, table: Option<&UnwindTable>) -> std::io::Result<()> {
    match table.and_then(|table| Some((table, in_memory(table).ok()?))) {
        Some((table, file)) => {
            let (pages, rows) = (table.pages.len() as u32, table.rows.len() as u32);
            send(socket, &TableAnswer { first_page: table.first_page, pages, rows }, Some(&file), Wait::Forever)
        }
        None => send(socket, &TableAnswer::default(), None, Wait::Forever),
    }
}

fn parse(file: &File) -> Option<UnwindTable> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if metadata.len() > LARGEST_FILE {
        return None;
    }
    // SAFETY: the mapping is private and read only. A file that shrinks meanwhile ends this child with SIGBUS, which the recorder
    // survives: that is what the child is for.
    let mapped = unsafe { memmap2::Mmap::map(file) }.ok()?;
    UnwindTable::of_elf(&mapped).ok()
}

/// A table as a file in memory that can be passed on and no more be changed: pages, then rows.
fn in_memory(table: &UnwindTable) -> std::io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"unwind-table", flags)?);
    let mut bytes = Vec::with_capacity(table.pages.len() * 4 + table.rows.len() * 8);
    for page in &table.pages {
        bytes.extend_from_slice(&page.to_ne_bytes());
    }
    for row in &table.rows {
        bytes.extend_from_slice(&bits(row).to_ne_bytes());
    }
    file.write_all(&bytes)?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS))?;
    Ok(file)
}

/// A row in its 8 bytes, as the programs in the kernel read it.
fn bits(row: &Row) -> u64 {
    let offset = |value: i16| u64::from(value.cast_unsigned());
    u64::from(row.at)
        | u64::from(row.cfa) << 16
        | u64::from(row.frame_pointer) << 24
        | offset(row.cfa_offset) << 32
        | offset(row.frame_pointer_offset) << 48
}

//! Carries mounts out, on descriptors. Paths are looked up once, without symbolic links and without entering a mount that
//! was not there before ([`MountTable`]); what was found is checked, and then mounted from and over.
//!
//! A target can change the directories in which its files lie between two launches. By path, root would mount the target's
//! file over whatever it made its directory point to.

mod descriptor_mount;
mod seen;

use std::ffi::CString;
use std::io;

use nix::mount::{MsFlags, mount};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use slowpath_process::{FileIdentity, MountTable, NotOpened};

use crate::{LeftOut, LeftOutReason, MountStep, sys};
use descriptor_mount::{PLACE, STORE, attach, clone, own_path, restrictions};

/// The mounts of one launch, one after the other. Belongs to one mount namespace.
#[derive(Debug, Default)]
pub struct Mounting {
    /// Read when it is needed, and again after a mount that later paths can go through.
    table: Option<MountTable>,
    covered: Vec<seen::Covered>,
}

impl Mounting {
    /// Carries out one step. Returns the file that was left out, if it was.
    ///
    /// # Errors
    /// The kernel refuses, or a path holds a symbolic link.
    pub fn step(&mut self, step: &MountStep) -> io::Result<Option<LeftOut>> {
        let none: Option<&str> = None;
        match step {
            MountStep::Ext4 { device, at, read_only } => {
                let at = self.table()?.open(at, PLACE)?;
                let mode = if *read_only { MsFlags::MS_RDONLY } else { MsFlags::empty() };
                let flags = mode | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
                mount(Some(device), own_path(&at).as_str(), Some("ext4"), flags, none)?;
            }
            MountStep::Overlay { lower, at } => {
                let table = self.table()?;
                let layers = lower.iter().map(|layer| table.open(layer, PLACE | OFlags::DIRECTORY));
                let layers = layers.collect::<Result<Vec<OwnedFd>, NotOpened>>()?;
                // By descriptor no byte of a path needs an escape, whose rules changed in Linux 6.8.
                let names: Vec<String> = layers.iter().map(own_path).collect();
                let options = CString::new(format!("lowerdir={}", names.join(":"))).map_err(io::Error::other)?;
                let at = table.open(at, PLACE)?;
                let flags = MsFlags::MS_RDONLY | restrictions(table.mount_of(&at)).0;
                mount(Some("overlay"), own_path(&at).as_str(), Some("overlay"), flags, Some(options.as_c_str()))?;
            }
            MountStep::Bind { from, to, recursive } => {
                let table = self.table()?;
                let (from, to) = (table.open(from, PLACE)?, table.open(to, PLACE)?);
                attach(&clone(&from, *recursive)?, &to)?;
            }
            MountStep::File { from, over, was } => {
                let table = self.table()?;
                let place = match table.open(over, PLACE) {
                    Ok(place) if FileIdentity::of(&place)? == *was => place,
                    found => {
                        let reason = left_out_reason(found.map(drop))?;
                        return Ok(Some(LeftOut { path: over.clone(), reason }));
                    }
                };
                let from = table.open(from, PLACE)?;
                let covered = restrictions(table.mount_of(&place)).1;
                let foreign = match fstat(&from)?.st_uid {
                    0 => 0,
                    _ => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
                };
                let copy = clone(&from, false)?;
                // The store has all of them.
                let kept = covered | foreign;
                sys::set_mount_attributes(&copy, kept, STORE & !kept)?;
                attach(&copy, &place)?;
                // No path goes through a file.
                return Ok(None);
            }
            MountStep::Seen(file) => {
                self.table()?;
                if let Some(table) = &mut self.table {
                    seen::show(table, &mut self.covered, file)?;
                }
            }
            MountStep::ReadOnly { at } => {
                let table = self.table()?;
                let place = table.open(at, PLACE)?;
                // What else is mounted at a place above is not this step's.
                if table.mount_of(&place).is_none_or(|mount| mount.at != *at) {
                    return Err(Errno::INVAL.into());
                }
                sys::set_mount_attributes(&place, libc::MOUNT_ATTR_RDONLY, 0)?;
                return Ok(None);
            }
            MountStep::Tmpfs { at } => {
                let at = self.table()?.open(at, PLACE)?;
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                mount(Some("tmpfs"), own_path(&at).as_str(), Some("tmpfs"), flags, Some("mode=1777"))?;
            }
        }
        self.table = None;
        Ok(None)
    }

    fn table(&mut self) -> io::Result<&mut MountTable> {
        let table = match self.table.take() {
            Some(table) => table,
            None => MountTable::read()?,
        };
        Ok(self.table.insert(table))
    }
}

/// Why the file that was found is not the one; an error that says nothing of that is passed on.
fn left_out_reason(found: Result<(), NotOpened>) -> io::Result<LeftOutReason> {
    match found {
        Ok(()) | Err(NotOpened::Link | NotOpened::MountedMeanwhile) => Ok(LeftOutReason::Replaced),
        Err(NotOpened::MayNeverAnswer(_)) => Ok(LeftOutReason::MayNeverAnswer),
        Err(NotOpened::Io(error)) => match error.kind() {
            io::ErrorKind::NotFound => Ok(LeftOutReason::Gone),
            io::ErrorKind::NotADirectory => Ok(LeftOutReason::Replaced),
            _ => Err(error),
        },
    }
}

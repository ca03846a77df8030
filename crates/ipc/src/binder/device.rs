//! Which device a pair of processes uses: one in a binderfs of its own where the kernel has that, else one in /dev that no other
//! pair of this command uses.

use super::abi;
use crate::detached;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Name of the device in a binderfs of our own.
const OWN: &str = "slowpath";
/// Devices in /dev that some pair of this process uses.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A device that the two processes of a pair open.
#[derive(Debug)]
pub(crate) enum Device {
    /// In a binderfs that nobody else reaches.
    Own(OwnedFd),
    /// In /dev.
    Shared(Shared),
}

/// A device in /dev, for as long as the pair needs it.
#[derive(Debug)]
pub(crate) struct Shared(PathBuf);

impl Drop for Shared {
    fn drop(&mut self) {
        IN_USE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

impl Device {
    /// One that no other pair of this process uses.
    ///
    /// # Errors
    /// The kernel has no binder driver, the caller may use none of its devices, or all are in use.
    pub(crate) fn claim() -> io::Result<Self> {
        let no_binderfs = match own() {
            Ok(mount) => return Ok(Self::Own(mount)),
            Err(error) => error,
        };
        let devices: Vec<PathBuf> =
            names().iter().map(|name| Path::new("/dev").join(name)).filter(|path| path.exists()).collect();
        if devices.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no binder device in /dev, and no binderfs: {no_binderfs}"),
            ));
        }
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let number = devices.len();
        let free = devices.into_iter().find(|path| !in_use.contains(path)).ok_or_else(|| {
            io::Error::other(format!(
                "without binderfs ({no_binderfs}) each pair needs a binder device, and there are {number}: load the module \
                 with more (devices=binder,binder1,...)"
            ))
        })?;
        in_use.insert(free.clone());
        Ok(Self::Shared(Shared(free)))
    }

    /// Opens it, in the process that uses it.
    pub(super) fn open(&self) -> io::Result<File> {
        match self {
            Self::Own(mount) => entry(mount, OWN),
            Self::Shared(Shared(path)) => File::options().read(true).write(true).open(path),
        }
    }
}

fn entry(mount: &OwnedFd, name: &str) -> io::Result<File> {
    Ok(openat(mount, name, OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())?.into())
}

/// A binderfs with a device, mounted nowhere (Documentation/admin-guide/binderfs.rst).
fn own() -> io::Result<OwnedFd> {
    let mount = detached::mounted(c"binder")?;
    let control = entry(&mount, "binder-control")?;
    let mut device = abi::new_device(OWN);
    // SAFETY: the structure has the size that the number says, and is alive.
    if unsafe { libc::ioctl(control.as_raw_fd(), abi::ADD_DEVICE as _, device.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(mount)
}

/// Names of the devices in /dev: those that the module was given, else those of Android.
fn names() -> Vec<String> {
    let told = ["binder_linux", "binder"]
        .iter()
        .find_map(|module| std::fs::read_to_string(format!("/sys/module/{module}/parameters/devices")).ok());
    listed(told.as_deref().unwrap_or("binder,hwbinder,vndbinder"))
}

fn listed(text: &str) -> Vec<String> {
    let is_name = |name: &&str| !name.is_empty() && *name != "(null)" && !name.contains('/');
    text.trim().split(',').filter(is_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_that_the_module_was_told() {
        assert_eq!(listed("binder,hwbinder\n"), ["binder", "hwbinder"]);
        assert!(listed("(null)\n").is_empty() && listed("").is_empty() && listed("../mem").is_empty());
    }

    #[test]
    fn a_device_in_dev_belongs_to_one_pair_at_a_time() {
        let path = PathBuf::from("/dev/of-this-test");
        let in_use = || IN_USE.lock().unwrap().contains(&path);
        IN_USE.lock().unwrap().insert(path.clone());
        let shared = Shared(path.clone());
        assert!(in_use());
        drop(shared);
        assert!(!in_use());
    }
}

//! A loop device that frees itself: autoclear, held by a close-on-exec descriptor, so that the kernel detaches it when
//! the last holder (this process or a mount of a launch) is gone, however it ended.

use crate::error::{LabError, failed};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

// `include/uapi/linux/loop.h`
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_SET_DIRECT_IO: libc::c_ulong = 0x4C08;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Direct I/O needs the device's blocks to be no smaller than those of the disk below; 4096 fits every disk.
const BLOCK_SIZE: u32 = 4096;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

const EMPTY_INFO: LoopInfo = LoopInfo {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    size_limit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_size: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// An attached loop device.
#[derive(Debug)]
pub struct LoopDevice {
    file: File,
    number: u32,
    dev: u64,
    /// Whether the file system of the image can do direct I/O.
    can_direct_io: bool,
    direct_io: bool,
}

impl LoopDevice {
    /// Attaches `image` read-only, with direct I/O where the file system of the image can do it.
    ///
    /// # Errors
    /// No loop devices on this machine (containers), a kernel older than 5.8, no privilege.
    pub fn attach_read_only(image: &File) -> Result<Self, LabError> {
        Self::attach(image, LO_FLAGS_READ_ONLY)
    }

    /// Attaches `image` for filling it.
    pub(crate) fn attach_writable(image: &File) -> Result<Self, LabError> {
        Self::attach(image, 0)
    }

    fn attach(image: &File, flags: u32) -> Result<Self, LabError> {
        let control_path = Path::new("/dev/loop-control");
        let control = OpenOptions::new().read(true).write(true).open(control_path).map_err(unavailable)?;
        // Another process can take the free number between asking and attaching: ask again.
        for _ in 0..64 {
            // SAFETY: the request takes no argument and returns a number.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            let number = u32::try_from(number).map_err(|_| unavailable(io::Error::last_os_error()))?;
            let path = device_path(number);
            let file = OpenOptions::new()
                .read(true)
                .write(flags & LO_FLAGS_READ_ONLY == 0)
                .open(&path)
                .map_err(unavailable)?;
            let wanted = flags | LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
            match configure(file.as_raw_fd(), image.as_raw_fd(), wanted) {
                Ok(()) => {
                    let in_force = status(file.as_raw_fd()).map_err(failed("read the state of", &path))?.flags;
                    let dev = crate::closure::kernel_device(file.metadata().map_err(failed("look at", &path))?.rdev());
                    let direct_io = in_force & LO_FLAGS_DIRECT_IO != 0;
                    return Ok(Self { file, number, dev, can_direct_io: direct_io, direct_io });
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(failed("attach the image to", &path)(error)),
            }
        }
        Err(failed("attach the image to", Path::new("/dev/loopN"))(io::Error::from_raw_os_error(libc::EBUSY)))
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> PathBuf {
        device_path(self.number)
    }

    /// `loopN`.
    pub fn name(&self) -> String {
        format!("loop{}", self.number)
    }

    /// The device number as tables have it (`major << 20 | minor`); also that of the file system on it.
    pub fn dev(&self) -> u64 {
        self.dev
    }

    /// Whether the device reads the image past the host's page cache. If not, a cold read can be answered from
    /// memory, which [`crate::Lab::prepare_cold`] then has to empty for the image.
    pub fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// Reads the image past the host's page cache, where its file system can do that, or through it.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn set_direct_io(&mut self, wanted: bool) -> Result<(), LabError> {
        if !self.can_direct_io || wanted == self.direct_io {
            return Ok(());
        }
        // SAFETY: the request takes a number.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_SET_DIRECT_IO as _, libc::c_ulong::from(wanted)) } {
            0 => self.direct_io = wanted,
            _ => return Err(failed("change how the image is read by", &self.path())(io::Error::last_os_error())),
        }
        Ok(())
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

fn device_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn unavailable(error: io::Error) -> LabError {
    LabError::Unavailable {
        what: "loop devices",
        reason: format!("/dev/loop-control: {error}"),
        remedy: "load the loop module and run as root, outside of containers without devices",
    }
}

fn configure(device: RawFd, image: RawFd, flags: u32) -> io::Result<()> {
    let config = LoopConfig {
        fd: image as u32,
        block_size: BLOCK_SIZE,
        info: LoopInfo { flags, ..EMPTY_INFO },
        reserved: [0; 8],
    };
    // SAFETY: the request reads one `struct loop_config`, whose layout is asserted above; both descriptors are open.
    match unsafe { libc::ioctl(device, LOOP_CONFIGURE as _, &raw const config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn status(device: RawFd) -> io::Result<LoopInfo> {
    let mut info = EMPTY_INFO;
    // SAFETY: the request writes one `struct loop_info64`, whose layout is asserted above.
    match unsafe { libc::ioctl(device, LOOP_GET_STATUS64 as _, &raw mut info) } {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

//! An ext4 image of a closure: size, mkfs, filling. The image is a sparse file that never had a name, so that nobody else
//! can open it and the kernel frees it when the last holder is gone; the lab's directory holds mount points only.

use crate::closure::{Closure, Skipped};
use crate::device;
use crate::directory::LabDirectory;
use crate::error::{LabError, failed};
use crate::filesystem::{FilesystemClass, class_of};
use crate::fill::{self, ImageFile};
use crate::loop_device::LoopDevice;
use crate::private_mounts::{MountedHere, in_private_namespace};
use rustix::fs::{AtFlags, Mode, OFlags, fstatvfs, openat, unlinkat};
use rustix::io::Errno;
use slowpath_process::{StateDirectory, trusted_directory};
use slowpath_tables::Bytes;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Block and inode size of the image (`mkfs.ext4 -b 4096 -I 256`): those that distributions use for `/`.
const BLOCK: u64 = 4096;

/// Directory of the extra files in the image; no host path can begin with it.
pub(crate) const EXTRA_DIRECTORY: &str = "/.slowpath-extra";

/// A file of the image that stands for no host file, such as the unrelated reads of a sham arm: pseudo-random bytes, which nothing can
/// compress or deduplicate.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    /// Relative path below the directory of extra files; see [`crate::Lab::extra_path`].
    pub path_in_image: PathBuf,
    /// How large it is.
    pub size: Bytes,
    /// What its content follows from.
    pub seed: u64,
}

impl ExtraFile {
    /// Writes the content (xorshift64*), some of it at a time.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut state = self.seed | 1;
        let mut chunk = vec![0; self.size.0.min(1 << 20).next_multiple_of(8) as usize];
        let mut left = self.size.0;
        while left > 0 {
            for word in chunk.chunks_exact_mut(8) {
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                word.copy_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
            }
            let now = left.min(chunk.len() as u64);
            to.write_all(&chunk[..now as usize])?;
            left -= now;
        }
        Ok(())
    }
}

/// A filled image.
#[derive(Debug)]
pub struct Image {
    directory: LabDirectory,
    file: File,
    files: Vec<ImageFile>,
    skipped: Vec<Skipped>,
    lost_attributes: Vec<(PathBuf, String)>,
    extra: Vec<(PathBuf, Bytes)>,
}

impl Image {
    /// Builds an image of the closure below `base` (see [`crate::DEFAULT_BASE`]). Takes as long as copying the files.
    ///
    /// # Errors
    /// No privilege, no `mkfs.ext4`, no loop device, no space, or a closure of which no file can be copied. Files that
    /// vanish, change or cannot be read are no error: see [`Image::skipped`].
    pub fn build(closure: &Closure, base: &Path, extra: Vec<ExtraFile>) -> Result<Self, LabError> {
        for file in &extra {
            if !is_plain(&file.path_in_image) {
                return Err(LabError::ExtraPath(file.path_in_image.clone()));
            }
        }
        let base = fs::canonicalize(base).map_err(failed("find the directory", base))?;
        let place = trusted_directory(&base).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => LabError::UnsafeDirectory(base.clone()),
            _ => failed("open the directory", &base)(error),
        })?;
        refuse_memory(&place, &base)?;
        let size = size_for(closure, &extra);
        refuse_full(&place, &base, closure, &extra)?;
        let directory = LabDirectory::create(&StateDirectory::of_this_user()?)?;
        let file = nameless_file(&place).map_err(|errno| failed("create the image in", &base)(errno.into()))?;
        file.set_len(size.total.0).map_err(failed("set the size of the image in", &base))?;
        make_filesystem(&file, size.inodes)?;
        let filled = in_private_namespace(|| {
            let device = LoopDevice::attach_writable(&file)?;
            let mut mounted = MountedHere::default();
            let root = directory.mount_point();
            mounted.ext4(&device.path(), &root, false)?;
            fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).map_err(failed("set the mode of", &root))?;
            let filled = fill::fill(closure, &root)?;
            write_extra(&extra, &root)?;
            nix::unistd::syncfs(File::open(&root).map_err(failed("open", &root))?)
                .map_err(crate::error::failed_errno("write back", &root))?;
            // Explicit: only a clean unmount leaves an image that can be mounted read-only.
            mounted.unmount_last()?;
            Ok(filled)
        })?;
        if filled.files.is_empty() && extra.is_empty() {
            return Err(LabError::EmptyClosure { skipped: closure.skipped().len() + filled.skipped.len() });
        }
        file.sync_all().map_err(failed("write back the image in", &base))?;
        device::forget_pages(&file).map_err(failed("drop the cached pages of the image in", &base))?;
        let allocated = file.metadata().map_err(failed("look at the image in", &base))?.blocks() * 512;
        directory.note_size(Bytes(allocated))?;
        let skipped = closure.skipped().iter().cloned().chain(filled.skipped).collect();
        Ok(Self {
            directory,
            file,
            files: filled.files,
            skipped,
            lost_attributes: filled.lost_attributes,
            extra: extra.into_iter().map(|file| (file.path_in_image, file.size)).collect(),
        })
    }

    /// The files that are in the image, sorted by path.
    pub fn files(&self) -> &[ImageFile] {
        &self.files
    }

    /// Paths of the closure that are not in the image, with reasons: those skipped when the closure was made and those
    /// that vanished, changed or could not be read while the image was filled.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Extended attributes that could not be copied (path, attribute and error).
    pub fn lost_attributes(&self) -> &[(PathBuf, String)] {
        &self.lost_attributes
    }

    /// Sum of the sizes of the files.
    pub fn content(&self) -> Bytes {
        self.files.iter().map(|file| file.size).sum()
    }

    pub(crate) fn directory(&self) -> &LabDirectory {
        &self.directory
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn has_extra(&self) -> bool {
        !self.extra.is_empty()
    }

    /// The size of an extra file, by its path in the image.
    pub fn extra_size(&self, path_in_image: &Path) -> Option<Bytes> {
        self.extra.iter().find(|(path, _)| path == path_in_image).map(|(_, size)| *size)
    }
}

/// Sizes of a file system.
struct ImageSize {
    total: Bytes,
    inodes: u64,
}

/// Generous, since what is not used stays a hole: content in whole blocks, an extent block per 512 MiB and a block of
/// attributes per file, two blocks a directory, inode tables, and an eighth plus 32 MiB for bitmaps and layout.
fn size_for(closure: &Closure, extra: &[ExtraFile]) -> ImageSize {
    let sizes = closure.files().map(|file| file.size.0).chain(extra.iter().map(|file| file.size.0));
    let content: u64 = sizes.map(|size| (size.div_ceil(BLOCK) + 1 + size / (512 << 20)) * BLOCK).sum();
    let paths =
        closure.files().map(|file| file.path.as_path()).chain(extra.iter().map(|file| file.path_in_image.as_path()));
    let directories: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1)).collect();
    let inodes = closure.files().len() as u64 + (extra.len() + directories.len()) as u64 + 64;
    let need = content + inodes * 256 + directories.len() as u64 * 2 * BLOCK;
    let total = need + need / 8 + (32 << 20);
    ImageSize { total: Bytes(total.next_multiple_of(1 << 20)), inodes }
}

fn refuse_full(place: impl AsFd, base: &Path, closure: &Closure, extra: &[ExtraFile]) -> Result<(), LabError> {
    let space = fstatvfs(place).map_err(|errno| failed("look at", base)(errno.into()))?;
    let free = Bytes(space.f_bavail.saturating_mul(space.f_frsize));
    let needed = Bytes(closure.total_size().0 + extra.iter().map(|file| file.size.0).sum::<u64>() + (8 << 20));
    if free < needed {
        return Err(LabError::NoSpace { needed, free, directory: base.to_path_buf() });
    }
    Ok(())
}

/// Reads of an image in memory cost nothing, and those over a network depend on others: neither is a cold start.
fn refuse_memory(place: impl AsFd, base: &Path) -> Result<(), LabError> {
    let kind = match class_of(place).map_err(failed("look at", base))? {
        FilesystemClass::Device => return Ok(()),
        FilesystemClass::Pseudo(kind) | FilesystemClass::Network(kind) => kind,
    };
    Err(LabError::Unavailable {
        what: "a directory on a disk of this machine",
        reason: format!("{} is on {kind}", base.display()),
        remedy: "choose another directory for the image",
    })
}

/// A file that never has a name (`O_TMPFILE`). Where the file system cannot do that, it has a name that nobody can foresee
/// until the next line.
fn nameless_file(place: impl AsFd) -> Result<File, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match openat(&place, ".", flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {}
        opened => return opened.map(File::from),
    }
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let name = format!("slowpath-image-{:032x}", u128::from_ne_bytes(random));
    let opened = openat(&place, &name, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
    unlinkat(&place, &name, AtFlags::empty())?;
    Ok(File::from(opened))
}

/// No journal (nothing is ever replayed), nothing left for a kernel thread to initialise during a launch, no reserve.
fn make_filesystem(image: &File, inodes: u64) -> Result<(), LabError> {
    let path = format!("/proc/{}/fd/{}", std::process::id(), image.as_raw_fd());
    let output = Command::new(find_mkfs()?)
        .args(["-q", "-F", "-b", "4096", "-I", "256", "-m", "0", "-O", "^has_journal"])
        .args(["-E", "lazy_itable_init=0,nodiscard,root_owner=0:0", "-N", &inodes.to_string(), &path])
        .stdin(Stdio::null())
        // No variable of the caller's (MKE2FS_CONFIG and the like) decides what root's tools do.
        .env_clear()
        .env("LC_ALL", "C")
        .output()
        .map_err(failed("run", Path::new("mkfs.ext4")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::MakeFilesystem { status: output.status.to_string(), message })
}

/// Root's directories first: the PATH of a user's shell often lacks `sbin`, and must not decide what root runs.
pub(crate) fn find_mkfs() -> Result<PathBuf, LabError> {
    let places = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4", "/bin/mkfs.ext4"];
    places.into_iter().map(PathBuf::from).find(|path| path.exists()).ok_or(LabError::Unavailable {
        what: "mkfs.ext4",
        reason: "not found in /usr/sbin, /sbin, /usr/bin, /bin".into(),
        remedy: "install e2fsprogs",
    })
}

fn is_plain(path: &Path) -> bool {
    path.file_name().is_some() && path.components().all(|component| matches!(component, Component::Normal(_)))
}

fn write_extra(extra: &[ExtraFile], root: &Path) -> Result<(), LabError> {
    for file in extra {
        let path = fill::inside(root, Path::new(EXTRA_DIRECTORY)).join(&file.path_in_image);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed("create the directory", parent))?;
            for directory in parent.ancestors().take_while(|directory| *directory != root) {
                fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
                    .map_err(failed("set the mode of", directory))?;
            }
        }
        let mut written = File::create_new(&path).map_err(failed("create", &path))?;
        file.write(&mut written).map_err(failed("write", &path))?;
        written.set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed("set the mode of", &path))?;
        // A known time, so that a plan can name the file before it is mounted.
        written.set_modified(std::time::UNIX_EPOCH).map_err(failed("set the time of", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_files_leave_their_directory_by_no_path() {
        for path in ["", "..", "../x", "/x", "a/../../x", "."] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
        assert!(is_plain(Path::new("sham/bytes")));
    }

    #[test]
    fn random_content_has_its_size_and_depends_on_the_seed() {
        let content = |size, seed| {
            let mut bytes = Vec::new();
            ExtraFile { path_in_image: "x".into(), size: Bytes(size), seed }.write(&mut bytes).unwrap();
            bytes
        };
        let bytes = content(10_001, 7);
        assert_eq!(bytes.len(), 10_001);
        assert_ne!(bytes, content(10_001, 9));
        let zeros = bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros < 100, "{zeros} zero bytes in 10001");
        // It goes on where a part ends, and does not begin again.
        let two = content((2 << 20) + 3, 7);
        assert_eq!((two.len(), &two[..10_001]), ((2 << 20) + 3, &bytes[..]));
        assert_ne!(two[..1 << 20], two[1 << 20..2 << 20]);
    }
}

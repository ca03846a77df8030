//! The file of a policy. It says which program is run, as whom: it is read only where nobody else could have written it.

use super::{Policy, parse};
use nix::unistd::geteuid;
use rustix::fs::{FileType, OFlags, fstat};
use slowpath_process::{open_beneath, plain_directory, trusted_directory};
use slowpath_tables::FileProblem;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The largest policy.
const MOST_BYTES: u64 = 1 << 20;

/// Write permission for group and others, inode(7). Entries of an access control list show in the bits of the group.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// It is not there, or a directory on the way is one that others can change, or a symbolic link.
    #[error("policy {} cannot be used: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else could have written it.
    #[error("policy {} is refused: {why}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What stands in it.
    #[error("policy {}: {problem}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: FileProblem,
    },
}

/// Reads a policy. The file must belong to root or the calling user, and nobody else may write it. As root, and where something is to be
/// repaired, that holds for every directory of its path too; else none may be a symbolic link.
///
/// # Errors
/// [`PolicyFileError`].
pub fn read(path: &Path, is_to_repair: bool) -> Result<Policy, PolicyFileError> {
    let unusable = |source: io::Error| PolicyFileError::Unusable { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(unusable)?;
    let (Some(directory), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(unusable(io::ErrorKind::InvalidInput.into()));
    };
    if absolute.components().any(|part| part == Component::ParentDir) {
        return Err(unusable(io::Error::other("its path holds `..`")));
    }
    let is_strict = geteuid().is_root() || is_to_repair;
    let opened = if is_strict { trusted_directory(directory) } else { plain_directory(directory) };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = opened.and_then(|directory| open_beneath(directory, name, flags)).map_err(unusable)?;
    let status = fstat(&file).map_err(|errno| unusable(errno.into()))?;
    let refused = |why: String| PolicyFileError::NotOurs { path: path.to_owned(), why };
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(refused("it is no regular file".to_owned()));
    }
    if status.st_uid != 0 && status.st_uid != geteuid().as_raw() {
        return Err(refused(format!("it belongs to uid {}, who is neither root nor you", status.st_uid)));
    }
    if status.st_mode & WRITABLE_BY_OTHERS != 0 {
        return Err(refused("others can write it: chmod go-w".to_owned()));
    }
    let mut bytes = Vec::new();
    File::from(file).take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unusable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refused(format!("it has more than {MOST_BYTES} bytes")));
    }
    let wrong = |problem| PolicyFileError::Wrong { path: path.to_owned(), problem };
    let text = String::from_utf8(bytes).map_err(|_| wrong(FileProblem::whole("it is no UTF-8")))?;
    parse(&text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    const POLICY: &str =
        "name = \"p\"\nversion = \"1\"\n[[artifact]]\nname = \"a\"\npaths = [\"/a\"]\nfresh = \"readable\"\nfor = []\n";

    fn refused(path: &Path, is_to_repair: bool) -> String {
        read(path, is_to_repair).expect_err("it is taken").to_string()
    }

    #[test]
    fn a_policy_that_somebody_else_could_have_written_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("policy.toml");
        fs::write(&path, POLICY).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&path, true).unwrap().name, "p");
        for mode in [0o664, 0o646] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(refused(&path, false).contains("others can write it"));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(refused(&path, true).contains("can be changed by other users"));
        fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(refused(&path, false).contains("belongs to uid 65534"));
        }
    }

    #[test]
    fn links_fifos_and_what_is_too_large_are_no_policy() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("policy"), POLICY).unwrap();
        symlink("policy", at("link")).unwrap();
        assert!(refused(&at("link"), false).contains("cannot be used"));
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused(&at("fifo"), false).contains("no regular file"));
        File::create(at("large")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert!(refused(&at("large"), false).contains("more than"));
        fs::write(at("bytes"), b"name = \"\xff\"").unwrap();
        assert!(refused(&at("bytes"), false).contains("no UTF-8"));
        assert!(refused(&at("x/../policy"), false).contains("`..`"));
        assert!(refused(&at("none"), false).contains("No such file"));
    }
}

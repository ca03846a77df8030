//! On which file systems a process works: of its root, working directory, executable and temporary files, with their options and the
//! readahead of the device.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, Setting, Toggle, both, or_none};
use crate::trust::OTHER_CODE;
use procfs_core::FromRead;
use procfs_core::process::{MountInfo, MountInfos};
use slowpath_launch::Metric;
use slowpath_process::{Deadline, DeadlineError, LIMIT};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The part that comes with the command.
pub(crate) const EXECUTABLE: &str = "executable";

/// The factor.
pub const FILE_SYSTEMS: Factor = Factor {
    name: "file_systems",
    former: Former::NONE,
    title: "file systems in use",
    what: "The file systems of root, working directory, executable and temporary files, with their mount options \
           and the readahead of their devices.",
    why: "Each open, lookup and write goes through them: network and FUSE file systems cost a message each, \
          overlayfs a lookup in each layer. Options such as sync, data= and atime cost at writes and first reads, a \
          small readahead at cold starts.",
    by_hand: "`findmnt -T /proc/PID/exe`; `findmnt -T /proc/PID/cwd`; `findmnt -T /tmp`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "move its files to the file system of the fast context",
        "what the other was chosen for: its size, its safety, its price",
    )]),
    toggle: Toggle::Parts(parts),
};

/// The part with the path, which can be set.
const DIRECTORY: &str = "working_directory";

fn read(task: &TaskFiles<'_>) -> Reading {
    let text = match task.file("mountinfo") {
        Ok(text) => text,
        Err(missing) => return Reading::missing(&missing, "this kernel does not report it"),
    };
    let Ok(MountInfos(mounts)) = MountInfos::from_read(text.as_bytes()) else {
        return Reading::missing(&Missing::Failed("its mountinfo is not one".to_owned()), "");
    };
    let mut parts = Vec::new();
    let directory = task.link("cwd").ok().map(|path| (DIRECTORY.to_owned(), path));
    for (role, link) in [("working directory", "cwd"), (EXECUTABLE, "exe")] {
        if let Ok(path) = task.link(link) {
            parts.push((role, path));
        }
    }
    parts.extend([("root", "/"), ("temporary files", "/tmp")].map(|(role, path)| (role, path.to_owned())));
    let parts =
        parts.into_iter().filter_map(|(role, path)| Some((role, mount_in_words(task, of_path(&mounts, &path)?))));
    Reading::known(Value::table(parts.map(|(role, mount)| (role.to_owned(), mount)).chain(directory)))
}

/// The mount that shows a path: the last one with the longest fitting mount point, for later mounts hide earlier ones. Mount points
/// stand as the kernel writes them, with octal numbers for four characters (fs/proc_namespace.c, `show_mountinfo`).
fn of_path<'a>(mounts: &'a [MountInfo], path: &str) -> Option<&'a MountInfo> {
    let path = path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012");
    let path = path.as_str();
    let fitting = mounts.iter().filter(|mount| Path::new(path).starts_with(&mount.mount_point));
    fitting.max_by_key(|mount| mount.mount_point.as_os_str().len())
}

fn mount_in_words(task: &TaskFiles<'_>, mount: &MountInfo) -> String {
    let options = |options: &std::collections::HashMap<String, Option<String>>| {
        let mut words: Vec<String> = options
            .iter()
            .map(|(name, value)| value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}={value}")))
            .collect();
        words.sort();
        words.join(",")
    };
    let readahead = task.kernel_files().read(&format!("sys/class/bdi/{}/read_ahead_kb", mount.majmin));
    let readahead = readahead.map(|kib| format!(" readahead {} KiB", kib.trim())).unwrap_or_default();
    format!("{} ({}; {}){readahead}", mount.fs_type, options(&mount.mount_options), options(&mount.super_options))
}

fn known(a: &Value, b: &Value) -> Known {
    let kind = |value: &Value, role: &str| {
        value.part(role).map(|mount| mount.split(' ').next().unwrap_or_default().to_owned())
    };
    let roles = || a.parts().chain(b.parts()).map(|(role, _)| role).filter(|role| *role != DIRECTORY);
    if roles().all(|role| a.part(role) == b.part(role)) {
        return Known::new(
            Weight::Light,
            "another directory on the same file systems: its contents, and the length of its path",
            "path_resolution(7)",
        );
    }
    let other_kind = roles().any(|role| kind(a, role) != kind(b, role));
    Known::new(
        if other_kind { Weight::Heavy } else { Weight::Moderate },
        "each open, look-up and write goes through it: network and user-space (fuse) file systems cost a message each, overlays a look-up \
         in each layer; sync, data and atime options cost at writes and first reads, readahead at cold starts",
        "Documentation/filesystems; mount(8)",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::System, Metric::Waiting, Metric::VoluntarySwitches, Metric::BytesRead, Metric::MajorFaults],
    mechanism: "relative paths are opened, looked up, read and written on another file system",
    sham: "the directory of the fast context, entered in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let set = |path: Option<&str>, context: &Snapshot| {
        // A command can be a relative path, and most look for files in their directory.
        if !contrast.here.is_own(context) {
            return Err(OTHER_CODE.to_owned());
        }
        let path = path.ok_or("it was saved without its path: save it again with `slowpath context save`")?;
        let path = PathBuf::from(path);
        // A directory that was removed is shown with a word behind it, and is not there either.
        let is_there = path.is_absolute()
            && is_directory(&path).map_err(|error| format!("{} cannot be looked at: {error}", path.display()))?;
        if !is_there {
            return Err(format!("there is no directory {} here", path.display()));
        }
        Ok(vec![Setting::Directory(path)])
    };
    let part = |(role, fast, slow): (&str, Option<&str>, Option<&str>)| {
        let outcome = match role {
            DIRECTORY => both(set(fast, contrast.contexts.0), set(slow, contrast.contexts.1), &HOW),
            "working directory" if contrast.differs(FILE_SYSTEMS.name, Some(DIRECTORY)) => {
                Outcome::Follows("it is the file system of the working directory, and comes with it".to_owned())
            }
            _ => Outcome::Not("something else is mounted there, for all programs of its mount namespace".to_owned()),
        };
        DifferingPart::whole(or_none(fast), or_none(slow), outcome).named(role)
    };
    contrast.differing().into_iter().map(part).collect()
}

/// Whether there is such a directory. A child looks: a process chose the path, and its file system can be one that never answers.
fn is_directory(path: &Path) -> Result<bool, DeadlineError> {
    let mut looking = Deadline::new(LIMIT, |path: &[u8]| {
        let is_directory = Path::new(OsStr::from_bytes(path)).is_dir();
        Ok((vec![u8::from(is_directory)], None))
    });
    let (answer, _) = looking.ask(path.as_os_str().as_bytes())?;
    Ok(answer == [1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::KernelFiles;
    use crate::unanswered::Unanswered;

    const MOUNTS: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                          27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                          40 27 0:40 / /home/a\\040b rw,nosuid - fuse.sshfs host: rw,user_id=1000\n";

    #[test]
    fn the_longest_mount_point_decides_and_readahead_is_its_devices() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("mountinfo", MOUNTS);
        write("cwd", "/home/a b/project\n");
        write("sys/class/bdi/254:0/read_ahead_kb", "128\n");
        let kernel_files = KernelFiles::Saved(directory.path().to_owned());
        let read = read(&TaskFiles::process(&kernel_files, "", None));
        let value = read.value().unwrap();
        assert_eq!(value.part("working directory"), Some("fuse.sshfs (nosuid,rw; rw,user_id=1000)"));
        assert_eq!(value.part("root"), Some("ext4 (relatime,rw; discard,rw) readahead 128 KiB"));
        assert_eq!((value.part("temporary files"), value.part("executable")), (value.part("root"), None));
    }

    #[test]
    fn a_working_directory_that_never_answers_costs_a_deadline() {
        assert!(is_directory(Path::new("/")).unwrap());
        assert!(!is_directory(Path::new("/proc/version")).unwrap() && !is_directory(Path::new("/none")).unwrap());
        let Some(unanswered) = Unanswered::start() else { return };
        let path = unanswered.seen_from_outside();
        // In a thread that the test need not wait for.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(is_directory(&path)));
        let result = receiver.recv_timeout(std::time::Duration::from_secs(60));
        drop(unanswered);
        let why = result.expect("who looks is not held up for ever").unwrap_err().to_string();
        assert!(why.contains("no answer within"), "{why}");
    }

    #[test]
    fn another_kind_weighs_more_than_another_option() {
        let of = |mount: &str| Value::table([("root", mount)]);
        assert_eq!(known(&of("ext4 (rw; rw)"), &of("fuse (rw; rw)")).weight, Weight::Heavy);
        assert_eq!(known(&of("ext4 (rw; rw)"), &of("ext4 (ro; rw)")).weight, Weight::Moderate);
    }
}

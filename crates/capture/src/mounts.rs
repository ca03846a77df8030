//! The target's mounts: from the path inside a file system to the path on the host.

use serde::{Deserialize, Serialize};

/// One line of `/proc/PID/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Device (`major << 20 | minor`).
    pub dev: u64,
    /// Which part of the file system is mounted.
    pub root: String,
    /// Where.
    pub mount_point: String,
    /// Type of the file system.
    pub fs: String,
    /// What is mounted.
    pub source: String,
}

/// Replaces the octal escapes (`\040` for a space) of mountinfo.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'\\')
            .then(|| text.get(at + 1..at + 4))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut fields = left.split(' ');
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let root = unescape(fields.next()?);
    let mount_point = unescape(fields.next()?);
    let mut tail = right.split(' ');
    Some(Mount {
        dev: major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?,
        root,
        mount_point,
        fs: tail.next()?.to_owned(),
        source: unescape(tail.next().unwrap_or("none")),
    })
}

/// Parses `/proc/PID/mountinfo` (proc_pid_mountinfo(5)); lines that do not parse are left out.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

/// The mounts that a process sees; none when it is gone. Names that are no UTF-8 are reported as far as they are.
pub(crate) fn mounts_of(process: &str) -> Vec<Mount> {
    let bytes = std::fs::read(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    parse_mountinfo(&String::from_utf8_lossy(&bytes))
}

/// Path on the host of `path` inside the file system `dev`; `None` when it is not mounted.
///
/// Of several mounts the one with the longest fitting root wins, and among those the first mounted, so that bind
/// mounts of single files do not rename what they show.
pub(crate) fn host_path(mounts: &[Mount], dev: u64, path: &str) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for mount in mounts.iter().filter(|mount| mount.dev == dev) {
        let root = mount.root.trim_end_matches('/');
        let Some(rest) = path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            continue;
        };
        if best.as_ref().is_none_or(|(length, _)| root.len() > *length) {
            let joined = format!("{}{rest}", mount.mount_point.trim_end_matches('/'));
            best = Some((root.len(), if joined.is_empty() { "/".to_owned() } else { joined }));
        }
    }
    best.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 22 0:25 /@home /home rw - btrfs /dev/sda rw\n\
        31 22 254:0 /srv/data\\040x /mnt/x rw - ext4 /dev/vda rw\nnonsense\n";

    #[test]
    fn mountinfo_is_parsed_with_its_escapes_and_nonsense_is_left_out() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[2].root, "/srv/data x");
        assert_eq!(mounts[0].dev, 254 << 20);
    }

    #[test]
    fn a_path_inside_a_file_system_becomes_the_path_on_the_host() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(host_path(&mounts, 254 << 20, "/usr/bin/ls").as_deref(), Some("/usr/bin/ls"));
        assert_eq!(host_path(&mounts, 25, "/@home/u/f").as_deref(), Some("/home/u/f"));
        assert_eq!(host_path(&mounts, 254 << 20, "/srv/data x/f").as_deref(), Some("/mnt/x/f"));
        assert_eq!(host_path(&mounts, 7, "/f"), None);
    }
}

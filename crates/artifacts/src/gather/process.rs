//! What `/proc/PID` says of a running process (proc(5)): who it is to the kernel, and which files it has mapped.
//!
//! Pure: texts in. Names of files are the process's own choice.

use crate::access::{FileCapabilities, IdRange, Identity, UserNamespace};
use slowpath_process::{mappings, status_field};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The texts of `/proc/PID` that say who a process is.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTexts<'a> {
    /// `status`.
    pub status: &'a str,
    /// `uid_map`.
    pub uid_map: &'a str,
    /// `gid_map`.
    pub gid_map: &'a str,
    /// `attr/current`, empty where no security module labels processes.
    pub label: &'a str,
}

impl ProcessTexts<'_> {
    /// The identity with which the process looks at files; `None` where a field is missing.
    pub fn identity(&self) -> Option<Identity> {
        // Real, effective, saved and file-system id.
        let last = |field: &str| self.field(field)?.split_whitespace().nth(3)?.parse().ok();
        let groups = self.field("Groups")?.split_whitespace().map(|group| group.parse().ok());
        let effective = u64::from_str_radix(self.field("CapEff")?.trim(), 16).ok()?;
        Some(Identity {
            uid: last("Uid")?,
            gid: last("Gid")?,
            groups: groups.collect::<Option<_>>()?,
            capabilities: FileCapabilities::of_effective_set(effective),
            namespace: namespace(self.uid_map, self.gid_map)?,
            confinement: confinement(self.label),
        })
    }

    fn field(&self, name: &str) -> Option<&str> {
        status_field(self.status, name)
    }
}

/// AppArmor's profile, or the label of another module; `unconfined` is AppArmor's word for none.
fn confinement(label: &str) -> Option<String> {
    let label = label.trim_end_matches(['\0', '\n']);
    let is_free = label.is_empty() || label == "unconfined";
    (!is_free)
        .then(|| format!("permissions allow it, but the process is confined as {label}, whose rules are not read"))
}

/// user_namespaces(7): the first id inside, the first id outside, how many.
fn namespace(uid_map: &str, gid_map: &str) -> Option<UserNamespace> {
    let ranges = |map: &str| -> Option<Vec<(u32, IdRange)>> {
        let line = |line: &str| {
            let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
            let (inside, first, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
            Some((inside, IdRange { first, count }))
        };
        map.lines().map(line).collect()
    };
    let (uids, gids) = (ranges(uid_map)?, ranges(gid_map)?);
    let is_all = |ranges: &[(u32, IdRange)]| matches!(ranges, [(0, IdRange { first: 0, count: u32::MAX })]);
    if is_all(&uids) && is_all(&gids) {
        return Some(UserNamespace::Initial);
    }
    let outside = |ranges: Vec<(u32, IdRange)>| ranges.into_iter().map(|(_, range)| range).collect();
    Some(UserNamespace::Mapped { uids: outside(uids), gids: outside(gids) })
}

/// The files in `maps` that still have their names.
pub fn mapped_files(maps: &[u8]) -> BTreeSet<PathBuf> {
    mappings(maps).filter(|one| !one.is_deleted()).filter_map(|one| one.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tUid:\t0\nUmask:\t0022\nUid:\t0\t33\t0\t33\nGid:\t0\t33\t0\t34\nGroups:\t4 33 \nCapEff:\t0000000000000004\n";
    const ALL: &str = "         0          0 4294967295\n";

    fn texts<'a>(uid_map: &'a str, label: &'a str) -> ProcessTexts<'a> {
        ProcessTexts { status: STATUS, uid_map, gid_map: ALL, label }
    }

    #[test]
    fn a_process_is_its_file_system_ids_groups_capabilities_and_label() {
        let identity = texts(ALL, "unconfined\n").identity().unwrap();
        assert_eq!((identity.uid, identity.gid, identity.groups.as_slice()), (33, 34, [4, 33].as_slice()));
        assert!(identity.capabilities.dac_read_search && !identity.capabilities.dac_override);
        assert_eq!((identity.namespace, identity.confinement), (UserNamespace::Initial, None));
        let confined = texts(ALL, "/usr/sbin/cupsd (enforce)\n").identity().unwrap();
        assert!(confined.confinement.unwrap().contains("/usr/sbin/cupsd (enforce)"));
        assert_eq!(ProcessTexts { status: "Uid:\t1\n", ..texts(ALL, "") }.identity(), None);
    }

    #[test]
    fn a_user_namespace_is_what_it_maps_outside() {
        let identity = texts("0 100000 65536\n", "").identity().unwrap();
        let UserNamespace::Mapped { uids, .. } = identity.namespace else { panic!("it is the initial one") };
        assert_eq!(uids, [IdRange { first: 100_000, count: 65_536 }]);
        assert_eq!(texts("0 x 1\n", "").identity(), None);
    }

    #[test]
    fn mapped_files_have_names_with_spaces_and_newlines_and_none_that_are_gone() {
        let maps = b"7f00-7f01 r--p 00000000 fe:00 1   /a b\\012c\n7f01-7f02 r-xp 0 fe:00 2 /gone (deleted)\n\
            7f02-7f03 rw-p 0 00:00 0 [heap]\n7f02-7f03 rw-p 0 00:00 0 [anon:/tmp/x]\n7f03-7f04 r--p 0 fe:00 1   /a b\\012c\n";
        assert_eq!(mapped_files(maps), BTreeSet::from(["/a b\nc".into()]));
    }

    proptest::proptest! {
        #[test]
        fn any_texts_are_an_identity_or_none(text: String, bytes: Vec<u8>) {
            let texts = ProcessTexts { status: &text, uid_map: &text, gid_map: &text, label: &text };
            proptest::prop_assert!(texts.identity().is_none() || text.contains("Uid:"));
            mapped_files(&bytes);
        }
    }
}

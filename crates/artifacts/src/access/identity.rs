//! Who asks for access, as the kernel sees it (credentials(7), capabilities(7), user_namespaces(7)).

/// The capabilities that decide about files, out of those in the effective set (include/uapi/linux/capability.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCapabilities {
    /// `CAP_DAC_OVERRIDE` (1): reads, writes and searches everything, executes what has an x bit for anybody.
    pub dac_override: bool,
    /// `CAP_DAC_READ_SEARCH` (2): reads every file, lists and searches every directory.
    pub dac_read_search: bool,
}

impl FileCapabilities {
    /// Those of root in the initial user namespace.
    pub const ALL: Self = Self { dac_override: true, dac_read_search: true };

    /// Those in an effective set, one bit a capability, as `CapEff` of `/proc/PID/status` shows it.
    pub fn of_effective_set(bits: u64) -> Self {
        Self { dac_override: bits & (1 << 1) != 0, dac_read_search: bits & (1 << 2) != 0 }
    }
}

/// A range of ids of the initial namespace that a user namespace maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first id.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl IdRange {
    fn holds(self, id: u32) -> bool {
        id.checked_sub(self.first).is_some_and(|offset| offset < self.count)
    }
}

/// The user namespace in which the capabilities count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UserNamespace {
    /// The initial one: every id is mapped.
    #[default]
    Initial,
    /// Another one: a capability counts only for files whose owner and group are both mapped
    /// (`privileged_wrt_inode_uidgid`, kernel/capability.c).
    Mapped {
        /// User ids of the initial namespace that it maps.
        uids: Vec<IdRange>,
        /// Group ids of the initial namespace that it maps.
        gids: Vec<IdRange>,
    },
}

impl UserNamespace {
    fn maps(&self, uid: u32, gid: u32) -> bool {
        match self {
            Self::Initial => true,
            Self::Mapped { uids, gids } => {
                uids.iter().any(|range| range.holds(uid)) && gids.iter().any(|range| range.holds(gid))
            }
        }
    }
}

/// Who asks. Ids are those of the file-system ids (fsuid, fsgid), which follow the effective ones unless a server of files sets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Effective capabilities that concern files.
    pub capabilities: FileCapabilities,
    /// Where these capabilities count.
    pub namespace: UserNamespace,
    /// A security module confines it by rules that are not read here: which, and so what is not known.
    pub confinement: Option<String>,
}

impl Identity {
    /// A user without capabilities; root (0) with all, as after a login.
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        let capabilities = if uid == 0 { FileCapabilities::ALL } else { FileCapabilities::default() };
        Self { uid, gid, groups, capabilities, namespace: UserNamespace::Initial, confinement: None }
    }

    /// Whether it is a member of the group (`in_group_p`, kernel/groups.c).
    pub fn is_in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// `CAP_DAC_OVERRIDE` over a file of this owner and group (`capable_wrt_inode_uidgid`, kernel/capability.c).
    pub(super) fn overrides(&self, uid: u32, gid: u32) -> bool {
        self.capabilities.dac_override && self.namespace.maps(uid, gid)
    }

    /// `CAP_DAC_READ_SEARCH` over a file of this owner and group.
    pub(super) fn reads_and_searches(&self, uid: u32, gid: u32) -> bool {
        self.capabilities.dac_read_search && self.namespace.maps(uid, gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_maps_from_its_first_id_to_its_last() {
        let range = IdRange { first: 100_000, count: 65_536 };
        let namespace = UserNamespace::Mapped { uids: vec![range], gids: vec![range] };
        assert!(namespace.maps(100_000, 165_535));
        assert!(!namespace.maps(99_999, 100_000) && !namespace.maps(100_000, 165_536));
        let all = IdRange { first: 0, count: u32::MAX };
        assert!(all.holds(u32::MAX - 1) && !all.holds(u32::MAX));
    }

    #[test]
    fn capabilities_are_read_from_the_bits_of_the_status_file() {
        assert_eq!(FileCapabilities::of_effective_set(0x1ff_ffff_ffff), FileCapabilities::ALL);
        assert_eq!(FileCapabilities::of_effective_set(0b1001), FileCapabilities::default());
        assert!(FileCapabilities::of_effective_set(0b100).dac_read_search);
    }
}

//! POSIX access control lists as the kernel gives them in the extended attribute `system.posix_acl_access` (acl(5)).
//!
//! Owns the form and its parser. Leaves what entries mean for an identity to [`super::evaluate`].

/// `POSIX_ACL_XATTR_VERSION`, include/uapi/linux/posix_acl_xattr.h.
const VERSION: u32 = 2;
/// Size of `struct posix_acl_xattr_header` and of `struct posix_acl_xattr_entry`.
const HEADER: usize = 4;
const ENTRY: usize = 8;
/// `ACL_UNDEFINED_ID`: of entries that name nobody.
const NO_ID: u32 = u32::MAX;
/// Entries of the longest attribute that the kernel takes (`XATTR_SIZE_MAX`, include/uapi/linux/limits.h).
const MOST_ENTRIES: usize = (65_536 - HEADER) / ENTRY;

/// Whom an entry is for (`ACL_USER_OBJ` and so on, include/uapi/linux/posix_acl.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclTag {
    /// The owner of the file.
    Owner,
    /// This user.
    User(u32),
    /// The group of the file.
    OwningGroup,
    /// This group.
    Group(u32),
    /// No one: what entries of users and groups grant at most.
    Mask,
    /// Everybody else.
    Other,
}

impl AclTag {
    /// The kernel's tag and id.
    fn numbers(self) -> (u16, u32) {
        match self {
            Self::Owner => (0x01, NO_ID),
            Self::User(id) => (0x02, id),
            Self::OwningGroup => (0x04, NO_ID),
            Self::Group(id) => (0x08, id),
            Self::Mask => (0x10, NO_ID),
            Self::Other => (0x20, NO_ID),
        }
    }

    fn of(tag: u16, id: u32) -> Option<Self> {
        Some(match tag {
            0x01 => Self::Owner,
            0x02 => Self::User(id),
            0x04 => Self::OwningGroup,
            0x08 => Self::Group(id),
            0x10 => Self::Mask,
            0x20 => Self::Other,
            _ => return None,
        })
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// Whom it is for.
    pub tag: AclTag,
    /// What it grants: 4 read, 2 write, 1 execute or search.
    pub grants: u8,
}

/// An access control list, in the kernel's order: owner, users, owning group, groups, mask, other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

/// Why bytes are no access control list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// The version is another one.
    #[error("its version is not 2")]
    Version,
    /// The length is not that of whole entries, or above the kernel's limit.
    #[error("{0} bytes are no whole number of entries")]
    Length(usize),
    /// An entry has a tag or a permission that acl(5) does not know.
    #[error("entry {0} has an unknown tag or permission")]
    Entry(usize),
    /// Entries are out of order or missing (`posix_acl_valid`, fs/posix_acl.c).
    #[error("its entries are not in the kernel's order, or one is missing")]
    Order,
}

impl Acl {
    /// Reads the value of the attribute.
    ///
    /// # Errors
    /// The bytes are none that the kernel would store.
    pub fn of_attribute(bytes: &[u8]) -> Result<Self, AclError> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(AclError::Length(bytes.len()))?;
        if u32::from_le_bytes(*header) != VERSION {
            return Err(AclError::Version);
        }
        let (chunks, tail) = rest.as_chunks::<ENTRY>();
        if !tail.is_empty() || chunks.len() > MOST_ENTRIES {
            return Err(AclError::Length(bytes.len()));
        }
        let entry = |(index, chunk): (usize, &[u8; ENTRY])| {
            let [tag_low, tag_high, grants_low, grants_high, id @ ..] = *chunk;
            let grants = u16::from_le_bytes([grants_low, grants_high]);
            let tag = AclTag::of(u16::from_le_bytes([tag_low, tag_high]), u32::from_le_bytes(id));
            let (Some(tag), true) = (tag, grants <= 7) else { return Err(AclError::Entry(index)) };
            Ok(AclEntry { tag, grants: (grants & 7) as u8 })
        };
        Self::of_entries(chunks.iter().enumerate().map(entry).collect::<Result<_, _>>()?)
    }

    /// A list of these entries.
    ///
    /// # Errors
    /// They are not in the kernel's order, or a necessary one is missing.
    pub fn of_entries(entries: Vec<AclEntry>) -> Result<Self, AclError> {
        let has = |wanted: AclTag| entries.iter().any(|entry| entry.tag == wanted);
        // By kind of entry; the kernel does not sort ids, and takes the first of two for one user.
        let kind = |entry: &AclEntry| entry.tag.numbers().0;
        let is_ordered = entries.windows(2).all(|pair| {
            let may_repeat = matches!(pair[1].tag, AclTag::User(_) | AclTag::Group(_));
            kind(&pair[0]) < kind(&pair[1]) || may_repeat && kind(&pair[0]) == kind(&pair[1])
        });
        let names_somebody = entries.iter().any(|entry| matches!(entry.tag, AclTag::User(_) | AclTag::Group(_)));
        let is_whole = [AclTag::Owner, AclTag::OwningGroup, AclTag::Other].into_iter().all(has);
        let names_nobody = has(AclTag::User(NO_ID)) || has(AclTag::Group(NO_ID));
        if is_ordered && is_whole && !names_nobody && (has(AclTag::Mask) || !names_somebody) {
            Ok(Self { entries })
        } else {
            Err(AclError::Order)
        }
    }

    /// The value of the attribute.
    pub fn attribute(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.entries {
            let (tag, id) = entry.tag.numbers();
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&u16::from(entry.grants).to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    /// The entries, in their order.
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// What the mask leaves: all where there is none.
    pub fn mask(&self) -> u8 {
        self.grants(AclTag::Mask).unwrap_or(7)
    }

    fn grants(&self, tag: AclTag) -> Option<u8> {
        self.entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.grants)
    }

    /// The nine permission bits that the kernel shows for a file with this list: the mask stands for the group.
    pub fn mode_bits(&self) -> u32 {
        let of = |tag| u32::from(self.grants(tag).unwrap_or(0));
        let group = self.grants(AclTag::Mask).map_or_else(|| of(AclTag::OwningGroup), u32::from);
        of(AclTag::Owner) << 6 | group << 3 | of(AclTag::Other)
    }

    /// The list of a file that has these permission bits and no list.
    pub fn of_mode(mode: u32) -> Self {
        let bits = |shift: u32| (mode >> shift & 7) as u8;
        let entries = [(AclTag::Owner, 6), (AclTag::OwningGroup, 3), (AclTag::Other, 0)];
        Self { entries: entries.map(|(tag, shift)| AclEntry { tag, grants: bits(shift) }).to_vec() }
    }

    /// The mask, or without one what the owning group has, which is the most that the group class has then.
    pub fn group_class(&self) -> u8 {
        self.grants(AclTag::Mask).or(self.grants(AclTag::OwningGroup)).unwrap_or(0)
    }

    /// What `setfacl -m u:UID:GRANTS,m::MASK` makes of it.
    #[must_use]
    pub fn granting_user(&self, uid: u32, grants: u8, mask: u8) -> Self {
        let set = [AclEntry { tag: AclTag::User(uid), grants }, AclEntry { tag: AclTag::Mask, grants: mask }];
        let is_kept = |entry: &AclEntry| !set.iter().any(|one| one.tag == entry.tag);
        let mut entries: Vec<AclEntry> = self.entries.iter().copied().filter(is_kept).chain(set).collect();
        entries.sort_by_key(|entry| entry.tag.numbers());
        Self { entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `setfacl -m u:65534:r` on a file of mode 0640.
    const SET: [u8; 44] = [
        2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 254, 255, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0,
        4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
    ];

    #[test]
    fn the_attribute_that_setfacl_writes_is_read_and_written_again() {
        let acl = Acl::of_attribute(&SET).unwrap();
        assert_eq!(acl.grants(AclTag::User(65534)), Some(4));
        assert_eq!((acl.mask(), acl.mode_bits()), (4, 0o640));
        assert_eq!(acl.attribute(), SET);
        assert_eq!(Acl::of_mode(0o640).granting_user(65534, 4, 4), acl);
    }

    #[test]
    fn what_the_kernel_would_not_store_is_refused() {
        assert_eq!(Acl::of_attribute(&SET[..43]), Err(AclError::Length(43)));
        assert_eq!(Acl::of_attribute(&[1, 0, 0, 0]), Err(AclError::Version));
        assert_eq!(Acl::of_attribute(&[]), Err(AclError::Length(0)));
        assert_eq!(Acl::of_attribute(&[2, 0, 0, 0]), Err(AclError::Order));
        // A named user without a mask.
        let without_mask = [&SET[..28], &SET[36..]].concat();
        assert_eq!(Acl::of_attribute(&without_mask), Err(AclError::Order));
        let mut unknown = SET;
        unknown[4] = 3;
        assert_eq!(Acl::of_attribute(&unknown), Err(AclError::Entry(0)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_list_that_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(acl) = Acl::of_attribute(&bytes) {
                prop_assert_eq!(acl.attribute(), bytes);
            }
        }

        #[test]
        fn a_granted_user_has_what_was_asked_for_within_the_mask(mode in 0u32..0o777, uid in 0u32..9, grants in 0u8..8) {
            let acl = Acl::of_mode(mode).granting_user(uid, grants, grants);
            prop_assert_eq!(acl.grants(AclTag::User(uid)).unwrap() & acl.mask(), grants);
            prop_assert!(Acl::of_attribute(&acl.attribute()).is_ok());
        }
    }
}

//! Where the kernel has mapped the vdso into this process, by the name of the mapping. Leaves reading the image to who wants it.

use slowpath_process::{Mapping, mappings};
use std::ops::Range;

/// The name in `/proc/self/maps`.
const NAME: &[u8] = b"[vdso]";

/// Larger than any vdso in bytes (two pages on x86-64).
const MOST_BYTES: u64 = 1 << 20;

/// Its addresses; none where there is no vdso (switched off at boot, or hidden by a sandbox), or where it cannot be read.
pub(crate) fn vdso_mapping() -> Option<Range<u64>> {
    found(&std::fs::read("/proc/self/maps").ok()?)
}

fn found(maps: &[u8]) -> Option<Range<u64>> {
    let is_it = |one: &Mapping<'_>| one.name == NAME && one.is_readable() && one.length() <= MOST_BYTES;
    mappings(maps).find(is_it).map(|one| one.range)
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn the_mapping_is_found_by_its_whole_name_and_only_when_readable() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 00:00 0 [vvar]\n\
            7f0000002000-7f0000003000 r-xp 00000000 fe:00 7 /tmp/[vdso]\n\
            7ffd0000e000-7ffd00010000 r-xp 00000000 00:00 0  [vdso]\n";
        assert_eq!(found(maps.as_bytes()), Some(0x7ffd_0000_e000..0x7ffd_0001_0000));
        assert_eq!(found(maps.replace("r-xp", "--xp").as_bytes()), None);
        assert_eq!(found(maps.replace("7ffd0000e000", "7ffc00000000").as_bytes()), None, "too long for one");
        assert_eq!(found(b"nothing\n"), None);
    }
}

//! The table of the running kernel's vdso.

use super::UnwindTable;

/// The name in `/proc/self/maps`.
const NAME: &str = "[vdso]";

/// The table of the code that the kernel maps into every process, keyed by offset in the image; none where there is no vdso
/// (switched off at boot, or hidden by a sandbox) or where it cannot be read.
pub fn vdso() -> Option<UnwindTable> {
    // SAFETY: getauxval reads the vector that the kernel left on this process's own stack.
    let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (start, end) = mapped(&maps)?;
    if address == 0 || start != address {
        return None;
    }
    // SAFETY: the range is one mapping of this process, told readable by the kernel a moment ago, that nothing here ever
    // unmaps or writes; u8 has no alignment.
    let image = unsafe { std::slice::from_raw_parts(start as *const u8, usize::try_from(end - start).ok()?) };
    UnwindTable::of_elf(image).ok()
}

/// Start and end address of the readable mapping called `[vdso]`.
fn mapped(maps: &str) -> Option<(u64, u64)> {
    let line = maps.lines().find(|line| line.ends_with(NAME))?;
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let readable = words.next()?.starts_with('r');
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    (readable && start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::super::CfaRule;
    use super::*;

    #[test]
    fn the_vdso_of_this_kernel_says_how_its_functions_begin() {
        let Some(table) = vdso() else {
            println!("skipped: no vdso");
            return;
        };
        let known = table.rows.iter().filter(|row| row.cfa_rule() == CfaRule::StackPointer && row.cfa_offset == 1);
        assert!(known.count() >= 4, "at least four functions: {table:?}");
        assert!(table.rows.iter().all(|row| row.cfa_rule() != CfaRule::Unsupported), "{table:?}");
    }

    #[test]
    fn the_mapping_is_found_by_name_and_only_when_readable() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 00:00 0 [vvar]\n7ffd0000e000-7ffd00010000 r-xp 00000000 00:00 0  [vdso]\n";
        assert_eq!(mapped(maps), Some((0x7ffd_0000_e000, 0x7ffd_0001_0000)));
        assert_eq!(mapped(&maps.replace("r-xp", "--xp")), None);
        assert_eq!(mapped("nothing\n"), None);
    }
}

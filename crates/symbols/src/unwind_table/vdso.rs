//! The table of the running kernel's vdso.

use super::UnwindTable;
use crate::vdso_mapping::vdso_mapping;

/// The table of the code that the kernel maps into every process, keyed by offset in the image; none where there is no vdso
/// (switched off at boot, or hidden by a sandbox) or where it cannot be read.
pub fn vdso() -> Option<UnwindTable> {
    // SAFETY: getauxval reads the vector that the kernel left on this process's own stack.
    let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let range = vdso_mapping()?;
    if address == 0 || range.start != address {
        return None;
    }
    // SAFETY: the range is one mapping of this process, told readable by the kernel a moment ago, that nothing here ever
    // unmaps or writes; u8 has no alignment.
    let image =
        unsafe { std::slice::from_raw_parts(range.start as *const u8, usize::try_from(range.end - range.start).ok()?) };
    UnwindTable::of_elf(image).ok()
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
}

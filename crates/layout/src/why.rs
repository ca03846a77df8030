//! Which section of a binary costs which pages at a start, and the flag that would take them away.
//!
//! Owns what follows from the file and from traces of functions: pages of code that are used, pages that the run-time linker reads
//! (relocation tables, symbols) and writes (data that holds addresses). Leaves pages of constants, unwinding tables and variables unknown:
//! no trace of functions shows them. Pages are those of the kernel that the traces are from, as in `score`.

use crate::order::Algorithm;
use crate::score::{Code, held_out, train};
use crate::work::Work;
use slowpath_symbols::binary::Binary;
use slowpath_symbols::binary::relocations::{ENTRY, Relocations, packed_bytes};
use std::collections::BTreeSet;

/// What a flag leaves of a section's pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// The flag, or what is to be done.
    pub flag: String,
    /// Pages that remain.
    pub pages: f64,
}

/// Pages of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionPages {
    /// Its name.
    pub section: String,
    /// Pages of the whole section.
    pub all: u64,
    /// Pages that the start needs; none where it is not known.
    pub needed: Option<f64>,
    /// What needs them.
    pub by: &'static str,
    /// What would leave fewer.
    pub remedies: Vec<Remedy>,
}

/// Pages of `page` bytes with any of these bytes.
fn pages_of(page: u64, ranges: impl IntoIterator<Item = (u64, u64)>) -> BTreeSet<u64> {
    // No section of a file that is read has more.
    let pages = |(at, size): (u64, u64)| at / page..=at.saturating_add(size.clamp(1, 2 << 30) - 1) / page;
    ranges.into_iter().flat_map(pages).collect()
}

fn words(addresses: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    addresses.iter().map(|address| (*address, 8))
}

/// Sections of a binary with what its start needs of them, in the order of the file. `best`: how the code would be ordered.
pub fn sections(
    binary: &Binary,
    relocations: &Relocations,
    works: &[Work],
    code: &Code,
    best: &Algorithm,
) -> Vec<SectionPages> {
    // At an address of its own the program needs no base added; a library always does, and no flag changes that.
    let can_be_fixed = binary.has_interpreter && !binary.fixed;
    let based: Vec<u64> = relocations.relative.iter().chain(&relocations.packed).copied().collect();
    let page = code.page();
    let dirty = pages_of(page, words(&based).chain(words(&relocations.symbolic)));
    let without_base = pages_of(page, words(&relocations.symbolic));
    let tables = |address: u64| relocations.tables.iter().any(|(at, _)| *at == address);
    let searched = [".dynsym", ".dynstr", ".gnu.hash", ".hash", ".gnu.version"];
    let row = |section: &slowpath_symbols::binary::BinarySection| {
        let own = pages_of(page, [(section.address, section.size)]);
        let count = |set: &BTreeSet<u64>| own.intersection(set).count();
        let mut row = SectionPages {
            section: section.name.clone(),
            all: own.len() as u64,
            needed: None,
            by: "not known from a trace of functions",
            remedies: Vec::new(),
        };
        if section.name == ".text" {
            let needed = crate::score::current(code, works).map(|cost| cost.pages);
            (row.needed, row.by) = (needed, "functions that are used");
            let order = (best.order)(works);
            let held_out = held_out(code, works, best.order);
            // What one trace used is what its order was made for.
            let of = if held_out.is_some() { "" } else { " (for the trace that it is made from: record a second)" };
            let ordered = held_out.or_else(|| train(code, works, &order));
            row.remedies.extend(ordered.map(|cost| Remedy {
                flag: format!("an order: layout order --algorithm {}{of}", best.name),
                pages: cost.pages,
            }));
        } else if tables(section.address) {
            (row.needed, row.by) = (Some(own.len() as f64), "read by the run-time linker");
            let is_packable =
                section.name != ".relr.dyn" && !relocations.relative.is_empty() && !section.name.contains("plt");
            if is_packable {
                let unaligned = relocations.relative.iter().filter(|address| **address % 8 != 0).count() as u64;
                let kept = (relocations.symbolic.len() as u64 + unaligned) * ENTRY;
                let packed = packed_bytes(&relocations.relative);
                let left = (kept.div_ceil(page) + packed.div_ceil(page)) as f64;
                row.remedies
                    .push(Remedy { flag: "-Wl,-z,pack-relative-relocs".to_owned(), pages: left.min(own.len() as f64) });
                if can_be_fixed {
                    let symbolic = relocations.symbolic.len() as u64 * ENTRY;
                    row.remedies.push(Remedy { flag: "-no-pie".to_owned(), pages: symbolic.div_ceil(page) as f64 });
                }
            }
        } else if searched.contains(&section.name.as_str()) && !relocations.symbolic.is_empty() {
            (row.needed, row.by) = (Some(own.len() as f64), "at most: searched by the run-time linker for symbols");
        } else if count(&dirty) > 0 {
            (row.needed, row.by) = (Some(count(&dirty) as f64), "written by the run-time linker");
            if can_be_fixed && count(&without_base) < count(&dirty) {
                row.remedies.push(Remedy { flag: "-no-pie".to_owned(), pages: count(&without_base) as f64 });
            }
        } else if section.executable {
            (row.needed, row.by) = (Some(own.len() as f64), "at most: stubs and start-up code");
        } else if section.absent {
            row.by = "no page of the file";
        }
        row
    };
    binary.sections.iter().filter(|section| !section.name.is_empty()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::algorithm;
    use crate::work::Used;
    use slowpath_symbols::binary::BinarySection;

    fn section(name: &str, address: u64, size: u64) -> BinarySection {
        BinarySection {
            name: name.to_owned(),
            address,
            offset: address,
            size,
            executable: name == ".text",
            absent: name == ".bss",
        }
    }

    fn binary(fixed: bool) -> Binary {
        let sections = vec![
            section(".rela.dyn", 0x1000, 1000 * ENTRY),
            section(".text", 0x10000, 0x10000),
            section(".rodata", 0x20000, 0x4000),
            section(".data.rel.ro", 0x30000, 0x8000),
            section(".bss", 0x40000, 0x8000),
        ];
        Binary { sections, fixed, has_interpreter: true, ..Binary::default() }
    }

    fn found(binary: &Binary) -> Vec<SectionPages> {
        let relocations = Relocations {
            relative: (0..1000).map(|n| 0x30000 + n * 32).collect(),
            symbolic: vec![0x30000],
            tables: vec![(0x1000, 1000 * ENTRY)],
            ..Relocations::default()
        };
        let works = vec![vec![Used { address: 0x10000, size: 64 }, Used { address: 0x18000, size: 64 }]];
        let code = Code::new(works[0].clone(), Some(0x10000..0x20000));
        sections(binary, &relocations, &works, &code, algorithm("first-use").unwrap())
    }

    fn of<'a>(rows: &'a [SectionPages], name: &str) -> &'a SectionPages {
        rows.iter().find(|row| row.section == name).unwrap()
    }

    fn left(row: &SectionPages) -> Vec<(&str, f64)> {
        row.remedies.iter().map(|remedy| (remedy.flag.as_str(), remedy.pages)).collect()
    }

    #[test]
    fn each_section_has_its_pages_and_what_would_leave_fewer() {
        let rows = found(&binary(false));
        assert_eq!((of(&rows, ".text").needed, of(&rows, ".text").remedies[0].pages), (Some(2.0), 1.0));
        assert!(left(of(&rows, ".text"))[0].0.contains("record a second"), "an order is best for what it is made from");
        let table = of(&rows, ".rela.dyn");
        assert_eq!((table.all, table.needed), (6, Some(6.0)));
        assert_eq!(left(table), [("-Wl,-z,pack-relative-relocs", 2.0), ("-no-pie", 1.0)]);
        let data = of(&rows, ".data.rel.ro");
        assert_eq!((data.needed, left(data)), (Some(8.0), vec![("-no-pie", 1.0)]));
        assert_eq!((of(&rows, ".rodata").needed, of(&rows, ".bss").needed), (None, None));
    }

    #[test]
    fn a_program_at_its_own_address_is_not_advised_to_be_one() {
        let rows = found(&binary(true));
        assert_eq!(left(of(&rows, ".data.rel.ro")), []);
        assert_eq!(left(of(&rows, ".rela.dyn")), [("-Wl,-z,pack-relative-relocs", 2.0)]);
    }
}

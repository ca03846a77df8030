//! What one record stands for: samples of page faults, of the CPU by several events, pages of other sizes.

use super::*;

const CYCLES: u64 = 20;

/// What perf writes into a pipe with these events.
fn piped(events: &[(u64, Vec<u8>)], records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = [b"PERFILE2".to_vec(), words(&[16])].concat();
    for (id, attr) in events {
        bytes.extend(record(64, 0, &[attr.clone(), words(&[*id])].concat()));
    }
    bytes.extend(records.concat());
    bytes
}

fn at(id: u64, ts: u64) -> At {
    At { id, tid: 100, ts: 10 * SECOND + ts, cpu: 0 }
}

fn imported(bytes: &[u8]) -> Tables {
    let (tables, problem) = import_bytes("perf-data", bytes);
    assert_eq!(problem, None);
    tables
}

fn has_gap(tables: &Tables, what: &str, remedy: &str) -> bool {
    let mut gaps = tables.manifest.unavailable.iter().filter(|gap| gap.what.contains(what));
    gaps.any(|gap| gap.remedy.contains(remedy))
}

#[test]
fn a_sample_of_page_faults_stands_for_as_many_as_its_period_says() {
    let fault = |period, ts| sample_of(period, at(FAULTS, ts), (2, 0x1000 + ts), &[IN_USER, 0x40_0020], &[]);
    for config in [2, 5, 6] {
        let tables = imported(&piped(&[(FAULTS, attr(1, config, ALL))], &[fault(1, 1), fault(125, 2)]));
        assert_eq!((tables.faults.len(), tables.manifest.losses.of("faults")), (2, 124), "{config}");
        assert!(has_gap(&tables, "the page faults between samples", "-c 1"), "{:#?}", tables.manifest.unavailable);
        let tables = imported(&piped(&[(FAULTS, attr(1, config, ALL))], &[fault(1, 1)]));
        assert_eq!((tables.faults.len(), tables.manifest.losses.of("faults")), (1, 0), "{config}");
        assert!(!has_gap(&tables, "the page faults between samples", ""), "{:#?}", tables.manifest.unavailable);
    }
}

#[test]
fn samples_of_a_clock_are_the_cpu_samples_where_cycles_were_sampled_too() {
    let clock = (CLOCK, attr(1, 0, ALL));
    let cycles = (CYCLES, attr(0, 0, ALL));
    let taken = |id, ts| sample(at(id, ts), (2, 0), &[IN_USER, 0x40_0010], &[]);
    let tables = imported(&piped(&[cycles.clone(), clock], &[taken(CYCLES, 1), taken(CLOCK, 2), taken(CYCLES, 3)]));
    let times: Vec<_> = tables.cpu_samples.iter().map(|row| row.ts.0 - 10 * SECOND).collect();
    assert_eq!((times, tables.manifest.cpu_sample_hz()), (vec![2], Some(1000)));
    assert_eq!(tables.manifest.counters.get("not_imported.cycles"), Some(&2));
    assert!(has_gap(&tables, "the CPU samples of further events", "cpu-clock"), "{:#?}", tables.manifest.unavailable);
    // A clock in a group that cycles lead is read with these, and has no sample and no period of its own (record.c: leader sampling).
    let mut member = attr(1, 0, ALL);
    member[16..24].fill(0);
    let led = imported(&piped(&[cycles.clone(), (CLOCK, member)], &[taken(CYCLES, 1), taken(CYCLES, 3)]));
    assert_eq!(led.cpu_samples.len(), 2);
    let alone = imported(&piped(&[cycles], &[taken(CYCLES, 1), taken(CYCLES, 3)]));
    assert_eq!((alone.cpu_samples.len(), alone.manifest.cpu_sample_hz()), (2, None));
    assert!(!has_gap(&alone, "the CPU samples of further events", ""), "{:#?}", alone.manifest.unavailable);
}

#[test]
fn pages_of_the_page_cache_are_of_4_kib_whatever_pages_the_kernel_has() {
    let format = "name: mm_filemap_add_to_page_cache\nID: 316\nformat:\n\
        \tfield:unsigned long i_ino;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long index;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:dev_t s_dev;\toffset:24;\tsize:4;\tsigned:0;\n\tfield:unsigned char order;\toffset:28;\tsize:1;\tsigned:0;\n";
    let raw = words(&[316, 77, 3, (0xfe << 20 | 1) | 2 << 32]);
    for (page_size, expected) in [(4096, (3, 4)), (16_384, (12, 16)), (65_536, (48, 64))] {
        let formats = formats_of(page_size, &[format]);
        let described = [record(66, 0, &(formats.len() as u32).to_le_bytes()), formats].concat();
        let added = sample(at(SWITCH, 1), (1, 0), &[], &raw);
        let tables = imported(&piped(&[(SWITCH, attr(2, 316, ALL | field::RAW))], &[described, added]));
        let row = &tables.page_cache[0];
        assert_eq!((row.dev, row.ino, (row.page.0, row.pages.0)), (0xfe << 20 | 1, 77, expected), "{page_size}");
    }
}

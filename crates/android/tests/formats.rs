//! Files of ART of Android 8 to 14, made by an independent writer, are read as they were written; heads of them too; and any bytes are.

mod written;

use proptest::prelude::*;
use slowpath_android::foreign;
use slowpath_android::format::{Dex, DexKind, DexMetadata, FormatError, FoundBy, Oat, Profile, SectionKind, Vdex};
use written::{dex, elf, numbers, oat_header, store, vdex_android_8, vdex_android_9, vdex_android_12, zip};

/// `runtime/oat.h` of the release: version, and 32-bit numbers in front of the size of the store.
const OAT: [(&str, usize, &str); 8] = [
    ("124", 15, "8.0"),
    ("131", 16, "8.1"),
    ("138", 16, "9"),
    ("170", 11, "10"),
    ("183", 12, "11"),
    ("199", 13, "12"),
    ("225", 14, "13"),
    ("239", 14, "14"),
];

fn pairs() -> Vec<u8> {
    store(&[
        ("classpath", "PCL[]"),
        ("compilation-reason", "bg-dexopt"),
        ("compiler-filter", "speed-profile"),
        ("dex2oat-cmdline", "--x"),
    ])
}

#[test]
fn an_oat_header_of_each_release_says_filter_and_reason_in_both_classes() {
    for (version, numbers, release) in OAT {
        for (class, machine, isa) in [(64, 183, "arm64"), (32, 40, "arm"), (64, 62, "x86_64")] {
            let oat = Oat::parse(&elf(class, machine, &oat_header(version, numbers, 2, &pairs()))).unwrap();
            assert_eq!(
                (oat.compiler_filter(), oat.compilation_reason()),
                (Some("speed-profile"), Some("bg-dexopt")),
                "{version}"
            );
            assert_eq!(
                (oat.release(), oat.isa, oat.dex_files, oat.found_by),
                (Some(release), Some(isa), 2, FoundBy::Section)
            );
            assert_eq!(oat.store.len(), 4);
        }
    }
}

#[test]
fn the_head_of_a_file_is_enough_and_an_unknown_version_has_the_layout_that_fits() {
    let header = oat_header("225", 14, 1, &pairs());
    let whole = elf(64, 183, &header);
    let oat = Oat::parse(&whole[..4096 + header.len()]).unwrap();
    assert_eq!((oat.found_by, oat.compiler_filter()), (FoundBy::Page, Some("speed-profile")));
    for numbers in [11, 13, 14, 16] {
        let oat = Oat::parse(&elf(64, 183, &oat_header("260", numbers, 1, &pairs()))).unwrap();
        assert_eq!((oat.version, oat.release(), oat.compilation_reason()), (260, None, Some("bg-dexopt")), "{numbers}");
    }
    let padded = [pairs(), vec![0; 40]].concat();
    assert_eq!(Oat::parse(&elf(64, 183, &oat_header("239", 14, 1, &padded))).unwrap().store.len(), 4);
}

#[test]
fn what_is_no_oat_file_is_an_error_that_says_why() {
    let of = |bytes: &[u8]| Oat::parse(bytes).unwrap_err().to_string();
    assert_eq!(of(b"PK\x03\x04"), "it does not start like an ELF file");
    assert_eq!(of(&elf(64, 62, b"hello")), "it does not start like .rodata of an oat file");
    assert_eq!(of(&elf(64, 62, &oat_header("225", 14, 1, &pairs())[..90])), "it ends inside an oat header");
    assert!(of(&elf(64, 62, &oat_header("260", 40, 1, &pairs()))).contains("version \"260\""), "no layout fits");
    let endless = oat_header("225", 14, 1, b"compiler-filter\0speed");
    assert_eq!(of(&elf(64, 62, &endless)), "it ends inside its key-value store");
}

#[test]
fn a_vdex_of_each_release_has_its_sections_and_the_dex_files_inside() {
    let code = dex(0x400, 17, 5);
    for version in ["006", "010"] {
        let vdex = Vdex::parse(&vdex_android_8(version, &code)).unwrap();
        assert_eq!((vdex.dex_files, vdex.dex_bytes()), (1, 0x400), "{version}");
        assert_eq!((vdex.dex[0].methods, vdex.dex[0].classes), (17, 5));
        assert_eq!(vdex.size_of(SectionKind::VerifierDeps), 5);
    }
    for version in ["019", "021"] {
        let vdex = Vdex::parse(&vdex_android_9(version, Some(&code))).unwrap();
        assert_eq!((vdex.dex_files, vdex.dex.len(), vdex.dex_bytes()), (1, 1, 0x404), "{version}");
        assert_eq!(vdex.size_of(SectionKind::ClassPath), if version == "021" { 33 } else { 0 });
        let empty = Vdex::parse(&vdex_android_9(version, None)).unwrap();
        assert_eq!((empty.dex_bytes(), empty.dex_files, empty.size_of(SectionKind::VerifierDeps)), (0, 1, 5));
    }
    let vdex = Vdex::parse(&vdex_android_12(&[(0, 60, 8), (1, 0, 0), (2, 68, 72), (3, 140, 32)])).unwrap();
    assert_eq!((vdex.version, vdex.dex_files, vdex.dex_bytes()), (27, 2, 0));
    assert_eq!(
        vdex.sections.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [SectionKind::Checksums, SectionKind::VerifierDeps, SectionKind::TypeLookup]
    );
    assert!(matches!(Vdex::parse(b"vdex025\0\0\0\0\0"), Err(FormatError::Version { .. })));
    assert!(Vdex::parse(&[b"vdex027\0", &numbers(&[1000])[..]].concat()).is_err());
}

#[test]
fn dex_files_profiles_and_what_a_store_sends_beside_an_apk_are_read() {
    let head = Dex::parse(&dex(0x200, 3, 2)).unwrap();
    assert_eq!(
        (head.kind, head.version, head.file_size, head.methods, head.classes),
        (DexKind::Standard, 35, 0x200, 3, 2)
    );
    let sections = [b"pro\x00015\0", &numbers(&[2, 0, 44, 10, 0, 3, 54, 20, 100])[..]].concat();
    let profile = Profile::parse(&sections).unwrap();
    assert_eq!((profile.version, profile.sections.len(), profile.inflated), (15, 2, 110));
    let old = Profile::parse(&[b"pro\x00010\0", &[3][..], &numbers(&[777, 5])].concat()).unwrap();
    assert_eq!((old.dex_files, old.inflated), (Some(3), 777));
    let vdex = vdex_android_12(&[(0, 60, 4)]);
    let dm = DexMetadata::parse(&zip(&[("primary.prof", &sections), ("primary.vdex", &vdex)])).unwrap();
    assert_eq!(
        (dm.has_profile, dm.has_vdex, dm.profile, dm.vdex.map(|vdex| vdex.dex_files)),
        (true, true, Some(profile), Some(1))
    );
    assert!(DexMetadata::parse(b"PK").is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        at in 0usize..5000,
        kind in 0usize..7,
    ) {
        let whole = match kind {
            0 => elf(64, 183, &oat_header("225", 14, 1, &pairs())),
            1 => elf(32, 40, &oat_header("138", 16, 1, &pairs())),
            2 => vdex_android_8("006", &dex(0x100, 1, 1)),
            3 => vdex_android_9("021", Some(&dex(0x100, 1, 1))),
            4 => vdex_android_12(&[(0, 60, 8), (1, 68, 100)]),
            5 => zip(&[("primary.prof", b"pro\x00015\0"), ("x", &bytes)]),
            _ => Vec::new(),
        };
        let mut changed = whole.clone();
        for (offset, byte) in bytes.iter().enumerate() {
            if let Some(place) = changed.get_mut(at + offset) { *place = *byte; }
        }
        for input in [&bytes, &changed, &whole[..at.min(whole.len())].to_vec(), &[&whole[..], &bytes].concat()] {
            foreign::art_file(input);
        }
    }

    #[test]
    fn any_text_is_read(text in "([ -~\n\t\\[\\]:=/.]{0,300}|(  ?path: /[a-z/.]{0,9}\n|\\[[a-z.]{1,9}\\]\n|    arm: \\[status=[a-z]{0,4}\\] ?\\[?reason?=?x?\\]?\n){0,9})") {
        foreign::device_text(&text);
    }
}

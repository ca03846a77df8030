//! The kernel's types, as far as the probes ask for them.
//!
//! For each type that an object of probes relocates, libbpf goes through all types of the kernel (126,000 of Linux 6.18), and does so anew
//! for each object: two fifths of the CPU time with which a recording starts. It is given a copy instead that has those which the
//! objects name, and what these hold. Some programs take the number of a type with them, which the kernel has to know: up to the last of
//! these (they come early, for each part of the kernel names them) each type keeps its number, and those that nobody asks for are
//! empty.
//!
//! Source of the format: Documentation/bpf/btf.rst, include/uapi/linux/btf.h and tools/lib/bpf/libbpf_internal.h of Linux. Where the copy
//! cannot be made, libbpf reads all types.

use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

/// Where a kernel shows its types.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// The first two bytes.
const MAGIC: u16 = 0xeb9f;
/// Bytes of the header: magic, version, flags, its own length, then place and length of types and of strings.
const HEADER: usize = 24;
/// Bytes that each type has: name, kind and count, size or type.
const COMMON: usize = 12;
/// Bytes of a member: name, type, offset.
const MEMBER: usize = 12;
/// Where the header of an object's relocations says where these are: behind place and length of functions and of lines.
const RELOCATIONS: usize = 24;
/// `BPF_CORE_TYPE_ID_TARGET`: the relocation takes the number of the kernel's type.
const BY_NUMBER: u32 = 7;

/// `BTF_KIND_*`.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FWD: u32 = 7;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// A type: its three common words, and what follows them.
#[derive(Clone, Copy, Debug)]
struct Type<'a> {
    name: u32,
    info: u32,
    /// Size in bytes, or the type that it refers to.
    size_or_type: u32,
    rest: &'a [u8],
}

impl Type<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }
}

/// All types of a kernel or of an object, the first one at 1.
#[derive(Debug)]
struct Types<'a> {
    all: Vec<Type<'a>>,
    strings: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Types<'a> {
    /// `None` where these are no types, or some of a kind that came later than this program.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(*bytes.first_chunk()?) != MAGIC {
            return None;
        }
        let place = |at: usize| Some(word(bytes, at)? as usize);
        let body = bytes.get(place(4)?..)?;
        let part = |at: usize| body.get(place(at)?..)?.get(..place(at + 4)?);
        let (mut types, strings) = (part(8)?, part(16)?);
        let mut all = vec![Type { name: 0, info: 0, size_or_type: 0, rest: &[] }];
        while !types.is_empty() {
            let (name, info, size_or_type) = (word(types, 0)?, word(types, 4)?, word(types, 8)?);
            let count = (info & 0xffff) as usize;
            let follows = match info >> 24 & 0x1f {
                kind::INT | kind::VAR | kind::DECL_TAG => 4,
                kind::ARRAY => 12,
                kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
                kind::ENUM | kind::FUNC_PROTO => 8 * count,
                kind::PTR..=kind::TYPE_TAG => 0,
                _ => return None,
            };
            let rest = types.get(COMMON..COMMON + follows)?;
            all.push(Type { name, info, size_or_type, rest });
            types = &types[COMMON + follows..];
        }
        Some(Self { all, strings })
    }

    fn name(&self, of: u32) -> &'a [u8] {
        let from = self.strings.get(of as usize..).unwrap_or_default();
        &from[..from.iter().position(|byte| *byte == 0).unwrap_or(from.len())]
    }
}

/// A name without its flavour, which libbpf leaves out, too: `task_struct` of `task_struct___before_5_14`.
fn essential(name: &[u8]) -> &[u8] {
    let is_border = |five: &[u8]| five[0] != b'_' && five[1..4] == *b"___" && five[4] != b'_';
    name.windows(5).rposition(is_border).map_or(name, |at| &name[..=at])
}

/// Names of types that relocations ask for, and whether any takes the number of that type.
type Wanted<'a> = HashMap<&'a [u8], bool>;

/// Adds what an object's relocations ask for, from its sections `.BTF` and `.BTF.ext`.
fn want<'a>(wanted: &mut Wanted<'a>, types: &'a [u8], relocations: &[u8]) -> Option<()> {
    let types = Types::read(types)?;
    let place = |at: usize| Some(word(relocations, at)? as usize);
    let all = relocations.get(place(4)? + place(RELOCATIONS)?..)?.get(..place(RELOCATIONS + 4)?)?;
    let size = word(all, 0)? as usize;
    let mut sections = all.get(4..)?;
    while !sections.is_empty() {
        // The section's name, and how many it has.
        let length = size.checked_mul(word(sections, 4)? as usize)?;
        for relocation in sections.get(8..8 + length)?.chunks_exact(size.max(16)) {
            let name = types.name(types.all.get(word(relocation, 4)? as usize)?.name);
            *wanted.entry(essential(name)).or_default() |= word(relocation, 12)? == BY_NUMBER;
        }
        sections = &sections[8 + length..];
    }
    Some(())
}

/// Which types a copy has with all that they say: those that are wanted, and what these hold. And the last one whose number is wanted.
fn needed(types: &Types<'_>, wanted: &Wanted<'_>) -> (Vec<bool>, usize) {
    let mut needed = vec![false; types.all.len()];
    let (mut open, mut last) = (Vec::new(), 0);
    const NAMED: [u32; 6] = [kind::INT, kind::STRUCT, kind::UNION, kind::ENUM, kind::ENUM64, kind::TYPEDEF];
    let named = |one: &Type<'_>| one.name != 0 && NAMED.contains(&one.kind());
    for (number, one) in types.all.iter().enumerate().filter(|(_, one)| named(one)) {
        if let Some(by_number) = wanted.get(essential(types.name(one.name))) {
            open.push(number);
            last = if *by_number { number } else { last };
        }
    }
    while let Some(number) = open.pop() {
        let Some(place) = needed.get_mut(number).filter(|place| !**place) else { continue };
        *place = true;
        let one = &types.all[number];
        let holds = |at: usize| word(one.rest, at).map(|number| number as usize);
        match one.kind() {
            kind::STRUCT | kind::UNION => {
                let members = one.rest.chunks_exact(MEMBER).filter_map(|member| word(member, 4));
                open.extend(members.map(|number| number as usize));
            }
            kind::ARRAY => open.extend([holds(0), holds(4)].into_iter().flatten()),
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                open.push(one.size_or_type as usize);
            }
            _ => {}
        }
    }
    // Number 0 is no type.
    needed[0] = false;
    (needed, last)
}

/// A copy of types.
struct Copy<'a> {
    from: &'a Types<'a>,
    /// Number in the copy of each type, 0 where it has none.
    numbers: Vec<u32>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// Place in the copy of the string at a place.
    places: HashMap<u32, u32>,
}

impl Copy<'_> {
    fn put(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn string(&mut self, old: u32) -> u32 {
        if old == 0 {
            return 0;
        }
        *self.places.entry(old).or_insert_with(|| {
            let place = self.strings.len() as u32;
            self.strings.extend_from_slice(self.from.name(old));
            self.strings.push(0);
            place
        })
    }

    fn number(&self, old: u32) -> u32 {
        self.numbers.get(old as usize).copied().unwrap_or(0)
    }

    /// A type with what it says; what it points to is left out.
    fn add(&mut self, one: Type<'_>) {
        let name = self.string(one.name);
        let refers = match one.kind() {
            kind::PTR => 0,
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.number(one.size_or_type)
            }
            _ => one.size_or_type,
        };
        self.put(&[name, one.info, refers]);
        for (at, chunk) in one.rest.chunks_exact(4).enumerate() {
            let word = word(chunk, 0).unwrap_or(0);
            let word = match (one.kind(), at % 3) {
                (kind::STRUCT | kind::UNION | kind::ENUM64, 0) => self.string(word),
                (kind::STRUCT | kind::UNION, 1) | (kind::ARRAY, 0 | 1) => self.number(word),
                (kind::ENUM, _) if at % 2 == 0 => self.string(word),
                _ => word,
            };
            self.put(&[word]);
        }
    }

    /// A type that says nothing, in the place of one that nobody asks for.
    fn add_empty(&mut self) {
        self.put(&[0, kind::FWD << 24, 0]);
    }

    fn bytes(self) -> Option<Vec<u8>> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok();
        // Version 1, no flags.
        let mut whole: Vec<u8> = MAGIC.to_ne_bytes().into_iter().chain([1, 0]).collect();
        let (types, strings) = (length(&self.types)?, length(&self.strings)?);
        whole.extend([HEADER as u32, 0, types, types, strings].iter().flat_map(|word| word.to_ne_bytes()));
        whole.extend(self.types);
        whole.extend(self.strings);
        Some(whole)
    }
}

/// A copy of the kernel's types that has those which are wanted.
fn reduced(kernel: &[u8], wanted: &Wanted<'_>) -> Option<Vec<u8>> {
    let types = Types::read(kernel)?;
    let (needed, last) = needed(&types, wanted);
    let mut numbers = vec![0; types.all.len()];
    let mut next = 0;
    for (number, is_needed) in needed.iter().enumerate().skip(1) {
        let has_place = *is_needed || number <= last;
        next += u32::from(has_place);
        numbers[number] = if has_place { next } else { 0 };
    }
    let mut copy = Copy { from: &types, numbers, types: Vec::new(), strings: vec![0], places: HashMap::new() };
    for (number, one) in types.all.iter().enumerate().skip(1) {
        if needed[number] {
            copy.add(*one);
        } else if number <= last {
            copy.add_empty();
        }
    }
    copy.bytes()
}

/// The copy for some objects.
fn for_objects(kernel: &[u8], objects: &[&[u8]]) -> Option<Vec<u8>> {
    let objects = objects.iter().map(|object| object::File::parse(*object).ok()).collect::<Option<Vec<_>>>()?;
    let mut wanted = Wanted::new();
    for object in &objects {
        let section = |name: &str| object.section_by_name(name)?.data().ok();
        want(&mut wanted, section(".BTF")?, section(".BTF.ext")?)?;
    }
    reduced(kernel, &wanted)
}

/// The copy in memory, as a file that libbpf opens.
#[derive(Debug)]
pub(crate) struct KernelTypes(Option<OwnedFd>);

impl KernelTypes {
    /// Those of the running kernel that the compiled programs name.
    pub(crate) fn of_this_kernel(objects: &[&[u8]]) -> Self {
        let made = || {
            let copy = for_objects(&fs::read(KERNEL).ok()?, objects)?;
            let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
            let mut file = File::from(nix::sys::memfd::memfd_create(c"kernel types", flags).ok()?);
            file.write_all(&copy).ok()?;
            Some(OwnedFd::from(file))
        };
        Self(made())
    }

    /// Where libbpf finds them; `None` where it has to look itself.
    pub(crate) fn path(&self) -> Option<String> {
        self.0.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_events::Kernel;
    use crate::objects::{self, SharedMaps};
    use crate::options::{Options, StackEvents};
    use crate::probes;
    use libbpf_rs::Btf;

    /// Types as bytes: name, information, size or type, and what follows.
    fn btf(types: &[(&str, u32, u32, &[u32])]) -> Vec<u8> {
        let mut strings = vec![0];
        let mut string = |name: &str| {
            let place = strings.len() as u32;
            strings.extend(name.bytes().chain([0]));
            if name.is_empty() { 0 } else { place }
        };
        let mut words = Vec::new();
        for (name, info, size, rest) in types {
            words.extend([string(name), *info, *size]);
            words.extend(*rest);
        }
        // Names of members stand as numbers of single letters.
        let letters = strings.len() as u32;
        strings.extend(b"a\0b\0c\0");
        for word in &mut words {
            if let Some(letter) = word.checked_sub(LETTER) {
                *word = letters + 2 * letter;
            }
        }
        let (types, strings_at) = (4 * words.len() as u32, 4 * words.len() as u32);
        let head = [HEADER as u32, 0, types, strings_at, strings.len() as u32];
        let mut bytes: Vec<u8> = MAGIC.to_ne_bytes().into_iter().chain([1, 0]).collect();
        bytes.extend(head.iter().chain(&words).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(strings);
        bytes
    }
    /// Numbers from here are names of members.
    const LETTER: u32 = 0x7000_0000;

    fn info(kind: u32, count: u32) -> u32 {
        kind << 24 | count
    }

    fn kernel() -> Vec<u8> {
        btf(&[
            ("int", info(kind::INT, 0), 4, &[32]),
            ("wanted", info(kind::STRUCT, 2), 8, &[LETTER, 3, 0, 0, 5, 32]),
            ("held_t", info(kind::TYPEDEF, 0), 4, &[]),
            ("held", info(kind::STRUCT, 1), 4, &[LETTER + 1, 1, 0]),
            ("", info(kind::UNION, 1), 4, &[LETTER + 2, 1, 0]),
            ("other", info(kind::STRUCT, 1), 40, &[LETTER, 1, 0]),
            ("", info(kind::PTR, 0), 6, &[]),
            ("", info(kind::FUNC_PROTO, 1), 0, &[LETTER, 7]),
            // A function.
            ("function", info(12, 1), 8, &[]),
            ("choice", info(kind::ENUM, 1), 4, &[LETTER, 3]),
            ("taken_t", info(kind::TYPEDEF, 0), 12, &[]),
            ("", info(kind::STRUCT, 1), 4, &[LETTER, 1, 0]),
        ])
    }

    fn wanted<'a>(names: &[(&'a str, bool)]) -> Wanted<'a> {
        names.iter().map(|(name, by_number)| (name.as_bytes(), *by_number)).collect()
    }

    fn shown(copy: &[u8]) -> Vec<(String, u32, u32)> {
        let types = Types::read(copy).unwrap();
        let show = |one: &Type<'_>| (String::from_utf8_lossy(types.name(one.name)).into(), one.info, one.size_or_type);
        types.all.iter().skip(1).map(show).collect()
    }

    fn members(copy: &[u8], number: usize) -> Vec<(String, u32)> {
        let types = Types::read(copy).unwrap();
        let name = |member: &[u8]| String::from_utf8_lossy(types.name(word(member, 0).unwrap())).into();
        let members = types.all[number].rest.chunks_exact(MEMBER);
        members.map(|member| (name(member), word(member, 4).unwrap())).collect()
    }

    #[test]
    fn a_copy_has_what_is_wanted_with_what_that_holds() {
        let copy = reduced(&kernel(), &wanted(&[("wanted", false), ("taken_t", false)])).unwrap();
        let expected = [
            ("int", info(kind::INT, 0), 4),
            ("wanted", info(kind::STRUCT, 2), 8),
            ("held_t", info(kind::TYPEDEF, 0), 4),
            ("held", info(kind::STRUCT, 1), 4),
            ("", info(kind::UNION, 1), 4),
            ("taken_t", info(kind::TYPEDEF, 0), 7),
            ("", info(kind::STRUCT, 1), 4),
        ];
        assert_eq!(shown(&copy), expected.map(|(name, info, size)| (name.to_owned(), info, size)));
        assert_eq!(members(&copy, 2), [("a".to_owned(), 3), (String::new(), 5)]);
        assert_eq!([members(&copy, 4), members(&copy, 5)], [[("b".to_owned(), 1)], [("c".to_owned(), 1)]]);
    }

    #[test]
    fn up_to_a_type_whose_number_is_wanted_all_keep_theirs() {
        let copy = reduced(&kernel(), &wanted(&[("choice", true), ("taken_t", false)])).unwrap();
        let shown = shown(&copy);
        let empty = (String::new(), info(kind::FWD, 0), 0);
        assert_eq!(shown[1..9], vec![empty; 8]);
        assert_eq!((shown[0].0.as_str(), shown[9].0.as_str(), shown[10].0.as_str()), ("int", "choice", "taken_t"));
        assert_eq!((shown.len(), members(&copy, 12)), (12, vec![("a".to_owned(), 1)]));
    }

    #[test]
    fn what_is_no_table_of_types_or_has_a_new_kind_is_left_to_libbpf() {
        let whole = kernel();
        let wanted = wanted(&[("wanted", true)]);
        for length in 0..whole.len() - 1 {
            let _ = reduced(&whole[..length], &wanted);
        }
        assert!(reduced(&whole[..whole.len() / 2], &wanted).is_none());
        assert!(reduced(&btf(&[("new", info(20, 0), 0, &[])]), &wanted).is_none());
        // A type that is its own name ends.
        assert!(reduced(&btf(&[("wanted", info(kind::TYPEDEF, 0), 1, &[])]), &wanted).is_some());
    }

    #[test]
    fn a_flavour_is_no_part_of_a_name() {
        for (name, of) in
            [("task_struct___old", "task_struct"), ("a___b___c", "a___b"), ("__u32", "__u32"), ("x___", "x___")]
        {
            assert_eq!(essential(name.as_bytes()), of.as_bytes());
        }
    }

    /// Instructions of all programs as the kernel got them; without descriptors and addresses of maps, which differ from load to load.
    fn loaded(options: &Options, types: &KernelTypes) -> Vec<(String, Vec<[i64; 5]>)> {
        let btf = Btf::from_vmlinux().unwrap();
        let kernel = Kernel::of(&btf, options);
        let mut shared = SharedMaps::new([1, 2]);
        let mut programs = Vec::new();
        for compiled in probes::ALL.iter().filter(|one| (one.probe.is_wanted)(options)) {
            let Ok(loaded) = objects::load(compiled, &mut shared, &btf, kernel, types, options) else {
                programs.push((compiled.probe.name.to_owned(), Vec::new()));
                continue;
            };
            for program in loaded.object.progs() {
                let mut is_address = false;
                let instructions = program.insns().iter().map(|one| {
                    let is_wide = one.code == 0x18;
                    let imm = if is_address || is_wide && one.src_reg() != 0 { 0 } else { i64::from(one.imm) };
                    is_address = is_wide && one.src_reg() != 0;
                    [one.code.into(), one.dst_reg().into(), one.src_reg().into(), one.off.into(), imm]
                });
                let instructions = instructions.collect();
                programs
                    .push((format!("{} of {}", program.name().to_string_lossy(), compiled.probe.name), instructions));
            }
        }
        programs
    }

    #[test]
    fn probes_get_the_same_instructions_as_with_all_types_of_this_kernel() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: loading programs takes root");
            return;
        }
        let all = Options {
            first_waits: true,
            waits: true,
            memory_calls: true,
            cpu_hertz: Some(99),
            running: true,
            ..Options::default()
        };
        let stacks = StackEvents { faults: true, waits: true, memory_calls: true };
        let older = Options { fault_entry: false, area_tree: false, exit_memory: false, ..all.clone() };
        for options in [all.clone(), Options { stacks, ..all }, older] {
            let wanted = probes::ALL.iter().filter(|one| (one.probe.is_wanted)(&options));
            let objects: Vec<_> = wanted.map(|one| one.object(&options)).collect();
            let copy = for_objects(&fs::read(KERNEL).unwrap(), &objects).unwrap();
            assert!(copy.len() < fs::read(KERNEL).unwrap().len() / 5, "{} bytes", copy.len());
            let (with, without) =
                (loaded(&options, &KernelTypes::of_this_kernel(&objects)), loaded(&options, &KernelTypes(None)));
            assert!(with.len() > 20, "{} programs", with.len());
            for (one, other) in with.iter().zip(&without) {
                assert_eq!(one, other);
            }
            assert_eq!(with.len(), without.len());
        }
    }
}

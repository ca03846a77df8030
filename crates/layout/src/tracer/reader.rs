//! The reader: opens and parses the files that a target maps, as the target's user, in a worker without privilege.
//!
//! Owns both ends of the socket between it and the tracer. The tracer asks by path and inode and gets numbers; names stay with the reader
//! until the end of the trace. Its answers are not trusted: they have limits, and a breakpoint is only set where memory holds the byte
//! that the reader says.

use super::machine::{self, Hook, WIDTH};
use crate::trace_file::LeftOutReason;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowpath_symbols::binary::{Binary, Function};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The largest file that is read.
const MOST_FILE: u64 = 2 << 30;
/// The longest message but entries, in bytes.
const MOST_MESSAGE: u32 = 64 << 20;
/// Entries of one file at most, as `symbols` has them.
const MOST_ENTRIES: u32 = 8 << 20;
/// Objects that the reader keeps the names of.
const MOST_OBJECTS: usize = 1 << 14;
/// Places of one file that set actions of signals; a C library has one.
const MOST_SETTINGS: usize = 1 << 10;
/// Bytes of an entry on the socket.
const ENTRY: usize = 16;
/// How long an answer may take: half a second for Chromium.
const LIMIT: Duration = Duration::from_secs(60);

/// What the tracer asks.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// What is to be known of a mapped file, with its functions or without.
    File { path: String, inode: u64, functions: bool },
    /// Names and sizes of functions, by their number.
    Names { object: u32, numbers: Vec<u32> },
}

/// A mapped part of a file that holds code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Address that the file states.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// What the tracer needs of a file, without its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its number at the reader.
    pub object: u32,
    /// Device.
    pub device: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Build-id.
    pub build_id: Option<String>,
    /// Executable segments.
    pub code: Vec<Code>,
    /// Where a run-time linker is stopped when it has mapped an object.
    #[serde(with = "hook_form")]
    pub hook: Option<Hook>,
    /// Where actions of signals are set.
    pub settings: Vec<u64>,
    /// Bytes of all functions.
    pub function_bytes: u64,
    /// Number of entries that follow.
    entries: u32,
}

mod hook_form {
    use super::{Hook, WIDTH};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(hook: &Option<Hook>, to: S) -> Result<S::Ok, S::Error> {
        hook.map(|hook| (hook.address, hook.original, hook.resume)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Hook>, D::Error> {
        let fields = Option::<(u64, [u8; WIDTH], u64)>::deserialize(from)?;
        Ok(fields.map(|(address, original, resume)| Hook { address, original, resume }))
    }
}

/// A function that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of its breakpoint, as the file states it.
    pub at: u64,
    /// Number of the function at the reader.
    pub function: u32,
    /// What stands there.
    pub original: [u8; WIDTH],
}

/// A function by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Address that the file states.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Name.
    pub name: Option<String>,
}

fn send(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)
}

fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MOST_MESSAGE {
        return Err(io::Error::new(ErrorKind::InvalidData, "a message is longer than any"));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn packed(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY);
    for entry in entries {
        bytes.extend_from_slice(&entry.at.to_le_bytes());
        bytes.extend_from_slice(&entry.function.to_le_bytes());
        bytes.extend_from_slice(&entry.original);
        bytes.resize(bytes.len().next_multiple_of(ENTRY), 0);
    }
    bytes
}

/// Entries from the socket, sorted and each once, whoever sent them.
fn unpacked(bytes: &[u8]) -> Vec<Entry> {
    let entry = |one: &[u8; ENTRY]| Entry {
        at: u64::from_le_bytes([one[0], one[1], one[2], one[3], one[4], one[5], one[6], one[7]]),
        function: u32::from_le_bytes([one[8], one[9], one[10], one[11]]),
        original: std::array::from_fn(|at| one[12 + at]),
    };
    let mut entries: Vec<Entry> = bytes.as_chunks::<ENTRY>().0.iter().map(entry).collect();
    if !entries.is_sorted_by_key(|entry| entry.at) {
        entries.sort_by_key(|entry| entry.at);
    }
    entries.dedup_by_key(|entry| entry.at);
    entries
}

/// Answers until the tracer closes its end. The whole life of the worker.
pub fn serve(mut socket: UnixStream) {
    let mut known: Vec<Vec<Function>> = Vec::new();
    while let Ok(request) = receive::<Request>(&mut socket) {
        let answered = match request {
            Request::File { path, inode, functions } => {
                let answer = read(&path, inode, functions, known.len());
                let (facts, entries) = match answer {
                    Ok((facts, entries, functions)) if known.len() < MOST_OBJECTS => {
                        known.push(functions);
                        (Ok(facts), entries)
                    }
                    Ok(_) => (Err(LeftOutReason::TooLarge), Vec::new()),
                    Err(reason) => (Err(reason), Vec::new()),
                };
                send(&mut socket, &facts).and_then(|()| socket.write_all(&packed(&entries)))
            }
            Request::Names { object, numbers } => {
                let functions = known.get(object as usize);
                let named = |number: &u32| {
                    let function = functions.and_then(|functions| functions.get(*number as usize));
                    let named = |function: &Function| Named {
                        address: function.address,
                        size: function.size,
                        name: function.name.clone(),
                    };
                    function.map(named).unwrap_or_default()
                };
                send(&mut socket, &numbers.iter().map(named).collect::<Vec<_>>())
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

fn read(
    path: &str,
    inode: u64,
    functions: bool,
    number: usize,
) -> Result<(Facts, Vec<Entry>, Vec<Function>), LeftOutReason> {
    // Not waited for where it is a FIFO by now, and never a link: the kernel gave the path of the file itself.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => LeftOutReason::Unreadable,
        _ => LeftOutReason::Replaced,
    })?;
    let found = file.metadata().map_err(|_| LeftOutReason::Unreadable)?;
    // Not the device: some file systems (btrfs, overlayfs) show another one in /proc/PID/maps. The tracer compares the code.
    if !found.is_file() || found.ino() != inode {
        return Err(LeftOutReason::Replaced);
    }
    if found.len() > MOST_FILE {
        return Err(LeftOutReason::TooLarge);
    }
    let mut bytes = Vec::new();
    let most = found.len();
    file.take(most).read_to_end(&mut bytes).map_err(|_| LeftOutReason::Unreadable)?;
    let (mut facts, entries, functions) = facts_of(&bytes, functions)?;
    facts.object = u32::try_from(number).unwrap_or(u32::MAX);
    (facts.device, facts.bytes) = (found.dev(), found.len());
    Ok((facts, entries, functions))
}

/// What the bytes of a file say, with the functions of it or without.
pub(crate) fn facts_of(bytes: &[u8], functions: bool) -> Result<(Facts, Vec<Entry>, Vec<Function>), LeftOutReason> {
    let binary = if functions { Binary::of_elf(bytes) } else { Binary::without_functions(bytes) };
    let binary = binary.map_err(|_| LeftOutReason::NotReadableElf)?;
    if binary.text_relocations {
        return Err(LeftOutReason::TextRelocations);
    }
    let mut entries = Vec::with_capacity(binary.functions.len());
    for (number, function) in (0..).zip(&binary.functions) {
        // The longest that a place is looked for in; a function of unknown size has at least an instruction or two.
        let looked = if function.size == 0 { WIDTH as u64 } else { function.size.min(8) };
        let Some(end) = function.address.checked_add(looked) else { continue };
        let Some(code) = binary.code(bytes, function.address..end) else { continue };
        if let Some(point) = machine::point(code) {
            entries.push(Entry {
                at: function.address + u64::from(point.skip),
                function: number,
                original: point.original,
            });
        }
    }
    // A function of four bytes ends where the place of the next one begins.
    entries.sort_by_key(|entry| entry.at);
    entries.dedup_by_key(|entry| entry.at);
    if functions && entries.is_empty() {
        return Err(LeftOutReason::NoFunctions);
    }
    let hook = binary.debug_state.and_then(|address| {
        let segment = binary.code_at(address)?;
        let code = binary.code(bytes, segment.address..segment.address.checked_add(segment.size)?)?;
        machine::hook(address, code, segment.address)
    });
    let mut settings = Vec::new();
    for segment in binary.segments.iter().filter(|segment| segment.executable) {
        let code =
            binary.code(bytes, segment.address..segment.address.saturating_add(segment.size)).unwrap_or_default();
        settings.extend(machine::setting_places(code).into_iter().map(|at| segment.address.wrapping_add(at)));
    }
    settings.sort_unstable();
    settings.truncate(MOST_SETTINGS);
    let executable = binary.segments.iter().filter(|segment| segment.executable);
    let code = executable.map(|part| Code { address: part.address, offset: part.offset, size: part.size }).collect();
    let facts = Facts {
        object: 0,
        device: 0,
        bytes: bytes.len() as u64,
        build_id: binary.build_id,
        code,
        hook,
        settings,
        function_bytes: binary.functions.iter().map(|function| function.size).fold(0, u64::saturating_add),
        entries: u32::try_from(entries.len()).unwrap_or(0),
    };
    Ok((facts, entries, binary.functions))
}

/// The tracer's end.
#[derive(Debug)]
pub struct Reader {
    socket: UnixStream,
}

impl Reader {
    /// The end of a reader that serves the other one.
    ///
    /// # Errors
    /// The socket takes no time limit.
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(LIMIT))?;
        socket.set_write_timeout(Some(LIMIT))?;
        Ok(Self { socket })
    }

    /// What is to be known of a file, with its functions or without.
    ///
    /// # Errors
    /// The reader has ended or does not answer. The inner error: the file is left out.
    pub fn file(
        &mut self,
        path: &str,
        inode: u64,
        functions: bool,
    ) -> io::Result<Result<(Facts, Vec<Entry>), LeftOutReason>> {
        send(&mut self.socket, &Request::File { path: path.to_owned(), inode, functions })?;
        let facts = match receive::<Result<Facts, LeftOutReason>>(&mut self.socket)? {
            Ok(facts) => facts,
            Err(reason) => return Ok(Err(reason)),
        };
        if facts.entries > MOST_ENTRIES {
            return Err(io::Error::new(ErrorKind::InvalidData, "a file has more functions than any"));
        }
        let mut bytes = vec![0; facts.entries as usize * ENTRY];
        self.socket.read_exact(&mut bytes)?;
        Ok(Ok((facts, unpacked(&bytes))))
    }

    /// Functions of an object by their numbers, in the same order.
    ///
    /// # Errors
    /// The reader has ended, does not answer, or answers something else.
    pub fn names(&mut self, object: u32, numbers: Vec<u32>) -> io::Result<Vec<Named>> {
        let asked = numbers.len();
        send(&mut self.socket, &Request::Names { object, numbers })?;
        let named: Vec<Named> = receive(&mut self.socket)?;
        if named.len() != asked {
            return Err(io::Error::new(ErrorKind::InvalidData, "not as many names as were asked for"));
        }
        Ok(named)
    }
}

/// A message of the reader as bytes: what the tracer makes of it, for the fuzzers.
pub(crate) fn answers(bytes: &[u8]) {
    let mut rest = bytes;
    if let Ok(Ok(facts)) = receive::<Result<Facts, LeftOutReason>>(&mut rest) {
        let entries = unpacked(rest.get(..facts.entries.min(MOST_ENTRIES) as usize * ENTRY).unwrap_or(rest));
        assert!(entries.is_sorted_by(|one, other| one.at < other.at), "entries are sorted and each once");
    }
    let _ = receive::<Vec<Named>>(&mut &bytes[..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_arrive_sorted_and_once_whoever_sent_them() {
        let entry = |at| Entry { at, function: 7, original: [0x55; WIDTH] };
        let sent = [entry(9), entry(3), entry(9), entry(u64::MAX)];
        assert_eq!(unpacked(&packed(&sent)), [entry(3), entry(9), entry(u64::MAX)]);
        assert_eq!(unpacked(&[0; ENTRY - 1]), []);
    }

    #[test]
    fn this_very_program_has_functions_that_begin_where_the_reader_says() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let (facts, entries, functions) = facts_of(&bytes, true).unwrap();
        assert!(functions.len() > 1000 && entries.len() > 1000, "{} functions", functions.len());
        let own = this_very_program_has_functions_that_begin_where_the_reader_says as fn() as usize as u64;
        let base = own
            - functions
                .iter()
                .find(|one| {
                    one.name
                        .as_ref()
                        .is_some_and(|name| name.contains("begin_where_the_reader_says") && !name.contains("closure"))
                })
                .unwrap()
                .address;
        assert_eq!(base % 4096, 0, "the function stands where its symbol says");
        assert!(!facts.code.is_empty() && facts.hook.is_none());
    }

    #[test]
    fn the_run_time_linker_has_a_hook() {
        let path = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1"];
        let Some(bytes) = path.iter().find_map(|path| std::fs::read(path).ok()) else {
            println!("skipped: there is no run-time linker here");
            return;
        };
        let (facts, entries, _) = facts_of(&bytes, true).unwrap();
        let hook = facts.hook.expect("a hook");
        assert_ne!(hook.resume, hook.address);
        assert!(entries.len() > 50);
    }

    #[test]
    fn what_is_no_program_is_left_out_with_its_reason() {
        assert_eq!(facts_of(b"#!/bin/sh", true).unwrap_err(), LeftOutReason::NotReadableElf);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let path = path.to_str().unwrap();
        assert_eq!(read(path, inode, true, 0).unwrap_err(), LeftOutReason::NotReadableElf);
        assert_eq!(read(path, inode + 1, false, 0).unwrap_err(), LeftOutReason::Replaced);
        assert_eq!(read("/no/such/file", 1, true, 0).unwrap_err(), LeftOutReason::Replaced);
    }
}

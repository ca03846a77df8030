//! Tables as few bytes, so that a fuzzer changes values and rows and not the form of a file.
//!
//! The manifest's numbers first, then rows: the number of a table in the order of [`Tables::row_counts`], then a cell a column. A cell that
//! may be null begins with a byte that says so; numbers are LEB128; a text is one byte that names a word of [`WORDS`], or a length and
//! as many bytes. What ends early, or is no row of its table, ends there or is left out: all bytes are tables.

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_array::{UInt32Array, UInt64Array, new_null_array};
use arrow_schema::{DataType, Field};
use slowpath_recording::{BlockCost, CPU_SAMPLE_HZ, Device, HugePages, Launch, MachineFaults, Manifest, MemoryCost};
use slowpath_recording::{MemoryThread, MemoryThreads, Tables};
use slowpath_tables::{Bytes, Nanos, Quantity, Unit};
use std::sync::Arc;

/// Texts that have a byte of their own: the words that columns know, and names that code asks for.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "", "minor", "major", "exec", "map", "unmap", "add", "delete", "fault", "read", "advice", "metadata", "write", "other", "text",
    "rodata", "relocations", "data", "file", "vdso", "generated", "kernel", "truncated", "fault_io", "other_io", "futex",
    "pipe_or_socket", "poll", "timer", "child", "runnable", "throttled", "stopped", "stolen", "munmap", "exit", "end", "mmap",
    "mremap", "brk", "madvise", "prctl", "direct_reclaim", "group_reclaim", "direct_compaction", "own_collapse", "wake_kswapd",
    "wake_kcompactd", "khugepaged_scan", "khugepaged_collapse", "anonymous", "[heap]", "[stack]", "/usr/bin/a", "/usr/lib/libc.so.6",
    "libm.so.6", "main", "malloc", "memcpy", "__memmove_avx_unaligned_erms", "free", "_start", "operator new(unsigned long)", "a",
    "/tmp/x\u{9b}\u{202e}", "=1+1", "truncated: no table", "std::vector<int>::push_back(int)", "realloc", "calloc",
];
/// Texts from this byte on stand there themselves.
const LITERAL: u8 = 0xa0;
/// Rows of one input: more only repeat what these show.
const MOST_ROWS: usize = 4096;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }

    fn text(&mut self) -> Option<String> {
        let first = self.byte()?;
        if first < LITERAL {
            return Some(WORDS.get(usize::from(first)).copied().unwrap_or_default().to_owned());
        }
        let length = usize::from(first - LITERAL).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        if self.byte()? & 1 == 0 { Some(None) } else { self.number().map(Some) }
    }

    fn cell(&mut self, field: &Field) -> Option<ArrayRef> {
        if field.is_nullable() && self.byte()? & 1 == 0 {
            return Some(new_null_array(field.data_type(), 1));
        }
        Some(match field.data_type() {
            DataType::UInt64 => Arc::new(UInt64Array::from(vec![self.number()?])),
            DataType::UInt32 => Arc::new(UInt32Array::from(vec![self.number()? as u32])),
            DataType::Int64 => Arc::new(Int64Array::from(vec![self.number()?.cast_signed()])),
            DataType::Int32 => Arc::new(Int32Array::from(vec![self.number()? as i32])),
            DataType::Boolean => Arc::new(BooleanArray::from(vec![self.byte()? & 1 == 1])),
            _ => Arc::new(StringArray::from(vec![self.text()?])),
        })
    }
}

/// The tables that bytes stand for.
pub fn tables(bytes: &[u8]) -> Tables {
    let mut tables = Tables::default();
    let mut reader = Reader(bytes);
    if let Some(manifest) = manifest(&mut reader) {
        tables.manifest = manifest;
    }
    let names: Vec<&str> = tables.row_counts().iter().map(|(name, _)| *name).collect();
    let schemas: Vec<_> = names
        .iter()
        .map(|name| tables.batch(name, 0..0).map(|batch| batch.schema()))
        .collect::<Option<_>>()
        .unwrap_or_default();
    for _ in 0..MOST_ROWS {
        let Some(table) = reader.byte().map(|byte| usize::from(byte) % names.len()) else { break };
        let schema = &schemas[table];
        let Some(cells) = schema.fields().iter().map(|field| reader.cell(field)).collect::<Option<Vec<_>>>() else {
            break;
        };
        if let Ok(batch) = RecordBatch::try_new(schema.clone(), cells) {
            // A word that the column does not know: that row is none.
            let _ = tables.append_batch(names[table], &batch);
        }
    }
    tables.settle();
    tables
}

fn manifest(reader: &mut Reader<'_>) -> Option<Manifest> {
    let mut manifest = Manifest { command: vec!["/usr/bin/a".to_owned()], cwd: "/".to_owned(), ..Manifest::default() };
    manifest.started = Nanos(reader.number()?);
    manifest.ended = reader.optional()?.map(Nanos);
    if let Some(released) = reader.optional()? {
        let ready = reader.optional()?.map(Nanos);
        let (ready_when, outcome) = ("exit".to_owned(), "ready".to_owned());
        manifest.launch = Some(Launch { released: Nanos(released), ready, ready_when, outcome });
    }
    manifest.host.page_size = reader.number()?;
    manifest.host.cpus = reader.number()? as u32;
    manifest.host.memory_bytes = reader.number()?;
    if let Some(size) = reader.optional()? {
        let (enabled, defrag) = ("always".to_owned(), "madvise".to_owned());
        manifest.host.huge_pages = Some(HugePages { enabled, defrag, size: Bytes(size) });
    }
    if let Some(hz) = reader.optional()? {
        manifest.counters.insert(CPU_SAMPLE_HZ.to_owned(), hz);
    }
    if let Some(faults) = reader.optional()? {
        manifest.machine_faults = Some(MachineFaults { faults, major: reader.number()?, recorder: reader.number()? });
    }
    if let Some(cpu_time) = reader.optional()? {
        let thread = MemoryThread { name: "kswapd0".to_owned(), pid: 7, cpu_time: Nanos(cpu_time) };
        let counters = [("pgalloc", reader.number()?), ("pgsteal_kswapd", reader.number()?)];
        let counters = counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        manifest.memory_threads = Some(MemoryThreads { threads: vec![thread], counters });
    }
    if let Some(dev) = reader.optional()? {
        let (name, mount_point, fs) = ("loop0".to_owned(), "/".to_owned(), "ext4".to_owned());
        let read_ahead_kb = reader.optional()?;
        manifest.devices.push(Device { dev, name, mount_point, fs, read_ahead_kb, lab: reader.byte()? & 1 == 1 });
    }
    let costs = reader.byte()? % 8;
    if costs > 0 {
        let blocks = (0..costs).map(|_| block_cost(reader)).collect::<Option<_>>()?;
        manifest.memory_cost = Some(MemoryCost { took: Nanos(1), blocks });
    }
    Some(manifest)
}

fn block_cost(reader: &mut Reader<'_>) -> Option<BlockCost> {
    let flags = reader.byte()?;
    let quantity = |value: f64| Quantity::interval(value, value * 0.9, value * 1.1, Unit::Ns);
    Some(BlockCost {
        bytes: Bytes(reader.number()?),
        displaced: flags & 1 != 0,
        after: flags & 2 != 0,
        advised: flags & 4 != 0,
        operations: reader.number()?,
        faults: reader.number()?,
        huge_pages: flags & 8 != 0,
        per_page: quantity(reader.number()? as f64),
        unseen: reader.optional()?.map(|unseen| quantity(unseen as f64)),
    })
}

/// Bytes that stand for tables: what a corpus begins with. Of the manifest only what the form knows is kept, of each table as many
/// rows as `most`.
pub fn bytes(tables: &Tables, most: usize) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.manifest(&tables.manifest);
    for (number, (name, rows)) in (0u8..).zip(tables.row_counts()) {
        let Some(batch) = tables.batch(name, 0..rows.min(most)) else { continue };
        for row in 0..batch.num_rows() {
            out.0.push(number);
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                out.cell(field, &column.slice(row, 1));
            }
        }
    }
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn optional(&mut self, number: Option<u64>) {
        self.0.push(number.is_some().into());
        if let Some(number) = number {
            self.number(number);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(word) = WORDS.iter().position(|word| *word == text) {
            self.0.push(word as u8);
            return;
        }
        let bytes = &text.as_bytes()[..text.len().min(usize::from(u8::MAX - LITERAL))];
        self.0.push(LITERAL + bytes.len() as u8);
        self.0.extend(bytes);
    }

    fn cell(&mut self, field: &Field, cell: &ArrayRef) {
        if field.is_nullable() {
            self.0.push((!cell.is_null(0)).into());
            if cell.is_null(0) {
                return;
            }
        }
        let cell = cell.as_any();
        if let Some(cell) = cell.downcast_ref::<UInt64Array>() {
            self.number(cell.value(0));
        } else if let Some(cell) = cell.downcast_ref::<UInt32Array>() {
            self.number(cell.value(0).into());
        } else if let Some(cell) = cell.downcast_ref::<Int64Array>() {
            self.number(cell.value(0).cast_unsigned());
        } else if let Some(cell) = cell.downcast_ref::<Int32Array>() {
            self.number(u64::from(cell.value(0).cast_unsigned()));
        } else if let Some(cell) = cell.downcast_ref::<BooleanArray>() {
            self.0.push(cell.value(0).into());
        } else if let Some(cell) = cell.downcast_ref::<StringArray>() {
            self.text(cell.value(0));
        }
    }

    fn manifest(&mut self, manifest: &Manifest) {
        self.number(manifest.started.0);
        self.optional(manifest.ended.map(|ended| ended.0));
        self.optional(manifest.launch.as_ref().map(|launch| launch.released.0));
        if let Some(launch) = &manifest.launch {
            self.optional(launch.ready.map(|ready| ready.0));
        }
        self.number(manifest.host.page_size);
        self.number(manifest.host.cpus.into());
        self.number(manifest.host.memory_bytes);
        self.optional(manifest.host.huge_pages.as_ref().map(|huge| huge.size.0));
        self.optional(manifest.counters.get(CPU_SAMPLE_HZ).copied());
        self.optional(manifest.machine_faults.map(|found| found.faults));
        if let Some(found) = manifest.machine_faults {
            self.number(found.major);
            self.number(found.recorder);
        }
        let threads = manifest.memory_threads.as_ref();
        self.optional(threads.map(|threads| threads.threads.first().map_or(0, |thread| thread.cpu_time.0)));
        if let Some(threads) = threads {
            self.number(threads.counter("pgalloc").unwrap_or_default());
            self.number(threads.counter("pgsteal_kswapd").unwrap_or_default());
        }
        let device = manifest.devices.first();
        self.optional(device.map(|device| device.dev));
        if let Some(device) = device {
            self.optional(device.read_ahead_kb);
            self.0.push(device.lab.into());
        }
        let costs = manifest.memory_cost.as_ref().map_or(&[][..], |cost| &cost.blocks[..cost.blocks.len().min(7)]);
        self.0.push(costs.len() as u8);
        for cost in costs {
            let flags = [cost.displaced, cost.after, cost.advised, cost.huge_pages];
            self.0.push((0..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum());
            self.number(cost.bytes.0);
            self.number(cost.operations);
            self.number(cost.faults);
            self.number(cost.per_page.value as u64);
            self.optional(cost.unseen.as_ref().map(|unseen| unseen.value as u64));
        }
    }
}

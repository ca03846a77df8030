//! Files that stacks need tables of, and the tables' way into the kernel.

use crate::capture_error::CaptureError;
use crate::events::{
    EVENT_MODULE, MODULE_VDSO, TABLE_HEAD, TABLE_PAGES, TABLE_ROWS, event_header, module_event, record, view,
    walk_settings,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use nix::unistd::{SysconfVar, sysconf};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::JoinHandle;

/// Number of the kernel's vdso among modules.
pub const VDSO: u32 = MODULE_VDSO;

/// Cells of a table at most: 16 million rows, 128 MiB. Chromium has a tenth of it.
const CELLS: usize = 16 << 20;
/// Cells of all tables at most, 1 GiB, and the part of the machine's memory that they may take: it is the kernel's, and whoever maps files
/// decides how many there are.
const ALL_CELLS: u64 = 128 << 20;
const PART_OF_MEMORY: u64 = 16;

/// A file that a followed process maps executable, met for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewModule {
    /// Its number in frames.
    pub module: u32,
    /// A process that maps it; it may have ended since.
    pub pid: u32,
    /// First address of that mapping.
    pub address: u64,
    /// End of that mapping.
    pub end: u64,
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
}

/// The module that a record reports, if it is such a record.
pub(crate) fn mapped_module(bytes: &[u8]) -> Option<NewModule> {
    record::<event_header>(bytes).filter(|header| u32::from(header.kind) == EVENT_MODULE)?;
    let event = record::<module_event>(bytes)?;
    Some(NewModule {
        module: event.module,
        pid: event.header.pid,
        address: event.address,
        end: event.address.saturating_add(event.length),
        dev: event.dev,
        ino: event.ino,
    })
}

/// A table as it comes from `symbols`: see there for the meaning.
#[derive(Clone, Copy, Debug)]
pub struct TableParts<'a> {
    /// File offset of the first page divided by 4096.
    pub first_page: u32,
    /// The first row of each page, and the number of all rows.
    pub pages: &'a [u32],
    /// Rows, in their 8 bytes.
    pub rows: &'a [u64],
}

/// Stacks that a CPU copies in a second at most: 6.4 MiB.
const COPIES_A_SECOND: u32 = 200;

/// Cells that are given to the kernel in one call.
const BATCH: usize = 1 << 16;

/// The maps that hold tables, and what the programs know of them.
pub(crate) struct Tables {
    pub(crate) tables: MapHandle,
    pub(crate) settings: MapHandle,
    /// Of how many walks one is copied; 0 for none.
    copy_every: u32,
    loaded: u32,
    /// Cells that further tables may have.
    room: u64,
    /// Tables on their way. To put one in is over for the kernel's programs at once, but returns only after a grace period (some
    /// 20 ms), which the next table must not wait for.
    under_way: Vec<JoinHandle<Result<(), CaptureError>>>,
}

impl Tables {
    /// Tells the programs that stacks are wanted, and of how many walks one is to be copied (0 for none).
    pub(crate) fn enable(tables: MapHandle, settings: MapHandle, copy_every: u32) -> Result<Self, CaptureError> {
        let enabled = Self { tables, settings, copy_every, loaded: 0, room: room(), under_way: Vec::new() };
        enabled.tell()?;
        Ok(enabled)
    }

    /// Begins to put a table into the kernel. Stacks that end for want of it are walked anew from then on.
    pub(crate) fn load(&mut self, module: u32, parts: &TableParts) -> Result<(), CaptureError> {
        let cells = cells(parts).ok_or_else(|| problem("a table is not what it says"))?;
        self.room = left(self.room, cells.len())?;
        let tables = MapHandle::try_from(&self.tables).map_err(problem)?;
        let loading = std::thread::Builder::new().name("unwind-table".to_owned());
        self.under_way.push(loading.spawn(move || put(&tables, module, &cells)).map_err(problem)?);
        Ok(())
    }

    /// Takes note of the tables that have arrived; returns those that did not fit.
    pub(crate) fn arrived(&mut self) -> Vec<CaptureError> {
        let (done, under_way) =
            std::mem::take(&mut self.under_way).into_iter().partition::<Vec<_>, _>(|one| one.is_finished());
        self.under_way = under_way;
        self.end(done)
    }

    /// Waits for all that are on their way: the process has one thread again. Tells those that could not be put in.
    pub(crate) fn settle(&mut self) -> Vec<CaptureError> {
        let all = std::mem::take(&mut self.under_way);
        self.end(all)
    }

    fn end(&mut self, loading: Vec<JoinHandle<Result<(), CaptureError>>>) -> Vec<CaptureError> {
        if loading.is_empty() {
            return Vec::new();
        }
        let mut failed = Vec::new();
        for one in loading {
            match one.join().unwrap_or_else(|_| Err(problem("the thread that loads a table panicked"))) {
                Ok(()) => self.loaded += 1,
                Err(error) => failed.push(error),
            }
        }
        failed.extend(self.tell().err());
        failed
    }

    fn tell(&self) -> Result<(), CaptureError> {
        let settings =
            walk_settings { tables: self.loaded, copy_every: self.copy_every, copies_a_second: COPIES_A_SECOND };
        self.settings.update(&0u32.to_ne_bytes(), view(&settings), MapFlags::ANY).map_err(problem)
    }
}

/// Makes the map of a table and puts it where the programs find it.
fn put(tables: &MapHandle, module: u32, cells: &[u64]) -> Result<(), CaptureError> {
    let size = u32::try_from(cells.len()).map_err(problem)?;
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: libbpf_sys::BPF_F_INNER_MAP,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some("unwind_rows"), 4, 8, size, &options).map_err(problem)?;
    for (number, part) in cells.chunks(BATCH).enumerate() {
        let first = number * BATCH;
        let (mut keys, mut values) = (Vec::with_capacity(part.len() * 4), Vec::with_capacity(part.len() * 8));
        for (at, cell) in part.iter().enumerate() {
            keys.extend_from_slice(&((first + at) as u32).to_ne_bytes());
            values.extend_from_slice(&cell.to_ne_bytes());
        }
        map.update_batch(&keys, &values, part.len() as u32, MapFlags::ANY, MapFlags::ANY).map_err(problem)?;
    }
    let descriptor = map.as_fd().as_raw_fd().to_ne_bytes();
    tables.update(&module.to_ne_bytes(), &descriptor, MapFlags::ANY).map_err(problem)
}

/// The room that is left behind a table.
fn left(room: u64, cells: usize) -> Result<u64, CaptureError> {
    let left = room.checked_sub(cells as u64);
    left.ok_or_else(|| problem("the tables of this recording have all memory that they may have"))
}

/// Cells that all tables may have on this machine.
fn room() -> u64 {
    let number = |name| sysconf(name).ok().flatten().and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let memory = number(SysconfVar::_PHYS_PAGES).saturating_mul(number(SysconfVar::PAGE_SIZE));
    (memory / PART_OF_MEMORY / size_of::<u64>() as u64).min(ALL_CELLS)
}

pub(super) fn problem(problem: impl std::fmt::Display) -> CaptureError {
    CaptureError::Program { probe: "stacks", problem: problem.to_string() }
}

/// The table as the cells of its map, or `None` for one that contradicts itself or is too large.
fn cells(parts: &TableParts) -> Option<Vec<u64>> {
    let pages = parts.pages.len().checked_sub(1)?;
    let rows_at = TABLE_HEAD as usize + parts.pages.len().div_ceil(2);
    let whole = parts.pages.is_sorted() && *parts.pages.last()? as usize == parts.rows.len();
    if !whole || rows_at + parts.rows.len() > CELLS {
        return None;
    }
    let mut cells = vec![0; rows_at];
    cells[TABLE_PAGES as usize] = u64::from(parts.first_page) | (pages as u64) << 32;
    cells[TABLE_ROWS as usize] = rows_at as u64;
    for (cell, pair) in cells[TABLE_HEAD as usize..].iter_mut().zip(parts.pages.chunks(2)) {
        *cell = u64::from(pair[0]) | pair.get(1).map_or(0, |second| u64::from(*second) << 32);
    }
    cells.extend_from_slice(parts.rows);
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_head_pages_and_rows() {
        let parts = TableParts { first_page: 5, pages: &[0, 1, 3], rows: &[10, 20, 30] };
        assert_eq!(cells(&parts).unwrap(), [5 | 2 << 32, 4, 1 << 32, 3, 10, 20, 30]);
    }

    #[test]
    fn tables_have_a_part_of_the_memory_and_what_is_more_is_refused() {
        // A machine with less than 1 GiB has none of the kernel's types.
        assert!((1 << 23..=ALL_CELLS).contains(&room()), "{}", room());
        assert_eq!(left(100, 60).unwrap(), 40);
        assert!(left(40, 60).unwrap_err().to_string().contains("all memory"));
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        assert_eq!(cells(&TableParts { first_page: 0, pages: &[], rows: &[] }), None);
        assert_eq!(cells(&TableParts { first_page: 0, pages: &[0, 2], rows: &[1] }), None);
        assert_eq!(cells(&TableParts { first_page: 0, pages: &[2, 0, 1], rows: &[1] }), None);
    }
}

//! Makes the unwinding tables of the files that recorded processes execute, while they are recorded: the recorder opens a file,
//! a child process without privilege parses it, and the recorder gives what comes back to the kernel.
//!
//! A child that ends, is stopped for long, or says what it was not asked costs its file the table; another takes its place.

mod child;
mod mapped_file;
mod parser;
mod promptness;
pub mod wire;

use crate::failure::Failure;
use mapped_file::MappedFiles;
use nix::sys::memfd::{MFdFlags, memfd_create};
use parser::{Asked, Parser, startup_files};
pub use promptness::{UsualSlices, ask_for_short_slices};
use slowpath_capture::{CaptureError, NewModule, Recorder, TableParts, VDSO};
use slowpath_launch::Identity;
use slowpath_symbols::audit::vdso_image;
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use wire::{TableAnswer, is_sealed};

/// Rows of a table at most, as a bound on what the child may make the recorder read.
const MOST_ROWS: u32 = 16 << 20;

/// How long tables are waited for before anything is recorded.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file of at most so many bytes is parsed in some milliseconds.
const SMALL: u64 = 4 << 20;

/// How many children that ended are replaced: files that end parsers may be many, and each costs a fork of the recorder.
const REPLACEMENTS: u32 = 16;

/// Files that are open and wait for their tables at most.
const MOST_WAITING: usize = 1024;

/// What a table is to be made of: its size in bytes, what it is, and the file.
struct Wanted {
    size: u64,
    asked: Asked,
    file: File,
}

/// The children that parse, and what they are asked for.
pub struct TableMaker {
    identity: Identity,
    /// One is for small files only: they do not wait for large ones.
    parsers: Vec<Parser>,
    replacements: u32,
    /// Files that were met and not opened yet.
    met: VecDeque<NewModule>,
    /// The smallest first.
    waiting: Vec<Wanted>,
    /// Files whose processes ended before they could be opened.
    unopened: BTreeSet<u32>,
    mapped: MappedFiles,
    /// How many files have no table, by reason.
    gaps: BTreeMap<String, u32>,
    loaded: usize,
}

impl TableMaker {
    /// Starts the children.
    ///
    /// # Errors
    /// No process could be started.
    pub fn start(identity: &Identity) -> Result<Self, Failure> {
        let mut made = Self {
            identity: identity.clone(),
            parsers: Vec::new(),
            replacements: 0,
            met: VecDeque::new(),
            waiting: Vec::new(),
            unopened: BTreeSet::new(),
            mapped: MappedFiles::start(identity),
            gaps: BTreeMap::new(),
            loaded: 0,
        };
        for largest in [SMALL, u64::MAX] {
            made.parsers.push(Parser::start(identity, largest)?);
        }
        match vdso_image().and_then(|image| in_memory(&image).ok()) {
            Some(file) => made.wants(Wanted { size: 0, asked: Asked::Module(VDSO), file }),
            None => made.gap("the kernel shows none of its vdso"),
        }
        Ok(made)
    }

    /// Descriptors that become readable when a table is made.
    pub fn answers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.parsers.iter().map(Parser::answers)
    }

    /// Makes the tables of what a program maps when it starts, before it is recorded.
    pub fn prepare(&mut self, recorder: &mut Recorder, program: &Path) {
        for (seen, generation, file) in startup_files(&self.identity, program) {
            self.wants(Wanted { size: seen.size, asked: Asked::File(seen.key, generation), file });
        }
        self.settle(recorder, |_, _| {});
    }

    /// Asks for the tables of files that were met, and loads those that are made. Never waits.
    pub fn tick(&mut self, recorder: &mut Recorder) {
        self.met.extend(recorder.new_modules());
        while self.waiting.len() < MOST_WAITING
            && let Some(module) = self.met.pop_front()
        {
            match self.mapped.open(&module) {
                Ok((size, file)) => {
                    self.unopened.remove(&module.module);
                    self.wants(Wanted { size, asked: Asked::Module(module.module), file });
                }
                Err(why) => {
                    if let Some(reason) = why.gap() {
                        self.gap(reason);
                    }
                    // The next process that maps it may live longer, or not be in the way.
                    recorder.forget_module(module.module);
                    self.unopened.insert(module.module);
                }
            }
        }
        self.ask();
        for which in 0..self.parsers.len() {
            // One answer for each question, so that no child keeps this up.
            while let Some((asked, answer, table)) = self.parsers[which].answer() {
                // Before the table is loaded, so that the child works meanwhile.
                self.ask();
                self.take(recorder, asked, &answer, table);
            }
        }
        self.refused(recorder.tables_arrived());
        self.bury();
    }

    fn refused(&mut self, tables: Vec<CaptureError>) {
        for error in tables {
            self.gap(&format!("the kernel did not take its table: {error}"));
        }
    }

    /// Replaces children that have ended, or must. What they were asked is given up.
    fn bury(&mut self) {
        let mut parsers = std::mem::take(&mut self.parsers);
        let mut ended = Vec::new();
        parsers.retain_mut(|one| match one.ended() {
            Some(end) => {
                ended.push((end, one.largest));
                false
            }
            None => true,
        });
        self.parsers = parsers;
        for (end, largest) in ended {
            if let Some(reason) = end {
                self.gap(&format!("the process that built its table failed: {reason}"));
            }
            if self.replacements < REPLACEMENTS {
                self.replacements += 1;
                match Parser::start(&self.identity, largest) {
                    Ok(parser) => self.parsers.push(parser),
                    Err(failure) => self.gap(&format!("no process could be started for it: {}", failure.chain())),
                }
            }
        }
        self.parsers.sort_by_key(|one| one.largest);
        if let Some(last) = self.parsers.last_mut() {
            last.largest = u64::MAX;
        }
    }

    /// Begins to load what a child made.
    fn take(&mut self, recorder: &mut Recorder, asked: Asked, answer: &TableAnswer, table: Option<File>) {
        let (pages, rows) = match (table.map(|file| content(answer, &file)), asked) {
            (Some(Ok(content)), _) => content,
            (Some(Err(error)), _) => return self.gap(&format!("its table could not be read: {error}")),
            // Not every file that a program starts with is code.
            (None, Asked::File(..)) => return,
            (None, Asked::Module(module)) => {
                // Without any table its code would not even be walked by frame pointers.
                let nothing = TableParts { first_page: 0, pages: &[0], rows: &[] };
                self.refused(recorder.load_table(module, &nothing).err().into_iter().collect());
                return self.gap("it has no readable unwinding information");
            }
        };
        let module = match asked {
            Asked::Module(module) => module,
            Asked::File(file, generation) => match recorder.register_module(file, generation) {
                Ok(module) => module,
                Err(error) => return self.gap(&format!("it got no number: {error}")),
            },
        };
        match recorder.load_table(module, &TableParts { first_page: answer.first_page, pages: &pages, rows: &rows }) {
            Ok(()) => self.loaded += 1,
            Err(error) => self.refused(vec![error]),
        }
    }

    /// Waits until everything that was asked for is loaded; calls `tell` with what is done and what is left.
    pub fn settle(&mut self, recorder: &mut Recorder, mut tell: impl FnMut(usize, usize)) {
        let since = Instant::now();
        self.tick(recorder);
        let may_go_on = || since.elapsed() < PATIENCE && !crate::interrupt::requested();
        while self.left() > 0 && !self.parsers.is_empty() && may_go_on() {
            tell(self.loaded, self.left());
            std::thread::sleep(Duration::from_millis(1));
            self.tick(recorder);
        }
        self.end(recorder);
    }

    /// Waits for the tables that are on their way into the kernel.
    pub fn end(&mut self, recorder: &mut Recorder) {
        self.refused(recorder.settle_tables());
    }

    /// What has no table.
    pub fn gaps(&self) -> impl Iterator<Item = Unavailable> {
        let by_frame_pointers = "stacks go through their code by frame pointers, or end there";
        let known = self.gaps.iter().map(move |(reason, files)| (*files, reason.as_str(), by_frame_pointers));
        let unopened = u32::try_from(self.unopened.len()).unwrap_or(u32::MAX);
        let ended = "its process ended before the file could be opened";
        let ended = (unopened > 0).then_some((unopened, ended, "stacks end at their code"));
        let outstanding = u32::try_from(self.left()).unwrap_or(u32::MAX);
        let late = (outstanding > 0).then_some((outstanding, "they were not made in time", "stacks end at their code"));
        known
            .chain(ended)
            .chain(late)
            .map(|(files, reason, remedy)| declared::UNWIND_TABLES.of(&[&files], reason, remedy))
    }

    fn gap(&mut self, reason: &str) {
        *self.gaps.entry(reason.to_owned()).or_default() += 1;
    }

    /// What is asked for or waits.
    fn left(&self) -> usize {
        self.met.len() + self.waiting.len() + self.parsers.iter().filter(|one| one.is_busy()).count()
    }

    fn wants(&mut self, wanted: Wanted) {
        let at = self.waiting.partition_point(|other| other.size <= wanted.size);
        self.waiting.insert(at, wanted);
    }

    /// Gives the smallest files that wait to children that have nothing to do.
    fn ask(&mut self) {
        for which in 0..self.parsers.len() {
            while !self.parsers[which].is_busy()
                && self.waiting.first().is_some_and(|wanted| wanted.size <= self.parsers[which].largest)
            {
                let Wanted { asked, file, .. } = self.waiting.remove(0);
                if let Err(error) = self.parsers[which].ask(asked, &file) {
                    self.gap(&format!("it could not be asked for: {error}"));
                }
            }
        }
    }
}

/// Bytes as a file that can be passed on.
fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(c"vdso", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// Pages and rows of an answer. The child is not trusted: what it sends is in memory, nobody can change or delay it, and it is as large
/// as it says, within bounds.
fn content(answer: &TableAnswer, file: &File) -> std::io::Result<(Vec<u32>, Vec<u64>)> {
    let wrong = |why: &str| Err(std::io::Error::other(why.to_owned()));
    if answer.rows > MOST_ROWS || answer.pages > MOST_ROWS {
        return wrong("it is too large");
    }
    if !is_sealed(file) {
        return wrong("it is no sealed file in memory");
    }
    let (of_pages, of_rows) = (u64::from(answer.pages) * 4, u64::from(answer.rows) * 8);
    if file.metadata()?.len() != of_pages + of_rows {
        return wrong("it is not as large as it says");
    }
    let mut pages = vec![0; answer.pages as usize * 4];
    file.read_exact_at(&mut pages, 0)?;
    let mut rows = vec![0; answer.rows as usize * 8];
    file.read_exact_at(&mut rows, of_pages)?;
    let pages = pages.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect();
    Ok((pages, rows.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, fcntl};
    use wire::SEALS;

    fn memory(bytes: usize) -> File {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let mut file = File::from(memfd_create(c"x", flags).unwrap());
        file.write_all(&vec![0; bytes]).unwrap();
        file
    }

    #[test]
    fn an_answer_that_is_not_as_large_as_it_says_is_refused() {
        let file = memory(12);
        fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS)).unwrap();
        let answer = |pages, rows| TableAnswer { pages, rows, ..TableAnswer::default() };
        assert!(content(&answer(1, 1), &file).is_ok());
        for (pages, rows) in [(1, 2), (1, 0), (0, 1), (1, u32::MAX), (u32::MAX, 1)] {
            assert!(content(&answer(pages, rows), &file).is_err(), "{pages} {rows}");
        }
    }

    #[test]
    fn an_answer_that_could_change_or_whose_reading_could_wait_is_refused() {
        let answer = TableAnswer { pages: 1, rows: 1, ..TableAnswer::default() };
        assert!(content(&answer, &memory(12)).is_err());
        let (pipe, _writer) = nix::unistd::pipe().unwrap();
        assert!(content(&answer, &File::from(pipe)).is_err());
        let mut regular = tempfile::tempfile().unwrap();
        regular.write_all(&[0; 12]).unwrap();
        assert!(content(&answer, &regular).is_err());
    }
}

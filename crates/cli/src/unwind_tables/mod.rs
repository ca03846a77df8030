//! Makes the unwinding tables of the files that recorded processes execute, while they are recorded: the recorder opens a file,
//! a child process without privilege parses it, and the recorder gives what comes back to the kernel.

mod child;
mod mapped_file;
mod promptness;
mod wire;

use crate::failure::{Failure, Kind, failed};
use crate::unprivileged::Worker;
use mapped_file::MappedFiles;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, socketpair};
pub use promptness::{UsualSlices, ask_for_short_slices};
use slowpath_capture::{CaptureError, Recorder, TableParts, VDSO};
use slowpath_launch::Identity;
use slowpath_tables::Unavailable;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::{Answer, DONE, Request, receive, send};

/// Rows of a table at most, as a bound on what the child may make the recorder read.
const MOST_ROWS: u32 = 16 << 20;

/// How long tables are waited for before anything is recorded.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file of at most so many bytes is parsed in some milliseconds.
const SMALL: u64 = 4 << 20;

/// A child that parses.
struct Parser {
    socket: OwnedFd,
    child: Worker<()>,
    /// What it is doing; one at a time, so that what is small can go before what is large.
    asked: Option<u32>,
    /// The largest file that it is given.
    largest: u64,
}

/// What a table is to be made of: its size in bytes, and the file.
struct Wanted {
    size: u64,
    request: Request,
    file: Option<File>,
}

/// The children that parse, and what they are asked for.
pub struct TableMaker {
    /// One is for small files only: they do not wait for large ones.
    parsers: Vec<Parser>,
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
        let mut parsers: Vec<Parser> = Vec::new();
        for largest in [SMALL, u64::MAX] {
            let (socket, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(failed(Kind::Machine))?;
            let kept: Vec<i32> =
                parsers.iter().map(|one| &one.socket).chain([&socket]).map(AsRawFd::as_raw_fd).collect();
            let child = Worker::start(identity, move || {
                // The child's copies of the recorder's ends: with them open, no child would ever see the end.
                for socket in kept {
                    let _ = nix::unistd::close(socket);
                }
                child::serve(&other);
                Ok(())
            })?;
            parsers.push(Parser { socket, child, asked: None, largest });
        }
        let vdso = Wanted { size: 0, request: Request::Module(VDSO), file: None };
        let mapped = MappedFiles::start(identity);
        let (unopened, gaps) = (BTreeSet::new(), BTreeMap::new());
        Ok(Self { parsers, waiting: vec![vdso], unopened, mapped, gaps, loaded: 0 })
    }

    /// Descriptors that become readable when a table is made.
    pub fn answers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.parsers.iter().map(|one| one.socket.as_fd())
    }

    /// Makes the tables of what a program maps when it starts, before it is recorded.
    pub fn prepare(&mut self, recorder: &mut Recorder, program: &Path) {
        self.wants(Wanted { size: u64::MAX, request: Request::Program(program.to_owned()), file: None });
        self.settle(recorder, |_, _| {});
    }

    /// Asks for the tables of files that were met, and loads those that are made. Never waits.
    pub fn tick(&mut self, recorder: &mut Recorder) {
        for module in recorder.new_modules() {
            match self.mapped.open(&module) {
                Ok((size, file)) => {
                    self.unopened.remove(&module.module);
                    self.wants(Wanted { size, request: Request::Module(module.module), file: Some(file) });
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
            while let Some((answer, table)) = receive::<Answer>(&self.parsers[which].socket, MsgFlags::MSG_DONTWAIT) {
                if answer.file.is_none() {
                    self.parsers[which].asked = None;
                }
                // Before the table is loaded, so that the child works meanwhile.
                self.ask();
                self.take(recorder, &answer, table);
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

    /// Goes on without children that have ended; the recording does too.
    fn bury(&mut self) {
        let mut lost = 0;
        self.parsers.retain_mut(|one| {
            let lives = one.child.poll().is_none();
            lost += usize::from(!lives && one.asked.is_some());
            lives
        });
        if let Some(last) = self.parsers.last_mut() {
            last.largest = u64::MAX;
        }
        (0..lost).for_each(|_| self.gap("the process that made its table ended"));
    }

    /// Begins to load what a child made.
    fn take(&mut self, recorder: &mut Recorder, answer: &Answer, table: Option<File>) {
        match table.map(|file| content(answer, file)) {
            Some(Ok((pages, rows))) => {
                let module = match answer.key() {
                    Some(file) => match recorder.register_module(file, answer.generation) {
                        Ok(module) => module,
                        Err(error) => return self.gap(&format!("it got no number: {error}")),
                    },
                    None => answer.module,
                };
                let parts = TableParts { first_page: answer.first_page, pages: &pages, rows: &rows };
                match recorder.load_table(module, &parts) {
                    Ok(()) => self.loaded += 1,
                    Err(error) => self.refused(vec![error]),
                }
            }
            Some(Err(error)) => self.gap(&format!("its table could not be read: {error}")),
            None if answer.module == DONE => {}
            None => {
                // Without any table its code would not even be walked by frame pointers.
                let nothing = TableParts { first_page: 0, pages: &[0], rows: &[] };
                self.refused(recorder.load_table(answer.module, &nothing).err().into_iter().collect());
                self.gap("it has no unwinding information that could be read");
            }
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
        known.chain(ended).chain(late).map(|(files, reason, remedy)| Unavailable {
            what: format!("unwinding tables of {files} files"),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        })
    }

    fn gap(&mut self, reason: &str) {
        *self.gaps.entry(reason.to_owned()).or_default() += 1;
    }

    /// What is asked for or waits.
    fn left(&self) -> usize {
        self.waiting.len() + self.parsers.iter().filter(|one| one.asked.is_some()).count()
    }

    fn wants(&mut self, wanted: Wanted) {
        let at = self.waiting.partition_point(|other| other.size <= wanted.size);
        self.waiting.insert(at, wanted);
    }

    /// Gives the smallest files that wait to children that have nothing to do.
    fn ask(&mut self) {
        for which in 0..self.parsers.len() {
            while self.parsers[which].asked.is_none()
                && self.waiting.first().is_some_and(|wanted| wanted.size <= self.parsers[which].largest)
            {
                let Wanted { request, file, .. } = self.waiting.remove(0);
                let number = if let Request::Module(module) = request { module } else { DONE };
                match send(&self.parsers[which].socket, &request, file.as_ref(), MsgFlags::MSG_DONTWAIT) {
                    Ok(()) => self.parsers[which].asked = Some(number),
                    Err(error) => self.gap(&format!("it could not be asked for: {error}")),
                }
            }
        }
    }
}

/// Pages and rows of an answer. The child is not trusted: sizes are bounded, and what is missing is an error.
fn content(answer: &Answer, mut file: File) -> std::io::Result<(Vec<u32>, Vec<u64>)> {
    if answer.rows > MOST_ROWS || answer.pages > MOST_ROWS {
        return Err(std::io::Error::other("it is too large"));
    }
    file.rewind()?;
    let mut pages = vec![0; answer.pages as usize * 4];
    file.read_exact(&mut pages)?;
    let mut rows = vec![0; answer.rows as usize * 8];
    file.read_exact(&mut rows)?;
    let pages = pages.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect();
    Ok((pages, rows.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_answer_that_is_shorter_than_it_says_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 12]).unwrap();
        let answer = |pages, rows| Answer { module: 2, pages, rows, ..Answer::default() };
        assert!(content(&answer(1, 1), file.try_clone().unwrap()).is_ok());
        assert!(content(&answer(1, 2), file.try_clone().unwrap()).is_err());
        assert!(content(&answer(1, u32::MAX), file).is_err());
    }
}

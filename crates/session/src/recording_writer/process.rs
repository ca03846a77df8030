//! The writer's side: with the user's identity it decodes records as they come, examines the files that they name, and writes
//! the recording, a segment of each table every few seconds. It ends with its recorder, which need not say so.

use super::frames::{ANSWER, Begin, MessageKind, SoFar, WriterAnswer, json, read};
use super::names::Names;
use super::stack_audit::StackAuditor;
use crate::failure::{Failure, Kind as FailureKind};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use slowpath_capture::{Decoder, examine};
use slowpath_recording::{Manifest, Recording, Tables, WriteError, Writer};
use slowpath_tables::missing::declared;
use slowpath_tables::{Bytes, Losses};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of a table that are never in a segment at once: at high rates some hundred MB of memory otherwise.
const ROWS: usize = 250_000;

/// Losses that only the writer knows.
const NOT_WRITTEN: &str = "not_written.";

/// How long rows wait for their segment: at least 5 s, and in a long recording half a percent of it up to a minute, so that
/// a day's recording has some ten thousand segments and not a hundred thousand.
fn interval(recorded: Duration) -> Duration {
    (recorded / 200).clamp(Duration::from_secs(5), Duration::from_secs(60))
}

/// Works until the recorder has ended, and reports to it.
pub fn work(mut socket: UnixStream, directory: &Path, limit: Bytes, names: Names) {
    let result = match serve(&mut socket, directory, limit, names) {
        Ok(Some(result)) => result,
        Ok(None) => return,
        Err(error) => Err(Failure::new(FailureKind::Machine, format!("recorder and writer lost each other: {error}"))),
    };
    let _ = socket.write_all(&json(ANSWER, &WriterAnswer::Done(Box::new(result))));
}

/// `None` when there is nobody to tell.
fn serve(
    socket: &mut UnixStream,
    directory: &Path,
    limit: Bytes,
    names: Names,
) -> io::Result<Option<Result<Manifest, Failure>>> {
    let Some((MessageKind::Begin, begin)) = read(socket)? else { return Ok(None) };
    let begin: Begin = serde_json::from_slice(&begin)?;
    let mut recording = match InProgress::begin(directory, begin, limit, names) {
        Ok(recording) => recording,
        Err(error) => return Ok(Some(Err(Failure::from_error(FailureKind::Usage, &error)))),
    };
    socket.write_all(&json(ANSWER, &WriterAnswer::Ready))?;
    loop {
        if !recording.wait(socket)? {
            recording.flush();
        } else {
            // A recorder that was killed within a frame has ended like any other.
            match read(socket).unwrap_or_default() {
                Some((MessageKind::Records, records)) => recording.take(&records),
                Some((MessageKind::SoFar, facts)) => recording.learn(serde_json::from_slice(&facts)?),
                Some((MessageKind::End, manifest)) => {
                    let manifest: Manifest = serde_json::from_slice(&manifest)?;
                    return Ok(Some(recording.finish(|own| replace(own, manifest))));
                }
                Some((MessageKind::Discard, _)) => {
                    let discarded = recording.writer.discard().map(|()| Manifest::default());
                    return Ok(Some(discarded.map_err(|error| Failure::from_error(FailureKind::Machine, &error))));
                }
                Some((MessageKind::Begin, _)) => {}
                None => {
                    let killed = |own: &mut Manifest| own.stop_reason = Some("the recorder was killed".to_owned());
                    let _ = recording.finish(killed);
                    return Ok(None);
                }
            }
            if recording.due <= Instant::now() {
                recording.flush();
            }
        }
        if let Some(reason) = recording.stop.take() {
            socket.write_all(&json(ANSWER, &WriterAnswer::Stop(reason)))?;
        }
    }
}

/// The last manifest, as the recorder reports it, with what only the writer knows.
fn replace(own: &mut Manifest, reported: Manifest) {
    let (segments, losses) = (std::mem::take(&mut own.segments), std::mem::take(&mut own.losses));
    let counters = std::mem::take(&mut own.counters);
    *own = Manifest { segments, ..reported };
    own.losses.merge(&not_written(losses));
    own.counters.extend(counters);
}

fn not_written(mut losses: Losses) -> Losses {
    losses.0.retain(|kind, _| kind.starts_with(NOT_WRITTEN));
    losses
}

/// A recording that is being written.
struct InProgress {
    decoder: Decoder,
    writer: Writer,
    names: Names,
    /// Where stacks are audited.
    auditor: Option<StackAuditor>,
    began: Instant,
    /// When the next segments are.
    due: Instant,
    /// What is to be reported to the recorder.
    stop: Option<String>,
    /// The first failure to write; the limit is none.
    failure: Option<Failure>,
    is_stopping: bool,
}

impl InProgress {
    fn begin(directory: &Path, begin: Begin, limit: Bytes, names: Names) -> Result<Self, WriteError> {
        let began = Instant::now();
        let decoder = Decoder::new(begin.mounts, begin.lab_dev);
        Ok(Self {
            decoder: if begin.audits_stacks { decoder.auditing() } else { decoder },
            auditor: begin.audits_stacks.then(StackAuditor::default),
            writer: Writer::create(directory, begin.manifest)?.with_limit(limit).with_segment_rows(ROWS),
            began,
            due: began + interval(Duration::ZERO),
            names,
            stop: None,
            failure: None,
            is_stopping: false,
        })
    }

    /// Waits for a frame; false when the next segments are due before.
    fn wait(&self, socket: &UnixStream) -> io::Result<bool> {
        let left = self.due.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, records: &[u8]) {
        let rows = self.decoder.feed(records);
        self.names.note_kernel(self.decoder.kernel_symbols());
        self.push(rows);
        if let (Some(auditor), Some(audit)) = (&mut self.auditor, self.decoder.stack_audit()) {
            auditor.take(audit);
        }
    }

    fn push(&mut self, rows: Tables) {
        self.names.note(&rows);
        let written = rows.write(&mut self.writer);
        self.note(written);
    }

    /// Remembers what went wrong, and that the recorder is to stop.
    fn note(&mut self, written: Result<(), WriteError>) {
        let Err(error) = written else { return };
        let reason = match &error {
            WriteError::LimitReached { limit } => {
                format!("the recording reached its limit of {} bytes (--max-size)", limit.0)
            }
            error => {
                let failure = Failure::from_error(FailureKind::Machine, error)
                    .hint("what was written before is intact; `slowpath analyze` reads it");
                self.failure.get_or_insert(failure).chain()
            }
        };
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.stop = Some(reason);
        }
    }

    /// Rows of the files that are new.
    fn push_files(&mut self, mut files: Tables) {
        let examined = examine::examine(&mut files.files);
        (files.sections, files.relocations) = (examined.sections, examined.relocations);
        self.push(files);
    }

    fn flush(&mut self) {
        let files = Tables { files: self.decoder.files(), ..Tables::default() };
        self.push_files(files);
        let written = self.writer.flush();
        self.note(written);
        self.due = Instant::now() + interval(self.began.elapsed());
    }

    fn learn(&mut self, facts: SoFar) {
        let written = self.writer.update_manifest(|manifest| {
            let own = not_written(std::mem::take(&mut manifest.losses));
            manifest.losses = facts.losses;
            manifest.losses.merge(&own);
            manifest.unavailable = facts.unavailable;
        });
        self.note(written);
    }

    fn finish(mut self, edit: impl FnOnce(&mut Manifest)) -> Result<Manifest, Failure> {
        let decoder = std::mem::take(&mut self.decoder);
        let mut last = decoder.finish();
        let mut counters = std::mem::take(&mut last.manifest.counters);
        self.push_files(last);
        // First what was recorded: looking up names parses files that may be anything.
        let written = self.writer.flush();
        self.note(written);
        counters.extend(self.auditor.take().map(StackAuditor::finish).unwrap_or_default());
        let names = std::mem::replace(&mut self.names, Names::new(None));
        // The files are strangers': what makes a parser panic costs the names and no more.
        let symbols = catch_unwind(AssertUnwindSafe(|| names.symbols()));
        let crashed = symbols.is_err().then(|| {
            declared::FUNCTION_NAMES.because(
                "looking them up crashed on one of the files that were executed",
                "stacks have addresses instead; please report the file",
            )
        });
        self.push(Tables { symbols: symbols.unwrap_or_default(), ..Tables::default() });
        let directory = self.writer.path().to_owned();
        let failure = self.failure.take();
        let finished = self.writer.finish(|manifest| {
            manifest.counters.extend(counters);
            edit(manifest);
            manifest.unavailable.extend(crashed);
        });
        let finished = match finished {
            // What did not fit is counted in the losses; that the recording ends there was asked for.
            Err(WriteError::LimitReached { .. }) => Recording::open(&directory)
                .map(|recording| recording.manifest().clone())
                .map_err(|error| Failure::from_error(FailureKind::Machine, &error)),
            other => other.map_err(|error| {
                Failure::from_error(FailureKind::Machine, &error)
                    .hint("what was written before is intact; `slowpath analyze` reads it")
            }),
        };
        failure.map_or(finished, Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_come_every_five_seconds_and_in_long_recordings_less_often() {
        let seconds = |recorded: u64| interval(Duration::from_secs(recorded)).as_secs();
        assert_eq!([0, 600, 1800, 86_400].map(seconds), [5, 5, 9, 60]);
    }

    #[test]
    fn what_was_not_written_stays_in_the_manifest_that_the_recorder_tells() {
        let mut own = Manifest::default();
        own.losses.add("not_written.faults", 3);
        own.losses.add("faults", 1);
        own.counters.insert("unreadable_bytes".to_owned(), 2);
        let mut reported = Manifest { command: vec!["a".to_owned()], ..Manifest::default() };
        reported.losses.add("faults", 5);
        replace(&mut own, reported);
        assert_eq!((own.losses.0["not_written.faults"], own.losses.0["faults"]), (3, 5));
        assert_eq!((own.counters["unreadable_bytes"], own.command.len()), (2, 1));
    }
}

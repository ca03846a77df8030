//! What recorder and writer say to each other: a kind, a length, and as many bytes; records as they are, the rest as JSON.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use slowpath_capture::Mount;
use slowpath_recording::Manifest;
use slowpath_tables::{Losses, Unavailable};
use std::io::{self, Read};

/// Kind of a frame from the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// [`Begin`].
    Begin = 1,
    /// Whole records of the ring.
    Records = 2,
    /// [`SoFar`].
    SoFar = 3,
    /// The last manifest; the writer owns its segments.
    End = 4,
    /// Nothing was recorded: everything that was made is removed.
    Discard = 5,
}

impl MessageKind {
    fn of(number: u8) -> Option<Self> {
        [Self::Begin, Self::Records, Self::SoFar, Self::End, Self::Discard]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// What the writer must know before the first record.
#[derive(Serialize, Deserialize)]
pub struct Begin {
    /// The manifest, with neither end nor segments.
    pub manifest: Manifest,
    /// Mounts of what is recorded.
    pub mounts: Vec<Mount>,
    /// Device of the lab.
    pub lab_dev: Option<u64>,
    /// Whether copies of stacks come, which are to be compared with what was recorded.
    pub audits_stacks: bool,
}

/// What holds until the end, if it should come without a word.
#[derive(Serialize, Deserialize)]
pub struct SoFar {
    /// Events that were lost.
    pub losses: Losses,
    /// What could not be recorded.
    pub unavailable: Vec<Unavailable>,
}

/// What the writer says.
#[derive(Serialize, Deserialize)]
pub enum WriterAnswer {
    /// The directory is there.
    Ready,
    /// Recording is to stop, for this reason.
    Stop(String),
    /// How it ended.
    Done(Box<Result<Manifest, Failure>>),
}

/// Bytes of a frame before its content.
pub const HEADER: usize = 5;

/// The beginning of a frame; `None` for a content that is too long.
pub fn header(kind: u8, length: usize) -> Option<[u8; HEADER]> {
    let length = u32::try_from(length).ok()?.to_le_bytes();
    Some([kind, length[0], length[1], length[2], length[3]])
}

/// A frame with JSON. What is reported holds strings, integers and maps with string keys: nothing in it can fail to serialize.
pub fn json(kind: u8, value: &impl Serialize) -> Vec<u8> {
    let content = serde_json::to_vec(value).unwrap_or_default();
    let mut frame = header(kind, content.len()).unwrap_or_default().to_vec();
    frame.extend(content);
    frame
}

/// The next frame; `None` where there are no more.
///
/// # Errors
/// The other side ended within a frame, or says what is none.
pub fn read(from: &mut impl Read) -> io::Result<Option<(MessageKind, Vec<u8>)>> {
    let mut header = [0; HEADER];
    if from.read(&mut header[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut header[1..])?;
    let kind = MessageKind::of(header[0]).ok_or_else(|| io::Error::other("a frame of unknown kind"))?;
    let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
    let mut content = vec![0; length as usize];
    from.read_exact(&mut content)?;
    Ok(Some((kind, content)))
}

/// Answers in bytes that come in any pieces.
#[derive(Default)]
pub struct Answers {
    bytes: Vec<u8>,
}

/// Kind of a frame with a [`WriterAnswer`].
pub const ANSWER: u8 = 16;

/// The longest answer holds a manifest, which lists segments: some 150 bytes for each of ten thousand.
const LONGEST_ANSWER: usize = 64 << 20;

impl Answers {
    /// Takes more bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next answer, once it is whole.
    ///
    /// # Errors
    /// It is none, or longer than any: the writer has the user's identity and is not trusted.
    pub fn next_answer(&mut self) -> io::Result<Option<WriterAnswer>> {
        let Some(header) = self.bytes.get(..HEADER).and_then(|bytes| <[u8; HEADER]>::try_from(bytes).ok()) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if header[0] != ANSWER || length > LONGEST_ANSWER {
            return Err(io::Error::other("what the writer says is no answer"));
        }
        let end = HEADER + length;
        let Some(content) = self.bytes.get(HEADER..end) else { return Ok(None) };
        let answer = serde_json::from_slice(content).map_err(io::Error::other);
        self.bytes.drain(..end);
        answer.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written_and_a_cut_one_is_an_error() {
        let mut bytes = header(MessageKind::Records as u8, 3).unwrap().to_vec();
        bytes.extend([7, 8, 9]);
        bytes.extend(json(MessageKind::Discard as u8, &()));
        let mut from = bytes.as_slice();
        assert_eq!(read(&mut from).unwrap(), Some((MessageKind::Records, vec![7, 8, 9])));
        assert_eq!(read(&mut from).unwrap(), Some((MessageKind::Discard, b"null".to_vec())));
        assert_eq!(read(&mut from).unwrap(), None);
        assert!(read(&mut &bytes[..6]).is_err());
        assert!(read(&mut &[99u8, 0, 0, 0, 0][..]).is_err());
    }

    #[test]
    fn answers_come_in_any_pieces() {
        let mut bytes = json(ANSWER, &WriterAnswer::Ready);
        bytes.extend(json(ANSWER, &WriterAnswer::Stop("full".to_owned())));
        let mut answers = Answers::default();
        let mut said = Vec::new();
        for byte in bytes {
            answers.extend(&[byte]);
            said.extend(answers.next_answer().unwrap());
        }
        assert!(matches!(said.as_slice(), [WriterAnswer::Ready, WriterAnswer::Stop(why)] if why == "full"));
    }

    #[test]
    fn an_answer_that_is_none_or_without_end_is_an_error_at_its_header() {
        for header in [[ANSWER, 255, 255, 255, 255], [1, 0, 0, 0, 0], [ANSWER, 2, 0, 0, 0]] {
            let mut answers = Answers::default();
            answers.extend(&header);
            answers.extend(b"[[");
            assert!(answers.next_answer().is_err(), "{header:?}");
        }
    }
}

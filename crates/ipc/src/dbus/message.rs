//! Messages of the D-Bus protocol (D-Bus Specification, "Message Protocol"), version 1, little-endian, as far as the benchmark sends
//! and expects them. Total: any bytes are a message or an error.

use std::io;

/// Method call.
pub(super) const CALL: u8 = 1;
/// Its reply.
pub(super) const RETURN: u8 = 2;
/// Its refusal.
const ERROR: u8 = 3;
/// The fixed part of a header, with the length of the fields.
pub(super) const FIXED: usize = 16;
/// What a header may have more than that: those of a bus have some 200 bytes.
pub(super) const MOST_FIELDS: usize = 4096;

/// Codes of header fields.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SENDER: u8 = 7;
const SIGNATURE: u8 = 8;

/// What a call goes to.
pub(super) struct Target {
    pub(super) destination: &'static str,
    pub(super) path: &'static str,
    pub(super) interface: &'static str,
    pub(super) member: &'static str,
}

fn pad(to: &mut Vec<u8>, from: usize, boundary: usize) {
    while !(to.len() - from).is_multiple_of(boundary) {
        to.push(0);
    }
}

fn put_u32(to: &mut Vec<u8>, value: usize) {
    to.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(to: &mut Vec<u8>, from: usize, text: &str) {
    pad(to, from, 4);
    put_u32(to, text.len());
    to.extend_from_slice(text.as_bytes());
    to.push(0);
}

/// A field: a structure of its code and a variant.
fn put_field(to: &mut Vec<u8>, from: usize, code: u8, kind: u8) {
    pad(to, from, 8);
    to.extend_from_slice(&[code, 1, kind, 0]);
}

/// Writes a message with fields made by `fields`, and a body of a signature.
fn put(to: &mut Vec<u8>, kind: u8, serial: u32, signature: &str, body: &[u8], fields: impl FnOnce(&mut Vec<u8>)) {
    to.clear();
    // Byte order, type, no flags, version.
    to.extend_from_slice(&[b'l', kind, 0, 1]);
    put_u32(to, body.len());
    to.extend_from_slice(&serial.to_le_bytes());
    put_u32(to, 0);
    fields(to);
    if !signature.is_empty() {
        put_field(to, 0, SIGNATURE, b'g');
        to.push(signature.len() as u8);
        to.extend_from_slice(signature.as_bytes());
        to.push(0);
    }
    let length = u32::try_from(to.len() - FIXED).unwrap_or(u32::MAX);
    to[12..FIXED].copy_from_slice(&length.to_le_bytes());
    pad(to, 0, 8);
    to.extend_from_slice(body);
}

/// Writes a call.
pub(super) fn call(to: &mut Vec<u8>, serial: u32, target: &Target, signature: &str, body: &[u8]) {
    put(to, CALL, serial, signature, body, |to| {
        put_field(to, 0, PATH, b'o');
        put_text(to, 0, target.path);
        for (code, text) in [(INTERFACE, target.interface), (MEMBER, target.member), (DESTINATION, target.destination)]
        {
            put_field(to, 0, code, b's');
            put_text(to, 0, text);
        }
    });
}

/// Writes the reply to a call that `sender` made with `serial_of_call`.
pub(super) fn reply(to: &mut Vec<u8>, serial: u32, serial_of_call: u32, sender: &str, signature: &str, body: &[u8]) {
    put(to, RETURN, serial, signature, body, |to| {
        put_field(to, 0, REPLY_SERIAL, b'u');
        to.extend_from_slice(&serial_of_call.to_le_bytes());
        put_field(to, 0, DESTINATION, b's');
        put_text(to, 0, sender);
    });
}

/// An array of bytes (`ay`) as a body.
pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.clear();
    put_u32(to, bytes.len());
    to.extend_from_slice(bytes);
}

/// The array of bytes in a body.
pub(super) fn bytes(body: &[u8]) -> io::Result<&[u8]> {
    let (length, bytes) = body.split_first_chunk::<4>().ok_or_else(malformed)?;
    bytes.get(..u32::from_le_bytes(*length) as usize).ok_or_else(malformed)
}

pub(super) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a message of the bus")
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes).ok_or_else(malformed)
}

/// Length of the whole message from its fixed part.
pub(super) fn length(fixed: &[u8; FIXED], largest: usize) -> io::Result<usize> {
    let (body, fields) = (u32_at(fixed, 4)? as usize, u32_at(fixed, 12)? as usize);
    if fixed[0] != b'l' || fixed[3] != 1 || fields > MOST_FIELDS || body > largest {
        return Err(malformed());
    }
    Ok(FIXED + fields.next_multiple_of(8) + body)
}

/// A message that was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Received<'a> {
    pub(super) kind: u8,
    pub(super) serial: u32,
    pub(super) reply_serial: Option<u32>,
    pub(super) sender: &'a str,
    error: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl<'a> Received<'a> {
    /// From a whole message.
    pub(super) fn read(message: &'a [u8]) -> io::Result<Self> {
        let fixed = message.first_chunk::<FIXED>().ok_or_else(malformed)?;
        let fields = u32_at(fixed, 12)? as usize;
        let end = FIXED.checked_add(fields).filter(|end| *end <= message.len()).ok_or_else(malformed)?;
        let body = message.get(end.next_multiple_of(8)..).ok_or_else(malformed)?;
        let serial = u32_at(fixed, 8)?;
        let mut received = Self { kind: fixed[1], serial, reply_serial: None, sender: "", error: None, body };
        let (mut at, header) = (FIXED, &message[..end]);
        while at < end {
            at = at.next_multiple_of(8);
            // Code, and a signature of one letter.
            let Some([code, 1, kind, 0]) = header.get(at..at + 4) else { return Err(malformed()) };
            at += 4;
            match kind {
                b'u' => {
                    let value = u32_at(header, at)?;
                    received.reply_serial = if *code == REPLY_SERIAL { Some(value) } else { received.reply_serial };
                    at += 4;
                }
                b's' | b'o' => {
                    let length = u32_at(header, at)? as usize;
                    let text = header.get(at + 4..(at + 4).saturating_add(length)).ok_or_else(malformed)?;
                    let text = std::str::from_utf8(text).map_err(|_| malformed())?;
                    match *code {
                        SENDER => received.sender = text,
                        ERROR_NAME => received.error = Some(text),
                        _ => {}
                    }
                    at += 4 + length + 1;
                }
                b'g' => at += 1 + usize::from(*header.get(at).ok_or_else(malformed)?) + 1,
                _ => return Err(malformed()),
            }
        }
        Ok(received)
    }

    /// Whether it answers the call with this serial.
    ///
    /// # Errors
    /// It refuses it.
    pub(super) fn answers(&self, serial: u32) -> io::Result<bool> {
        match self.kind {
            RETURN => Ok(self.reply_serial == Some(serial)),
            ERROR if self.reply_serial == Some(serial) => {
                Err(io::Error::other(format!("the bus refused a call: {}", self.error.unwrap_or("no reason"))))
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ECHO: Target = Target { destination: "org.x", path: "/org/x", interface: "org.x.Y", member: "Call" };

    #[test]
    fn what_is_written_is_read_back() {
        let (mut message, mut body) = (Vec::new(), Vec::new());
        put_bytes(&mut body, b"payload");
        call(&mut message, 7, &ECHO, "ay", &body);
        let whole = length(message.first_chunk().unwrap(), body.len()).unwrap();
        assert_eq!(whole, message.len());
        let read = Received::read(&message).unwrap();
        assert_eq!((read.kind, read.serial, bytes(read.body).unwrap()), (CALL, 7, &b"payload"[..]));
        reply(&mut message, 8, 7, ":1.2", "ay", &body);
        let read = Received::read(&message).unwrap();
        assert!(read.answers(7).unwrap() && !read.answers(8).unwrap());
        assert!(length(message.first_chunk().unwrap(), body.len() - 1).is_err(), "a body beyond what was agreed");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(read) = Received::read(&message) {
                let _ = (read.answers(1), bytes(read.body));
            }
            if let Some(fixed) = message.first_chunk() {
                let _ = length(fixed, 100);
            }
        }

        #[test]
        fn a_damaged_message_is_no_panic(at in 0usize..120, value: u8) {
            let (mut message, mut body) = (Vec::new(), Vec::new());
            put_bytes(&mut body, b"payload");
            reply(&mut message, 8, 7, ":1.2", "ay", &body);
            let at = at % message.len();
            message[at] = value;
            let _ = Received::read(&message).map(|read| read.answers(7).is_ok());
        }
    }
}

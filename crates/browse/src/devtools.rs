//! The DevTools protocol over the socket that a browser was started with: calls and their answers as JSON, each with a zero byte behind it
//! (<https://chromedevtools.github.io/devtools-protocol/>; content/browser/devtools/devtools_pipe_handler.cc of Chromium).
//!
//! One call is under way at a time; what the browser sends unasked is ignored.

use crate::error::VisitError;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A conversation with a browser.
pub(crate) struct DevTools {
    socket: BufReader<UnixStream>,
    /// What has come of the message that comes.
    message: Vec<u8>,
    calls: u64,
}

/// An answer to a call that was understood and refused, or that failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The browser said why not.
    Refused(String),
    /// There is no conversation any more.
    Broken(VisitError),
}

/// A message that is longer is none of those that are asked for.
const LONGEST: usize = 16 << 20;

/// How long a browser that has closed the socket is given to end: whoever started it then says how it ended, and ends this process.
const END: Duration = Duration::from_secs(2);

impl DevTools {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket: BufReader::new(socket), message: Vec::new(), calls: 0 }
    }

    /// Calls a method, of the target that a session is attached to or of the browser, and waits for its answer.
    pub(crate) fn call(
        &mut self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
        deadline: Instant,
    ) -> Result<Value, CallError> {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        // JSON has no zero byte.
        let message = format!("{message}\0");
        let answered = self.send(message.as_bytes(), deadline).and_then(|()| {
            loop {
                let message = self.receive(deadline)?;
                let said = serde_json::from_slice::<Value>(&message).ok();
                if let Some(answer) = said.and_then(|said| answer(said, self.calls)) {
                    return Ok(answer);
                }
            }
        });
        match answered {
            Ok(answer) => answer.map_err(CallError::Refused),
            // The first is what a read or write says that took too long.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(CallError::Broken(VisitError::NoAnswer(method)))
            }
            Err(error) => {
                if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
                {
                    std::thread::sleep(END.min(deadline.saturating_duration_since(Instant::now())));
                }
                let problem = error.to_string();
                Err(CallError::Broken(VisitError::Conversation { what: method, problem }))
            }
        }
    }

    fn send(&mut self, message: &[u8], deadline: Instant) -> io::Result<()> {
        let mut rest = message;
        while !rest.is_empty() {
            self.socket.get_ref().set_write_timeout(Some(left(deadline)?))?;
            match self.socket.get_mut().write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next message, without its zero byte.
    fn receive(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        loop {
            // For each read: a browser that sends a byte now and then is no slower than its deadline.
            self.socket.get_ref().set_read_timeout(Some(left(deadline)?))?;
            let read = match self.socket.fill_buf() {
                Ok([]) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the browser closed the conversation")),
                Ok(read) => read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                Err(error) => return Err(error),
            };
            let end = read.iter().position(|byte| *byte == 0);
            // What comes before the end of the time is kept.
            self.message.extend_from_slice(&read[..end.unwrap_or(read.len())]);
            let taken = end.map_or(read.len(), |end| end + 1);
            self.socket.consume(taken);
            if self.message.len() > LONGEST {
                return Err(io::Error::other("a message without end"));
            }
            if end.is_some() {
                return Ok(std::mem::take(&mut self.message));
            }
        }
    }
}

/// Time left for the next read or write, which has no limit without any.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left.max(Duration::from_millis(1))) }
}

/// What a message says to the call with this number; `None` when it is about something else.
pub(crate) fn answer(mut message: Value, call: u64) -> Option<Result<Value, String>> {
    if message.get("id").and_then(Value::as_u64) != Some(call) {
        return None;
    }
    if let Some(error) = message.get("error") {
        let why = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Some(Err(why.to_owned()));
    }
    Some(Ok(message.get_mut("result").map(Value::take).unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn only_the_answer_to_the_call_is_taken() {
        assert_eq!(answer(json!({"method": "Page.loadEventFired"}), 1), None);
        assert_eq!(answer(json!({"id": 2, "result": {}}), 1), None);
        assert_eq!(answer(json!({"id": 1, "result": {"a": 1}}), 1), Some(Ok(json!({"a": 1}))));
        assert_eq!(answer(json!({"id": 1, "error": {"message": "no"}}), 1), Some(Err("no".to_owned())));
        assert_eq!(answer(json!([1]), 1), None);
    }

    /// A browser of which every answer is known, in pieces; and what it was asked.
    fn scripted(answers: Vec<&'static [u8]>) -> (DevTools, std::thread::JoinHandle<Vec<u8>>) {
        let (own, browsers) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut browser = BufReader::new(browsers);
            let mut asked = Vec::new();
            browser.read_until(0, &mut asked).unwrap();
            for answer in answers {
                browser.get_mut().write_all(answer).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
            // Until the other side is gone.
            browser.read_to_end(&mut asked).unwrap();
            asked
        });
        (DevTools::new(own), thread)
    }

    fn within(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn what_was_not_asked_for_is_passed_over_and_silence_ends() {
        // The answer comes in pieces, and with what was sent before it.
        let pieces: Vec<&[u8]> =
            vec![b"nonsense\0{\"method\":\"x\"}\0{\"id\":1,", b"\"result\":{\"ok\":", b"true}}\0{\"id\""];
        let (mut devtools, browser) = scripted(pieces);
        let answer = devtools.call(Some("s"), "A.b", json!({ "text": "\0" }), within(5000)).unwrap();
        assert_eq!(answer, json!({"ok": true}));
        let error = devtools.call(None, "A.c", json!({}), within(200)).unwrap_err();
        assert!(matches!(error, CallError::Broken(VisitError::NoAnswer("A.c"))), "{error:?}");
        drop(devtools);
        let asked = browser.join().unwrap();
        let asked: Vec<Value> = asked
            .split_inclusive(|byte| *byte == 0)
            .map(|one| serde_json::from_slice(&one[..one.len() - 1]).unwrap())
            .collect();
        assert_eq!(asked[0], json!({"id": 1, "method": "A.b", "params": {"text": "\0"}, "sessionId": "s"}));
        assert_eq!(asked[1], json!({"id": 2, "method": "A.c", "params": {}}));
    }

    #[test]
    fn a_browser_that_reads_nothing_is_not_waited_for_and_one_that_is_gone_is_told() {
        let (own, browsers) = UnixStream::pair().unwrap();
        let mut devtools = DevTools::new(own);
        let params = json!({ "text": "x".repeat(4 << 20) });
        let error = devtools.call(None, "A.b", params, within(200)).unwrap_err();
        assert!(matches!(error, CallError::Broken(VisitError::NoAnswer("A.b"))), "{error:?}");
        drop(browsers);
        let error = devtools.call(None, "A.c", json!({}), within(200)).unwrap_err();
        assert!(matches!(error, CallError::Broken(VisitError::Conversation { what: "A.c", .. })), "{error:?}");
    }
}

//! The DevTools protocol over its socket on loopback: calls and their answers (<https://chromedevtools.github.io/devtools-protocol/>).
//!
//! One call is under way at a time; what the browser sends unasked is ignored.

use crate::visitor::VisitError;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::WebSocket;
use tungstenite::protocol::WebSocketConfig;

/// Where a browser listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// On loopback.
    pub port: u16,
    /// Of the browser's own target.
    pub path: String,
}

/// A connection to a browser.
pub(crate) struct DevTools {
    socket: WebSocket<TcpStream>,
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

impl DevTools {
    pub(crate) fn connect(address: &Address, limit: Duration) -> Result<Self, VisitError> {
        let failed = |problem: String| VisitError::Conversation { what: "connecting to DevTools", problem };
        let stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, address.port).into(), limit)
            .map_err(|error| failed(error.to_string()))?;
        let timed = stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)));
        timed.and_then(|()| stream.set_nodelay(true)).map_err(|error| failed(error.to_string()))?;
        let url = format!("ws://127.0.0.1:{}{}", address.port, address.path);
        let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { socket, calls: 0 })
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
        let broken = |problem: String| CallError::Broken(VisitError::Conversation { what: method, problem });
        self.socket.send(message.to_string().into()).map_err(|error| broken(error.to_string()))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CallError::Broken(VisitError::NoAnswer(method)));
            }
            // A time-out of zero would mean none.
            self.socket
                .get_ref()
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))
                .map_err(|error| broken(error.to_string()))?;
            let text = match self.socket.read() {
                Ok(message) => message,
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(error) => return Err(broken(error.to_string())),
            };
            let Some(told) = text.to_text().ok().and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
                continue;
            };
            if let Some(answer) = answer(told, self.calls) {
                return answer.map_err(CallError::Refused);
            }
        }
    }
}

/// What a message says to the call with this number; `None` when it is about something else.
pub(crate) fn answer(mut told: Value, call: u64) -> Option<Result<Value, String>> {
    if told.get("id").and_then(Value::as_u64) != Some(call) {
        return None;
    }
    if let Some(error) = told.get("error") {
        let why = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Some(Err(why.to_owned()));
    }
    Some(Ok(told.get_mut("result").map(Value::take).unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn only_the_answer_to_the_call_is_taken() {
        assert_eq!(answer(json!({"method": "Page.loadEventFired"}), 1), None);
        assert_eq!(answer(json!({"id": 2, "result": {}}), 1), None);
        assert_eq!(answer(json!({"id": 1, "result": {"a": 1}}), 1), Some(Ok(json!({"a": 1}))));
        assert_eq!(answer(json!({"id": 1, "error": {"message": "no"}}), 1), Some(Err("no".to_owned())));
        assert_eq!(answer(json!([1]), 1), None);
    }

    /// A browser of which every answer is known.
    fn scripted(answers: Vec<&'static str>) -> (Address, std::thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
            socket.read().unwrap();
            answers.iter().for_each(|text| socket.send((*text).into()).unwrap());
            // Until the other side is gone.
            while socket.read().is_ok() {}
            answers.len()
        });
        (Address { port, path: "/devtools/browser/x".to_owned() }, thread)
    }

    #[test]
    fn what_was_not_asked_for_is_passed_over_and_silence_ends() {
        let (address, browser) = scripted(vec!["nonsense", r#"{"method":"x"}"#, r#"{"id":1,"result":{"ok":true}}"#]);
        let mut devtools = DevTools::connect(&address, Duration::from_secs(5)).unwrap();
        let soon = || Instant::now() + Duration::from_millis(200);
        let told = devtools.call(Some("s"), "A.b", json!({}), Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(told, json!({"ok": true}));
        let error = devtools.call(None, "A.c", json!({}), soon()).unwrap_err();
        assert!(matches!(error, CallError::Broken(VisitError::NoAnswer("A.c"))), "{error:?}");
        drop(devtools);
        assert_eq!(browser.join().unwrap(), 3);
    }
}

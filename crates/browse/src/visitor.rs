//! A tab of a running browser of the Chromium family, through DevTools.

use crate::devtools::{CallError, DevTools};
use crate::error::VisitError;
use crate::visit::visit;
use serde_json::{Value, json};
use slowpath_tables::Visit;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A tab of a running browser.
pub struct Visitor {
    devtools: DevTools,
    /// Of the tab.
    session: String,
}

/// How often an answer is asked for again while a page replaces another.
const PAUSE: Duration = Duration::from_millis(5);

/// What the page reports of its own navigation, after it was loaded and had the time of a few frames to paint; nothing while
/// another page is still there.
const ASK: &str = "new Promise(done => {
  if (location.href !== URL_OF_PAGE) { done(''); return; }
  const report = () => {
    const navigation = performance.getEntriesByType('navigation')[0];
    const paint = Object.fromEntries(performance.getEntriesByType('paint').map(entry => [entry.name, entry.startTime]));
    done(JSON.stringify({...navigation.toJSON(), paint}));
  };
  const loaded = () => setTimeout(report, 50);
  if (document.readyState === 'complete') loaded(); else addEventListener('load', loaded);
})";

impl Visitor {
    /// Opens a tab of the browser at the other end of a socket, which it was started with (`--remote-debugging-pipe`) and may not have
    /// looked at yet.
    ///
    /// # Errors
    /// There is no browser there, or it does not answer within `limit`.
    pub fn open(socket: UnixStream, limit: Duration) -> Result<Self, VisitError> {
        let deadline = Instant::now() + limit;
        let mut devtools = DevTools::new(socket);
        let tab = devtools.call(None, "Target.createTarget", json!({ "url": "about:blank" }), deadline);
        let target = text(&tab.map_err(refused("Target.createTarget"))?, "targetId", "Target.createTarget")?;
        // Flat: messages of the tab come with the name of its session, beside those of the browser.
        let params = json!({ "targetId": target, "flatten": true });
        let session = devtools.call(None, "Target.attachToTarget", params, deadline);
        let session = text(&session.map_err(refused("Target.attachToTarget"))?, "sessionId", "Target.attachToTarget")?;
        Ok(Self { devtools, session })
    }

    /// Visits a page and waits until it is loaded.
    ///
    /// # Errors
    /// It cannot be loaded, or not within `limit`.
    pub fn visit(&mut self, url: &str, limit: Duration) -> Result<Visit, VisitError> {
        let deadline = Instant::now() + limit;
        let slow = |error| match error {
            CallError::Broken(VisitError::NoAnswer(_)) => VisitError::TooSlow(limit),
            error => refused("Page.navigate")(error),
        };
        let session = Some(self.session.as_str());
        let answer = self.devtools.call(session, "Page.navigate", json!({ "url": url }), deadline).map_err(slow)?;
        if let Some(problem) = answer.get("errorText").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            return Err(VisitError::NotLoaded(problem.to_owned()));
        }
        let ask = ASK.replace("URL_OF_PAGE", &Value::from(url).to_string());
        let params = json!({ "expression": ask, "awaitPromise": true, "returnByValue": true });
        loop {
            let answer = self.devtools.call(session, "Runtime.evaluate", params.clone(), deadline);
            let answer = match answer {
                Ok(answer) => answer,
                // That is how a page that goes away answers.
                Err(CallError::Refused(_)) => Value::Null,
                Err(error) => return Err(slow(error)),
            };
            let value = answer.pointer("/result/value").and_then(Value::as_str);
            if let Some(visit) = value.and_then(visit) {
                return Ok(visit);
            }
            if Instant::now() >= deadline {
                return Err(VisitError::TooSlow(limit));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The error of a call that the browser refused, or that got no answer.
fn refused(what: &'static str) -> impl Fn(CallError) -> VisitError {
    move |error| match error {
        CallError::Refused(problem) => VisitError::Conversation { what, problem },
        CallError::Broken(error) => error,
    }
}

/// A text of an answer.
fn text(answer: &Value, name: &str, what: &'static str) -> Result<String, VisitError> {
    let problem = || format!("the answer has no {name}");
    let text = answer.get(name).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| VisitError::Conversation { what, problem: problem() })
}

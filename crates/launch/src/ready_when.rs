//! When a launch counts as ready, and how that is written on a command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The interval between attempts of `tcp` and `http`: a compromise between the resolution of the result and the
/// load of the observer (one refused loopback connect costs about 10 us). The same for every launch.
pub const ATTEMPT_INTERVAL: Duration = Duration::from_millis(1);

/// When a launch counts as ready. Written as by `Display`, read by `FromStr`; serde uses that text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ReadyWhen {
    /// `exit`: the target exited with status 0.
    Exit,
    /// `line:REGEX`: the first complete line of standard output or error in which the pattern is found (the `regex`
    /// crate's syntax, without the line end, at most the first 64 KiB of a line). The target's output is then a
    /// pipe, so a C library buffers it by blocks unless the program flushes.
    Line(String),
    /// `file:PATH`: the name exists, or, when it existed before the launch, was created anew, written or touched
    /// since. A relative path is relative to the target's working directory.
    File(PathBuf),
    /// `tcp:[HOST:]PORT`: a connection is accepted (host 127.0.0.1 by default).
    Tcp {
        /// Name or address; an IPv6 address without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// `http://HOST[:PORT][/PATH]`: a GET is answered with a status below 500.
    Http {
        /// Name or address; an IPv6 address without brackets.
        host: String,
        /// Port.
        port: u16,
        /// Path and query, beginning with `/`.
        path: String,
    },
    /// `notify`: `READY=1` on `NOTIFY_SOCKET`, as `sd_notify(3)` sends it.
    Notify,
    /// `browser[:HTML_FILE]`: a page served on a loopback port ran its first script. The script requests `/ready`;
    /// the request counts when it has been read, and comes from a connection of the target's user that knows the secret in the page's
    /// address or has its cookie. A page that mentions `/ready` itself is served as it is (it decides when it is ready); into any other
    /// the script is put first in its head. The file is read once, as the target's user.
    Browser {
        /// The page; `None` for a minimal one.
        page: Option<PathBuf>,
    },
}

/// Why a text is no ready condition.
#[derive(Debug, thiserror::Error)]
pub enum ReadyWhenError {
    /// No such kind.
    #[error(
        "`{0}` is no ready condition: use exit, line:REGEX, file:PATH, tcp:[HOST:]PORT, http://HOST[:PORT]/PATH, notify or \
         browser[:HTML_FILE]"
    )]
    Unknown(String),
    /// The kind needs something after the colon.
    #[error("`{kind}:` needs {what} after the colon")]
    Missing {
        /// The kind.
        kind: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// Not a regular expression.
    #[error("the pattern of `line:` is not a regular expression")]
    Pattern(#[from] regex::Error),
    /// Not a port.
    #[error("`{0}` is not a port: expected a number from 1 to 65535")]
    Port(String),
    /// Not a host.
    #[error("`{0}` has no host; put an IPv6 address in brackets: [::1]:PORT")]
    Host(String),
    /// TLS is not spoken.
    #[error("https is not supported: use tcp:HOST:PORT, or http:// where the server offers it")]
    Https,
    /// A character that cannot stand in a request line.
    #[error("`{0}` cannot stand in a request: escape spaces and control characters")]
    Path(String),
}

impl ReadyWhen {
    pub(crate) fn validate(&self) -> Result<(), ReadyWhenError> {
        match self {
            ReadyWhen::Line(pattern) => regex::bytes::Regex::new(pattern).map(drop)?,
            ReadyWhen::File(path) if path.as_os_str().is_empty() => {
                return Err(ReadyWhenError::Missing { kind: "file", what: "a path" });
            }
            ReadyWhen::Tcp { host, port } => check_address(host, *port)?,
            ReadyWhen::Http { host, port, path } => {
                check_address(host, *port)?;
                if !path.starts_with('/') || path.chars().any(|c| c.is_control() || c.is_whitespace()) {
                    return Err(ReadyWhenError::Path(path.clone()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The interval in ns at which this condition is tried; 0 where an event reports it.
    pub fn resolution(&self) -> u64 {
        match self {
            ReadyWhen::Tcp { .. } | ReadyWhen::Http { .. } => ATTEMPT_INTERVAL.as_nanos() as u64,
            _ => 0,
        }
    }
}

fn check_address(host: &str, port: u16) -> Result<(), ReadyWhenError> {
    if port == 0 {
        return Err(ReadyWhenError::Port("0".into()));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || !host.chars().all(allowed) {
        return Err(ReadyWhenError::Host(host.into()));
    }
    Ok(())
}

impl FromStr for ReadyWhen {
    type Err = ReadyWhenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("http://") {
            let (authority, path) = match rest.find('/') {
                Some(slash) => rest.split_at(slash),
                None => (rest, "/"),
            };
            let (host, port) = split_authority(authority)?;
            let port = port.map_or(Ok(80), parse_port)?;
            let condition = ReadyWhen::Http { host, port, path: path.into() };
            return condition.validate().map(|()| condition);
        }
        if text.starts_with("https:") {
            return Err(ReadyWhenError::Https);
        }
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let needed = |kind, what| rest.filter(|rest| !rest.is_empty()).ok_or(ReadyWhenError::Missing { kind, what });
        let condition = match (kind, rest) {
            ("exit", None) => ReadyWhen::Exit,
            ("notify", None) => ReadyWhen::Notify,
            ("browser", None) => ReadyWhen::Browser { page: None },
            ("browser", Some(_)) => ReadyWhen::Browser { page: Some(needed("browser", "an HTML file")?.into()) },
            ("line", _) => ReadyWhen::Line(needed("line", "a regular expression")?.into()),
            ("file", _) => ReadyWhen::File(needed("file", "a path")?.into()),
            ("tcp", _) => tcp(needed("tcp", "[HOST:]PORT")?)?,
            _ => return Err(ReadyWhenError::Unknown(text.into())),
        };
        condition.validate().map(|()| condition)
    }
}

fn tcp(text: &str) -> Result<ReadyWhen, ReadyWhenError> {
    if !text.contains(':') {
        return Ok(ReadyWhen::Tcp { host: "127.0.0.1".into(), port: parse_port(text)? });
    }
    let (host, port) = split_authority(text)?;
    let port = parse_port(port.ok_or_else(|| ReadyWhenError::Port(String::new()))?)?;
    Ok(ReadyWhen::Tcp { host, port })
}

/// Splits `HOST[:PORT]` and `[IPV6][:PORT]`.
fn split_authority(text: &str) -> Result<(String, Option<&str>), ReadyWhenError> {
    let bad = || ReadyWhenError::Host(text.into());
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or_else(bad)?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host.into(), Some(port))),
            None if after.is_empty() => Ok((host.into(), None)),
            None => Err(bad()),
        };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => Err(bad()),
        Some((host, port)) => Ok((host.into(), Some(port))),
        None => Ok((text.into(), None)),
    }
}

fn parse_port(text: &str) -> Result<u16, ReadyWhenError> {
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(ReadyWhenError::Port(text.into())),
    }
}

struct Authority<'a>(&'a str, u16);

impl fmt::Display for Authority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(':') {
            true => write!(f, "[{}]:{}", self.0, self.1),
            false => write!(f, "{}:{}", self.0, self.1),
        }
    }
}

impl fmt::Display for ReadyWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadyWhen::Exit => write!(f, "exit"),
            ReadyWhen::Line(pattern) => write!(f, "line:{pattern}"),
            ReadyWhen::File(path) => write!(f, "file:{}", path.display()),
            ReadyWhen::Tcp { host, port } => write!(f, "tcp:{}", Authority(host, *port)),
            ReadyWhen::Http { host, port, path } => write!(f, "http://{}{path}", Authority(host, *port)),
            ReadyWhen::Notify => write!(f, "notify"),
            ReadyWhen::Browser { page: None } => write!(f, "browser"),
            ReadyWhen::Browser { page: Some(page) } => write!(f, "browser:{}", page.display()),
        }
    }
}

impl From<ReadyWhen> for String {
    fn from(condition: ReadyWhen) -> Self {
        condition.to_string()
    }
}

impl TryFrom<String> for ReadyWhen {
    type Error = ReadyWhenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written_in_the_same_words() {
        for text in [
            "exit",
            "line:^listening on .*:[0-9]+$",
            "file:/run/x:y.pid",
            "tcp:127.0.0.1:8080",
            "tcp:[::1]:80",
            "http://localhost:8080/health?x=1",
            "http://[::1]:81/",
            "notify",
            "browser",
            "browser:/tmp/page.html",
        ] {
            assert_eq!(text.parse::<ReadyWhen>().unwrap().to_string(), text);
        }
        assert_eq!("tcp:80".parse::<ReadyWhen>().unwrap().to_string(), "tcp:127.0.0.1:80");
        assert_eq!("http://h".parse::<ReadyWhen>().unwrap().to_string(), "http://h:80/");
    }

    #[test]
    fn every_wrong_text_is_refused_with_its_reason() {
        for (text, reason) in [
            ("soon", "is no ready condition"),
            ("exit:0", "is no ready condition"),
            ("line:", "needs a regular expression"),
            ("line:(", "not a regular expression"),
            ("file:", "needs a path"),
            ("tcp:", "needs [HOST:]PORT"),
            ("tcp:http", "`http` is not a port"),
            ("tcp:0", "`0` is not a port"),
            ("tcp:::1", "put an IPv6 address in brackets"),
            ("tcp:h:70000", "`70000` is not a port"),
            ("http://:80/", "has no host"),
            ("http://h/a b", "cannot stand in a request"),
            ("http://h\r\nX/", "has no host"),
            ("https://h/", "https is not supported"),
            ("browser:", "needs an HTML file"),
        ] {
            let error = text.parse::<ReadyWhen>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}

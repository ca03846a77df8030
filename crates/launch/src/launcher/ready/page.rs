//! `browser`: a page on a loopback port, whose first script says that it runs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::{fs, io};

use nix::poll::PollFlags;

/// Larger pages are not what a start is measured with, and they are kept in memory.
const PAGE_LIMIT: u64 = 16 << 20;
/// Longer requests are none that a browser makes for this page.
const REQUEST_LIMIT: usize = 64 << 10;

/// `fetch` where there is one; an image request else. `no-store` keeps a disk cache from answering.
const SCRIPT: &str = "<script>try{fetch('/ready',{cache:'no-store',keepalive:true}).catch(function(){})}\
                      catch(e){new Image().src='/ready'}</script>";
const MINIMAL: &str =
    "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>slowpath</title></head><body></body></html>";

pub(crate) struct PageServer {
    listener: TcpListener,
    port: u16,
    page: String,
    visits: Vec<Visit>,
}

struct Visit {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

impl PageServer {
    pub(super) fn bind(page: Option<&str>) -> io::Result<PageServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(PageServer { listener, port, page: with_script(page.unwrap_or(MINIMAL)), visits: Vec::new() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub(super) fn descriptors(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let interest = |visit: &Visit| if visit.answer.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        let visits = self.visits.iter().map(|visit| (visit.stream.as_fd(), interest(visit)));
        visits.chain([(self.listener.as_fd(), PollFlags::POLLIN)]).collect()
    }

    pub(super) fn look(&mut self) -> bool {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.visits.push(Visit { stream, request: Vec::new(), answer: Vec::new(), sent: 0 });
            }
        }
        let mut ready = false;
        let page = self.page.as_str();
        self.visits.retain_mut(|visit| visit.go_on(page, &mut ready));
        ready
    }
}

impl Visit {
    /// Reads and answers as far as possible; false when the visit is over.
    fn go_on(&mut self, page: &str, ready: &mut bool) -> bool {
        let mut buffer = [0; 4096];
        while self.answer.is_empty() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.request.extend_from_slice(&buffer[..length]),
                Err(error) => return is_temporary(&error),
            }
            if self.request.windows(4).any(|end| end == b"\r\n\r\n") {
                let path = path(&self.request);
                *ready |= path == b"/ready";
                self.answer = answer(path, page);
            } else if self.request.len() > REQUEST_LIMIT {
                return false;
            }
        }
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) => return is_temporary(&error),
            }
        }
        false
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The path of a request, without its query.
pub(super) fn path(request: &[u8]) -> &[u8] {
    let target = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

fn answer(path: &[u8], page: &str) -> Vec<u8> {
    let (status, kind, body) = match path {
        b"/" => ("200 OK", "text/html; charset=utf-8", page),
        b"/ready" => ("204 No Content", "text/plain", ""),
        _ => ("404 Not Found", "text/plain", ""),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: \
         close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Puts the script first in the head, or, without one, after the document type; a page that asks for `/ready` itself
/// stays as it is.
pub(super) fn with_script(page: &str) -> String {
    if page.contains("/ready") {
        return page.to_owned();
    }
    let lower = page.to_ascii_lowercase();
    let after = |tag: &str| {
        let starts = lower.match_indices(tag).map(|(start, _)| start);
        let mut whole =
            starts.filter(|start| matches!(lower.as_bytes().get(start + tag.len()), Some(b'>' | b' ' | b'\n')));
        whole.next().and_then(|start| Some(start + lower[start..].find('>')? + 1))
    };
    let place = after("<head").or_else(|| after("<html")).or_else(|| after("<!doctype")).unwrap_or(0);
    [&page[..place], SCRIPT, &page[place..]].concat()
}

/// Reads a page from a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot read the page {}: {error}", path.display());
    let file = fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(format!("the page {} is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(PAGE_LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > PAGE_LIMIT {
        return Err(format!("the page {} is larger than 16 MiB", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("the page {} is not in UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stands_first_in_the_head_and_a_page_with_its_own_stays() {
        assert_eq!(
            with_script("<html><HEAD x=1><script>a</script>"),
            format!("<html><HEAD x=1>{SCRIPT}<script>a</script>")
        );
        assert_eq!(
            with_script("<!DOCTYPE html><header>x</header>"),
            format!("<!DOCTYPE html>{SCRIPT}<header>x</header>")
        );
        assert_eq!(with_script("text"), format!("{SCRIPT}text"));
        let own = "<script>onload=()=>fetch('/ready')</script>";
        assert_eq!(with_script(own), own);
    }

    #[test]
    fn only_a_complete_request_for_ready_counts() {
        let mut server = PageServer::bind(None).unwrap();
        let mut visitor = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        visitor.write_all(b"GET /ready?1 HTTP/1.1\r\nHost: x\r\n").unwrap();
        assert!(!server.look());
        visitor.write_all(b"\r\n").unwrap();
        assert!((0..100).any(|_| server.look()));
        let mut other = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(!(0..100).any(|_| server.look()));
        let mut answer = String::new();
        other.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("fetch('/ready'"), "{answer}");
    }
}

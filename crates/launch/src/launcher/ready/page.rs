//! `browser`: a page on a loopback port, whose first script says that it runs.
//!
//! Everybody on the machine reaches the port, and so does every web page that the browser shows. What is served and what counts is a
//! request on a connection of the target's user, for this very address, with the secret of this launch: in its path, or in a cookie for a
//! page that asks for `/ready` itself.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::PollFlags;
use slowpath_process::loopback::{are_users_known, secret, user_of};

/// Longer requests are none that a browser makes for this page.
const REQUEST_LIMIT: usize = 64 << 10;
/// Connections that are open at once; a browser has six to one address. For one more the oldest is given up.
const MOST_VISITS: usize = 64;
/// Connections that one look takes: everybody can make some, and the observer has more to look after.
const MOST_A_LOOK: usize = 64;
/// Name of the cookie that holds the secret.
const COOKIE_NAME: &[u8] = b"slowpath";

const MINIMAL: &str =
    "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>slowpath</title></head><body></body></html>";

pub(crate) struct PageServer {
    listener: TcpListener,
    site: Site,
    visits: Vec<Visit>,
}

/// What is served, where and to whom.
struct Site {
    own: SocketAddrV4,
    secret: String,
    user: u32,
    /// Whether the kernel says whose a connection is; where it does not, the secret has to do.
    users_known: bool,
    page: String,
}

struct Visit {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

impl PageServer {
    /// Begins to serve `page` to `user` (and to root).
    pub(super) fn bind(page: Option<&str>, user: u32) -> io::Result<PageServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let own = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port());
        let secret = secret()?;
        let page = with_script(page.unwrap_or(MINIMAL), &secret);
        let site = Site { own, secret, user, users_known: are_users_known()?, page };
        Ok(PageServer { listener, site, visits: Vec::new() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.site.own, self.site.secret)
    }

    pub(super) fn descriptors(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let interest = |visit: &Visit| if visit.answer.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        let visits = self.visits.iter().map(|visit| (visit.stream.as_fd(), interest(visit)));
        visits.chain([(self.listener.as_fd(), PollFlags::POLLIN)]).collect()
    }

    pub(super) fn look(&mut self) -> bool {
        for _ in 0..MOST_A_LOOK {
            let Ok((stream, peer)) = self.listener.accept() else { break };
            if !self.site.is_users(peer) || stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.visits.len() == MOST_VISITS {
                self.visits.remove(0);
            }
            self.visits.push(Visit { stream, request: Vec::new(), answer: Vec::new(), sent: 0 });
        }
        let mut ready = false;
        let site = &self.site;
        self.visits.retain_mut(|visit| visit.go_on(site, &mut ready));
        ready
    }
}

impl Site {
    /// Whether a connection is one of the user's. One that was closed before it was accepted is nobody's.
    fn is_users(&self, peer: SocketAddr) -> bool {
        let may = |user: u32| user == self.user || user == 0;
        match peer {
            SocketAddr::V4(peer) => !self.users_known || user_of(peer, self.own).is_ok_and(may),
            SocketAddr::V6(_) => false,
        }
    }

    /// The answer to a request, and whether it is the one that says that the page runs.
    fn answer(&self, request: &[u8]) -> (Vec<u8>, bool) {
        match self.path(request) {
            Some(b"/") => (self.response("200 OK", "text/html; charset=utf-8", &self.page), false),
            Some(b"/ready") => (self.response("204 No Content", "text/plain", ""), true),
            _ => (response("404 Not Found", "text/plain", "", ""), false),
        }
    }

    /// The path below the secret, for who knows it.
    fn path<'a>(&self, request: &'a [u8]) -> Option<&'a [u8]> {
        if !headers(request, b"host").any(|host| host == self.own.to_string().as_bytes()) {
            return None;
        }
        let path = path(request);
        let inside = path.strip_prefix(b"/").and_then(|rest| rest.strip_prefix(self.secret.as_bytes()));
        inside.or_else(|| cookies(request).any(|value| value == self.secret.as_bytes()).then_some(path))
    }

    fn response(&self, status: &str, kind: &str, body: &str) -> Vec<u8> {
        let name = String::from_utf8_lossy(COOKIE_NAME);
        let cookie = format!("Set-Cookie: {name}={}; Path=/; HttpOnly; SameSite=Strict\r\n", self.secret);
        response(status, kind, &cookie, body)
    }
}

impl Visit {
    /// Reads and answers as far as possible; false when the visit is over.
    fn go_on(&mut self, site: &Site, ready: &mut bool) -> bool {
        let mut buffer = [0; 4096];
        while self.answer.is_empty() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.request.extend_from_slice(&buffer[..length]),
                Err(error) => return is_temporary(&error),
            }
            if self.request.windows(4).any(|end| end == b"\r\n\r\n") {
                let (answer, says_ready) = site.answer(&self.request);
                *ready |= says_ready;
                self.answer = answer;
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

/// What the headers with this name (in small letters) say.
fn headers<'a>(request: &'a [u8], name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let lines =
        request.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii).take_while(|line| !line.is_empty());
    lines.filter_map(move |line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

/// The values of our cookie in a request.
pub(super) fn cookies(request: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = headers(request, b"cookie").flat_map(|value| value.split(|byte| *byte == b';'));
    all.filter_map(|one| one.trim_ascii().strip_prefix(COOKIE_NAME)?.strip_prefix(b"="))
}

fn response(status: &str, kind: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n{more}Connection: \
         close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// What says that the page runs: `fetch` where there is one; an image request else. `no-store` keeps a disk cache from answering.
fn script(secret: &str) -> String {
    format!(
        "<script>try{{fetch('/{secret}/ready',{{cache:'no-store',keepalive:true}}).catch(function(){{}})}}\
         catch(e){{new Image().src='/{secret}/ready'}}</script>"
    )
}

/// Puts the script first in the head, or, without one, after the document type; a page that asks for `/ready` itself
/// stays as it is.
pub(super) fn with_script(page: &str, secret: &str) -> String {
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
    [&page[..place], &script(secret), &page[place..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_uid() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    /// Whether a request makes the server ready, and its answer.
    fn asked(server: &mut PageServer, path: &str, headers: &str) -> (bool, String) {
        let mut visitor = TcpStream::connect(server.site.own).unwrap();
        // One that is refused may be closed before.
        let _ = write!(visitor, "GET {path} HTTP/1.1\r\n{headers}\r\n");
        let ready = (0..100).any(|_| server.look());
        let mut answer = String::new();
        let _ = visitor.read_to_string(&mut answer);
        (ready, answer)
    }

    #[test]
    fn the_script_stands_first_in_the_head_and_a_page_with_its_own_stays() {
        let script = script("s");
        let with = |page: &str| with_script(page, "s");
        assert_eq!(with("<html><HEAD x=1><script>a</script>"), format!("<html><HEAD x=1>{script}<script>a</script>"));
        assert_eq!(with("<!DOCTYPE html><header>x</header>"), format!("<!DOCTYPE html>{script}<header>x</header>"));
        assert_eq!(with("text"), format!("{script}text"));
        let own = "<script>onload=()=>fetch('/ready')</script>";
        assert_eq!(with(own), own);
    }

    #[test]
    fn only_a_complete_request_for_ready_counts() {
        let mut server = PageServer::bind(None, own_uid()).unwrap();
        let (own, secret) = (server.site.own, server.site.secret.clone());
        let mut visitor = TcpStream::connect(own).unwrap();
        write!(visitor, "GET /{secret}/ready?1 HTTP/1.1\r\nhost: {own}\r\n").unwrap();
        assert!(!(0..100).any(|_| server.look()));
        visitor.write_all(b"\r\n").unwrap();
        assert!((0..100).any(|_| server.look()));
        let (ready, answer) = asked(&mut server, &format!("/{secret}/"), &format!("Host: {own}\r\n"));
        assert!(!ready && answer.contains(&format!("fetch('/{secret}/ready'")), "{answer}");
    }

    #[test]
    fn who_does_not_know_the_secret_or_comes_by_another_name_gets_no_page_and_makes_nothing_ready() {
        let mut server = PageServer::bind(Some("hello"), own_uid()).unwrap();
        let (own, secret) = (format!("Host: {}\r\n", server.site.own), server.site.secret.clone());
        assert!(server.url().ends_with(&format!("/{secret}/")) && secret.len() == 32);
        let cookie = |value: &str| format!("{own}Cookie: a=b; slowpath={value}\r\n");
        // A page that asks for it by an absolute path has the cookie.
        assert!(asked(&mut server, "/ready", &cookie(&secret)).0);
        let rebound = "Host: attacker.test\r\n".to_owned();
        let inside = format!("/{secret}/ready");
        let refused = [
            ("/ready", own.clone()),
            ("/", own.clone()),
            ("/ready", cookie("0123456789abcdef0123456789abcdef")),
            (inside.as_str(), rebound),
            (inside.as_str(), String::new()),
        ];
        for (path, headers) in refused {
            let (ready, answer) = asked(&mut server, path, &headers);
            assert!(!ready && answer.contains("404") && !answer.contains("hello"), "{path}: {answer}");
        }
    }

    #[test]
    fn a_connection_of_another_user_makes_nothing_ready_though_it_knows_the_secret() {
        if own_uid() == 0 {
            // Root may everything, so another user connects.
            let mut server = PageServer::bind(None, 1).unwrap();
            let url = server.url();
            let script = "import os, sys, urllib.request as u; os.setuid(65534); u.urlopen(sys.argv[1] + 'ready')";
            let mut stranger = std::process::Command::new("/usr/bin/python3")
                .args(["-c", script, &url])
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let status = loop {
                assert!(!server.look());
                if let Some(status) = stranger.try_wait().unwrap() {
                    break status;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            };
            assert!(!status.success());
        } else {
            let mut server = PageServer::bind(None, own_uid() + 1).unwrap();
            let (host, path) = (format!("Host: {}\r\n", server.site.own), format!("/{}/ready", server.site.secret));
            assert_eq!(asked(&mut server, &path, &host), (false, String::new()));
        }
    }

    /// A program of another user's, in Python, which knows where to connect (`c`, `address`) and what to ask for (`request`); and the server
    /// that has to refuse it.
    fn stranger(program: &str) -> (PageServer, std::process::Child) {
        // Root may everything, so another user connects.
        let is_root = own_uid() == 0;
        let server = PageServer::bind(None, if is_root { 1 } else { own_uid() + 1 }).unwrap();
        let begin = "c = s.socket(); host, path = sys.argv[1:]; \
                     address = (host.split(':')[0], int(host.split(':')[1])); \
                     request = f'GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode()";
        let identity = if is_root { "os.setuid(65534)" } else { "pass" };
        let python = std::process::Command::new("/usr/bin/python3")
            .args(["-c", &format!("import os, sys, socket as s\n{identity}\n{begin}\n{program}")])
            .args([server.site.own.to_string(), format!("/{}/ready", server.site.secret)])
            .spawn();
        (server, python.unwrap())
    }

    #[test]
    fn a_connection_of_another_user_that_is_bound_to_the_device_makes_nothing_ready() {
        let bound = "c.setsockopt(s.SOL_SOCKET, s.SO_BINDTODEVICE, b'lo'); c.connect(address); c.sendall(request)\n\
                     try: sys.exit(len(c.recv(100)))\n\
                     except ConnectionResetError: pass";
        let (mut server, mut stranger) = stranger(bound);
        let status = loop {
            assert!(!server.look());
            if let Some(status) = stranger.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert!(status.success(), "{status}");
    }

    #[test]
    fn a_connection_that_another_user_closed_or_reset_before_it_is_looked_at_makes_nothing_ready() {
        for end in ["c.close()", "c.setsockopt(s.SOL_SOCKET, s.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0])); c.close()"]
        {
            let (mut server, mut stranger) = stranger(&format!("c.connect(address); c.sendall(request); {end}"));
            assert!(stranger.wait().unwrap().success());
            assert!(!(0..100).any(|_| server.look()), "{end}");
        }
    }

    #[test]
    fn where_the_kernel_does_not_say_whose_a_connection_is_the_secret_has_to_do() {
        let mut server = PageServer::bind(None, own_uid() + 1).unwrap();
        server.site.users_known = false;
        let (host, secret) = (format!("Host: {}\r\n", server.site.own), server.site.secret.clone());
        assert!(asked(&mut server, &format!("/{secret}/ready"), &host).0);
        assert!(!asked(&mut server, "/ready", &host).0);
    }

    #[test]
    fn who_closes_its_side_after_asking_and_is_the_user_is_served() {
        let mut server = PageServer::bind(None, own_uid()).unwrap();
        let mut visitor = TcpStream::connect(server.site.own).unwrap();
        write!(visitor, "GET /{}/ready HTTP/1.1\r\nHost: {}\r\n\r\n", server.site.secret, server.site.own).unwrap();
        visitor.shutdown(std::net::Shutdown::Write).unwrap();
        assert!((0..100).any(|_| server.look()));
        let mut answer = String::new();
        visitor.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("204"), "{answer}");
    }

    #[test]
    fn connections_that_say_nothing_are_given_up_for_new_ones() {
        let mut server = PageServer::bind(None, own_uid()).unwrap();
        let silent: Vec<_> = (0..2 * MOST_VISITS)
            .map(|_| {
                let stream = TcpStream::connect(server.site.own).unwrap();
                server.look();
                stream
            })
            .collect();
        assert_eq!(server.visits.len(), MOST_VISITS);
        let (host, path) = (format!("Host: {}\r\n", server.site.own), format!("/{}/ready", server.site.secret));
        assert!(asked(&mut server, &path, &host).0);
        drop(silent);
    }
}

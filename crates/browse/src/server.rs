//! Local pages on loopback. Every page has an address of its own (127.77.x.y), so that a browser that keeps sites apart takes
//! each for a site of its own and gives it a process.
//!
//! Everybody on the machine reaches loopback, and so does every web page that a browser here shows. So a page is served only to a
//! connection of the user who serves it, that asks for this very address (no other name that leads here), and knows the secret of this
//! server: it stands in the page's URL, and in a cookie for what the page asks for by absolute paths.

use crate::beneath::{Site, SiteEntry, media_type};
use crate::pages::{Page, Source};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, HeaderValue, LOCATION, SET_COOKIE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use slowpath_process::loopback::{are_users_known, secret, user_of};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tower_http::services::ServeFile;
use tower_http::services::fs::ServeFileSystemResponseBody as Body;

/// Name of the cookie that holds the secret.
const COOKIE_NAME: &str = "slowpath";
/// Connections to one address that are open at once; a browser has six. For one more the oldest is given up, whatever it waits for. Not of all
/// addresses together: a browser keeps some to each page that it has visited.
const MOST_VISITS: usize = 64;
/// Pause after a connection that could not be accepted: without a free descriptor the next attempt fails at once, too.
const PAUSE: Duration = Duration::from_millis(5);

/// Serves pages until it is dropped.
pub struct PageServer {
    urls: Vec<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is served at an address.
struct Served {
    site: Site,
    /// The address itself, as a browser asks for it.
    host: String,
    own: SocketAddrV4,
    secret: String,
    user: u32,
    /// Whether the kernel says whose a connection is; where it does not, the secret has to do.
    users_known: bool,
}

/// Address of the page with this number.
fn address(number: usize) -> Ipv4Addr {
    let [high, low] = u16::try_from(number + 1).unwrap_or(u16::MAX).to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

impl PageServer {
    /// Begins to serve the local ones of `pages`, to this process's user.
    ///
    /// # Errors
    /// A directory cannot be opened, an address not be bound, or no thread started.
    pub fn start(pages: &[Page]) -> io::Result<Self> {
        // SAFETY: takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        Self::start_for(pages, user)
    }

    fn start_for(pages: &[Page], user: u32) -> io::Result<Self> {
        let mut urls = Vec::new();
        let mut listeners = Vec::new();
        let is_any_served = pages.iter().any(|page| matches!(page.source, Source::Served { .. }));
        let users_known = is_any_served && are_users_known()?;
        for (number, page) in pages.iter().enumerate() {
            match &page.source {
                Source::Url(url) => urls.push(url.clone()),
                Source::Served { directory, file } => {
                    let own = SocketAddrV4::new(address(number), 0);
                    let listener = TcpListener::bind(own)?;
                    listener.set_nonblocking(true)?;
                    let own = SocketAddrV4::new(*own.ip(), listener.local_addr()?.port());
                    let (host, secret) = (own.to_string(), secret()?);
                    // The name of the index is left out: pages then have the address that users see.
                    let path = if file == "index.html" { String::new() } else { escaped(file) };
                    urls.push(format!("http://{host}/{secret}/{path}"));
                    let site = Site::open(directory)?;
                    listeners.push((listener, Served { site, host, own, secret, user, users_known }));
                }
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("pages".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (listener, served) in listeners {
                    tokio::spawn(serve(listener, Arc::new(served)));
                }
                // Also when the sender is gone.
                let _ = stopped.await;
            });
        })?;
        Ok(Self { urls, stop: Some(stop), thread: Some(thread) })
    }

    /// Addresses of the pages, in their order.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, served: Arc<Served>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut visits: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // One that was given up before it was accepted, or no descriptor is left.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // A stranger's takes neither a task nor a descriptor: it is closed here.
        if !served.is_users(peer) {
            continue;
        }
        visits.retain(|visit| !visit.is_finished());
        if visits.len() == MOST_VISITS
            && let Some(oldest) = visits.pop_front()
        {
            oldest.abort();
        }
        let served = Arc::clone(&served);
        let visit = tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&served), request));
            let connection = auto::Builder::new(TokioExecutor::new());
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
        visits.push_back(visit.abort_handle());
    }
}

impl Served {
    /// Whether a connection is one of the user's. One that was closed before it was accepted is nobody's.
    fn is_users(&self, peer: SocketAddr) -> bool {
        match peer {
            SocketAddr::V4(peer) => !self.users_known || user_of(peer, self.own).is_ok_and(|user| user == self.user),
            SocketAddr::V6(_) => false,
        }
    }

    /// The path below the directory that a request may have.
    fn path<'a, B>(&self, request: &'a Request<B>) -> Option<&'a str> {
        let is_here = request.headers().get(HOST).is_some_and(|host| host.as_bytes() == self.host.as_bytes());
        let path = request.uri().path().strip_prefix('/').filter(|_| is_here)?;
        let inside = path.strip_prefix(self.secret.as_str()).and_then(|rest| rest.strip_prefix('/'));
        inside.or_else(|| self.is_known(request).then_some(path))
    }

    /// Whether a request has the cookie.
    fn is_known<B>(&self, request: &Request<B>) -> bool {
        let cookies = request.headers().get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut all = cookies.flat_map(|value| value.split(';')).filter_map(|one| one.trim().split_once('='));
        all.any(|(name, value)| name == COOKIE_NAME && value == self.secret)
    }
}

async fn answer(served: Arc<Served>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    // Who does not know the secret does not get to know which files there are.
    let Some(found) = served.path(&request).and_then(|path| served.site.find(path)) else {
        return Ok(empty(StatusCode::NOT_FOUND));
    };
    let (file, name) = match found {
        SiteEntry::File(file, name) => (file, name),
        SiteEntry::Directory => return Ok(below(request.uri().path())),
    };
    // The very file that was opened, with what its service knows of ranges.
    let mut service = ServeFile::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(mut response) = service.try_call(request).await else { return Ok(empty(StatusCode::NOT_FOUND)) };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(&name)));
    // Every visit loads everything: what is measured is a page, not a cache.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", served.secret);
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}

/// Sends to where a directory's page is.
fn below(path: &str) -> Response<Body> {
    let mut response = empty(StatusCode::TEMPORARY_REDIRECT);
    match HeaderValue::try_from(format!("{path}/")) {
        Ok(there) => {
            response.headers_mut().insert(LOCATION, there);
            response
        }
        Err(_) => empty(StatusCode::NOT_FOUND),
    }
}

/// A file name as a path of a URL.
fn escaped(name: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::os::unix::fs::symlink;
    use std::os::unix::thread::JoinHandleExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    fn host(url: &str) -> &str {
        url.trim_start_matches("http://").split('/').next().unwrap()
    }

    fn asked(url: &str, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(host(url)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// What a browser that has this URL gets for a path.
    fn get(url: &str, path: &str) -> String {
        asked(url, path, &format!("Host: {}\r\n", host(url)))
    }

    /// The path that holds the secret.
    fn inside(url: &str) -> String {
        let (_, path) = url.trim_start_matches("http://").split_once('/').unwrap();
        format!("/{}", path.split('/').next().unwrap())
    }

    fn page(name: &str, directory: PathBuf, file: &str) -> Page {
        Page { name: name.to_owned(), source: Source::Served { directory, file: file.to_owned() } }
    }

    fn site() -> tempfile::TempDir {
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(site.path().join("a/sub")).unwrap();
        std::fs::write(site.path().join("a/index.html"), "hello").unwrap();
        std::fs::write(site.path().join("a/sub/index.html"), "below").unwrap();
        std::fs::write(site.path().join("a/s.css"), "p {}").unwrap();
        std::fs::write(site.path().join("x y.html"), "other").unwrap();
        std::fs::write(site.path().join("secret"), "the secret itself").unwrap();
        symlink("../secret", site.path().join("a/link")).unwrap();
        site
    }

    #[test]
    fn pages_are_served_from_addresses_of_their_own_and_nothing_beside_them_is() {
        let site = site();
        let web = Page { name: "web".to_owned(), source: Source::Url("http://example.test/".to_owned()) };
        let pages =
            [page("a", site.path().join("a"), "index.html"), web, page("b", site.path().to_owned(), "x y.html")];
        let server = PageServer::start(&pages).unwrap();
        let urls = server.urls().to_vec();
        assert!(urls[0].starts_with("http://127.77.0.1:") && urls[2].starts_with("http://127.77.0.3:"), "{urls:?}");
        assert_eq!(urls[1], "http://example.test/");
        let at = inside(&urls[0]);
        let page = get(&urls[0], &format!("{at}/"));
        assert!(page.contains("200 OK") && page.contains("no-store") && page.ends_with("hello"), "{page}");
        assert!(page.contains("text/html") && get(&urls[0], &format!("{at}/s.css")).contains("text/css"));
        assert!(get(&urls[0], &format!("{at}/sub")).contains(&format!("location: {at}/sub/")));
        assert!(get(&urls[2], &format!("{}/x%20y.html", inside(&urls[2]))).ends_with("other"));
        let part = asked(&urls[0], &format!("{at}/"), &format!("Host: {}\r\nRange: bytes=1-2\r\n", host(&urls[0])));
        assert!(part.contains("206 Partial") && part.ends_with("el"), "{part}");
        for outside in ["/../secret", "/..%2fsecret", "/%2e%2e/secret", "/nothing", "/link"] {
            let answer = get(&urls[0], &format!("{at}{outside}"));
            assert!(answer.contains("404") && !answer.contains("itself"), "{outside}: {answer}");
        }
        let address = host(&urls[0]).to_owned();
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn who_does_not_know_the_secret_or_comes_by_another_name_gets_nothing() {
        let site = site();
        let server = PageServer::start(&[page("a", site.path().join("a"), "index.html")]).unwrap();
        let url = &server.urls()[0];
        let (own, at) = (format!("Host: {}\r\n", host(url)), inside(url));
        assert!(at.len() > 32, "{at}");
        let cookie = |value: &str| format!("{own}Cookie: a=b; slowpath={value}\r\n");
        // A page asks for what belongs to it by an absolute path too.
        assert!(asked(url, "/s.css", &cookie(&at[1..])).ends_with("p {}"));
        let rebound = format!("Host: attacker.test\r\nCookie: slowpath={}\r\n", &at[1..]);
        let refused = [
            ("/", own.clone()),
            ("/index.html", own.clone()),
            ("/s.css", cookie("0123456789abcdef0123456789abcdef")),
            ("/s.css", rebound.clone()),
            (at.as_str(), rebound),
        ];
        for (path, headers) in refused {
            let answer = asked(url, path, &headers);
            assert!(
                answer.contains("404") && !answer.contains("hello") && !answer.contains("p {}"),
                "{path}: {answer}"
            );
        }
    }

    #[test]
    fn a_connection_of_another_user_gets_nothing_though_it_knows_the_secret() {
        let site = site();
        // SAFETY: takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        let pages = [page("a", site.path().join("a"), "index.html")];
        let server = PageServer::start_for(&pages, own + 1).unwrap();
        let url = &server.urls()[0];
        let mut stream = TcpStream::connect(host(url)).unwrap();
        // It may be closed before all is written.
        let _ = write!(stream, "GET {}/ HTTP/1.1\r\nHost: {}\r\n\r\n", inside(url), host(url));
        assert!(is_closed(&stream, Duration::from_secs(10)));
    }

    /// Whether the server closes a connection within this time, without a word.
    fn is_closed(mut stream: &TcpStream, within: Duration) -> bool {
        stream.set_read_timeout(Some(within)).unwrap();
        match stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// CPU time that the server has taken.
    fn cpu_time(server: &PageServer) -> Duration {
        let thread = server.thread.as_ref().unwrap().as_pthread_t();
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the thread has not been joined, and both results are written to places of ours.
        let done = unsafe {
            libc::pthread_getcpuclockid(thread, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
        };
        assert!(done);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// What it takes of a second, with what happens meanwhile.
    fn of_a_second(server: &PageServer) -> Duration {
        let before = cpu_time(server);
        std::thread::sleep(Duration::from_secs(1));
        cpu_time(server) - before
    }

    #[test]
    fn silent_connections_of_another_user_are_closed_at_once_and_take_no_time_after() {
        let site = site();
        // SAFETY: takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        let server = PageServer::start_for(&[page("a", site.path().join("a"), "index.html")], own + 1).unwrap();
        let address = host(&server.urls()[0]).to_owned();
        let strangers: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
        let held = strangers.iter().position(|stranger| !is_closed(stranger, Duration::from_secs(10)));
        assert_eq!(held, None);
        let took = of_a_second(&server);
        assert!(took < Duration::from_millis(100), "{took:?}");
    }

    #[test]
    fn the_oldest_silent_connection_of_the_user_is_given_up_for_a_new_one() {
        let site = site();
        let server = PageServer::start(&[page("a", site.path().join("a"), "index.html")]).unwrap();
        let url = &server.urls()[0];
        let silent: Vec<TcpStream> = (0..MOST_VISITS + 8).map(|_| TcpStream::connect(host(url)).unwrap()).collect();
        assert!(get(url, &format!("{}/", inside(url))).ends_with("hello"));
        assert!(silent[..9].iter().all(|one| is_closed(one, Duration::from_secs(10))));
        assert!(silent[9..].iter().all(|one| !is_closed(one, Duration::from_millis(1))));
    }

    /// Says that a process runs one test alone: a limit is one of a whole process, and other tests need descriptors.
    const ALONE: &str = "SLOWPATH_BROWSE_ALONE";

    /// How many descriptors this process may have; returns how many it might before.
    fn limit_descriptors(most: libc::rlim_t) -> libc::rlim_t {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel writes to a structure of ours.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
        let before = std::mem::replace(&mut limit.rlim_cur, most);
        // SAFETY: the kernel reads a structure of ours.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
        before
    }

    #[test]
    fn a_server_without_a_descriptor_rests_and_serves_as_soon_as_it_has_one() {
        if std::env::var_os(ALONE).is_none() {
            let name = "server::tests::a_server_without_a_descriptor_rests_and_serves_as_soon_as_it_has_one";
            let mut test = Command::new(std::env::current_exe().unwrap());
            let done = test.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let site = site();
        let server = PageServer::start(&[page("a", site.path().join("a"), "index.html")]).unwrap();
        let url = &server.urls()[0];
        let script = "import socket, sys; sys.stdin.readline(); held = socket.create_connection((sys.argv[1], int(sys.argv[2]))); \
                      print('connected', flush=True); sys.stdin.readline()";
        let (address, port) = host(url).split_once(':').unwrap();
        let mut visitor = Command::new("/usr/bin/python3")
            .args(["-c", script, address, port])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The standard streams are all that is left: nothing is accepted.
        let before = limit_descriptors(3);
        visitor.stdin.as_mut().unwrap().write_all(b"now\n").unwrap();
        let mut line = String::new();
        BufReader::new(visitor.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "connected\n");
        let took = of_a_second(&server);
        limit_descriptors(before);
        assert!(took < Duration::from_millis(200), "{took:?}");
        assert!(get(url, &format!("{}/", inside(url))).ends_with("hello"));
        drop(visitor.stdin.take());
        assert!(visitor.wait().unwrap().success());
    }

    /// The answer to a client that is bound to the device, which takes no privilege. One that is closed at once has none.
    fn asked_over_the_device(url: &str) -> String {
        let script = "import socket as s, sys\n\
                      c = s.socket(); c.settimeout(10); c.setsockopt(s.SOL_SOCKET, s.SO_BINDTODEVICE, b'lo')\n\
                      c.connect((sys.argv[1], int(sys.argv[2])))\n\
                      try: c.sendall(sys.argv[3].encode()); print(b''.join(iter(lambda: c.recv(4096), b'')).decode())\n\
                      except OSError: pass";
        let (address, port) = host(url).split_once(':').unwrap();
        let request = format!("GET {}/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", inside(url), host(url));
        let done =
            std::process::Command::new("/usr/bin/python3").args(["-c", script, address, port, &request]).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn binding_to_the_device_makes_a_stranger_no_visitor_and_keeps_no_visitor_out() {
        let site = site();
        // SAFETY: takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        let pages = [page("a", site.path().join("a"), "index.html")];
        for user in [own, own + 1] {
            let server = PageServer::start_for(&pages, user).unwrap();
            let answer = asked_over_the_device(&server.urls()[0]);
            assert_eq!(answer.contains("200 OK") && answer.contains("hello"), user == own, "{answer}");
            assert!(user == own || answer.trim().is_empty(), "{answer}");
        }
    }
}

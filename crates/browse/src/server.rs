//! Local pages on loopback. Every page has an address of its own (127.77.x.y), so that a browser that keeps sites apart takes
//! each for a site of its own and gives it a process.

use crate::pages::{Page, Source};
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeader;

/// Serves pages until it is dropped.
pub struct PageServer {
    urls: Vec<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Address of the page with this number.
fn address(number: usize) -> Ipv4Addr {
    let [high, low] = u16::try_from(number + 1).unwrap_or(u16::MAX).to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

impl PageServer {
    /// Begins to serve the local ones of `pages`.
    ///
    /// # Errors
    /// An address cannot be bound, or no thread started.
    pub fn start(pages: &[Page]) -> io::Result<Self> {
        let mut urls = Vec::new();
        let mut listeners = Vec::new();
        for (number, page) in pages.iter().enumerate() {
            match &page.source {
                Source::Url(url) => urls.push(url.clone()),
                Source::Served { directory, file } => {
                    let listener = TcpListener::bind(SocketAddr::from((address(number), 0)))?;
                    listener.set_nonblocking(true)?;
                    // The name of the index is left out: pages then have the address that users see.
                    let path = if file == "index.html" { String::new() } else { escaped(file) };
                    urls.push(format!("http://{}/{path}", listener.local_addr()?));
                    listeners.push((listener, directory.clone()));
                }
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("pages".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (listener, directory) in listeners {
                    tokio::spawn(serve(listener, directory));
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

async fn serve(listener: TcpListener, directory: PathBuf) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        // A connection that was given up before it was taken is the browser's affair.
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Every visit loads everything: what is measured is a page, not a cache.
        let files = ServeDir::new(&directory);
        let service = SetResponseHeader::overriding(files, CACHE_CONTROL, HeaderValue::from_static("no-store"));
        tokio::spawn(async move {
            let connection = auto::Builder::new(TokioExecutor::new());
            let _ = connection.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
        });
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
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn get(url: &str, path: &str) -> String {
        let host = url.trim_start_matches("http://").split('/').next().unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn pages_are_served_from_addresses_of_their_own_and_nothing_beside_them_is() {
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir(site.path().join("a")).unwrap();
        std::fs::write(site.path().join("a/index.html"), "hello").unwrap();
        std::fs::write(site.path().join("a/s.css"), "p {}").unwrap();
        std::fs::write(site.path().join("x y.html"), "other").unwrap();
        std::fs::write(site.path().join("secret"), "secret").unwrap();
        let page = |name: &str, directory: PathBuf, file: &str| Page {
            name: name.to_owned(),
            source: Source::Served { directory, file: file.to_owned() },
        };
        let web = Page { name: "web".to_owned(), source: Source::Url("http://example.test/".to_owned()) };
        let pages =
            [page("a", site.path().join("a"), "index.html"), web, page("b", site.path().to_owned(), "x y.html")];
        let server = PageServer::start(&pages).unwrap();
        let urls = server.urls().to_vec();
        assert!(urls[0].starts_with("http://127.77.0.1:") && urls[2].starts_with("http://127.77.0.3:"), "{urls:?}");
        assert_eq!(urls[1], "http://example.test/");
        let page = get(&urls[0], "/");
        assert!(page.contains("200 OK") && page.contains("no-store") && page.ends_with("hello"), "{page}");
        assert!(get(&urls[0], "/s.css").contains("text/css"));
        assert!(get(&urls[2], "/x%20y.html").ends_with("other") && urls[2].ends_with("/x%20y.html"));
        for outside in ["/../secret", "/..%2fsecret", "/%2e%2e/secret", "/nothing"] {
            assert!(
                !get(&urls[0], outside).contains("secret\r\n\r\nsecret") && get(&urls[0], outside).contains("404"),
                "{outside}"
            );
        }
        drop(server);
        let host = urls[0].trim_start_matches("http://").trim_end_matches('/').to_owned();
        assert!(TcpStream::connect(host).is_err());
    }
}

//! Files of a page's directory: opened beneath it and nowhere else, whatever its links say.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A directory that files are served from.
pub(crate) struct Site(OwnedFd);

/// What a path of a URL names.
pub(crate) enum SiteEntry {
    /// A regular file, and what it is called.
    File(File, String),
    /// A directory, whose pages stand below a path that ends with a slash.
    Directory,
}

impl Site {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
        Ok(Self(File::options().read(true).custom_flags(flags).open(directory)?.into()))
    }

    /// What the escaped path of a URL, without its first slash, names here. Nothing hidden (a name that begins with a dot), nothing
    /// behind a symbolic link, nothing on which an open waits.
    pub(crate) fn find(&self, path: &str) -> Option<SiteEntry> {
        let mut path = unescaped(path)?;
        if path.is_empty() || path.ends_with('/') {
            path.push_str("index.html");
        }
        if path.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
            return None;
        }
        let file = File::from(beneath(&self.0, &path).ok()?);
        let metadata = file.metadata().ok()?;
        if metadata.is_dir() {
            return Some(SiteEntry::Directory);
        }
        metadata.is_file().then_some(SiteEntry::File(file, path))
    }
}

/// Opens for reading; see openat2(2). Other mounts below the directory belong to the site, which `slowpath_process::open_beneath` would refuse:
/// parts of a site are volumes of their own in containers, and a page that lacks them without a word would be measured as another one. Who
/// can mount there could as well write there. openat2 asks to try again only about `..`, and no path here has one.
fn beneath(directory: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(directory, path, flags, Mode::empty(), resolve)?)
}

/// The bytes that `%xx` stand for; `None` for what is no text then.
fn unescaped(path: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok().filter(|text| !text.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|byte| *byte != 0)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Type of a file by its name, as browsers want it (<https://developer.mozilla.org/docs/Web/HTTP/MIME_types/Common_types>).
pub(crate) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "xhtml" => "application/xhtml+xml",
        "xml" => "text/xml",
        "txt" | "md" => "text/plain",
        "csv" => "text/csv",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "apng" => "image/apng",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "wav" => "audio/wav",
        "vtt" => "text/vtt",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_of_the_directory_are_found() {
        let place = tempfile::tempdir().unwrap();
        let site = place.path().join("site");
        std::fs::create_dir_all(site.join("sub")).unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        for (name, text) in [("index.html", "i"), ("a b.css", "ab"), ("sub/index.html", "s"), (".hidden", "h")] {
            std::fs::write(site.join(name), text).unwrap();
        }
        symlink("../secret", site.join("link")).unwrap();
        symlink("..", site.join("up")).unwrap();
        symlink("a b.css", site.join("within")).unwrap();
        nix_fifo(&site.join("fifo"));
        let served = Site::open(&site).unwrap();
        let text = |path: &str| match served.find(path) {
            Some(SiteEntry::File(mut file, _)) => {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                Some(text)
            }
            Some(SiteEntry::Directory) => Some("a directory".to_owned()),
            None => None,
        };
        let found = [("", "i"), ("a%20b.css", "ab"), ("sub", "a directory"), ("sub/", "s"), ("sub/index.html", "s")];
        for (path, expected) in found {
            assert_eq!(text(path).as_deref(), Some(expected), "{path}");
        }
        for path in [
            "link",
            "up/secret",
            "within",
            "fifo",
            ".hidden",
            "%2ehidden",
            "../secret",
            "..%2fsecret",
            "%2e%2e/secret",
            "/etc/passwd",
            "//etc/passwd",
            "sub//index.html",
            "nothing",
            "index.html%00",
            "%",
            "%+1",
            "%ff",
            "sub/./index.html",
        ] {
            assert_eq!(text(path), None, "{path}");
        }
    }

    fn nix_fifo(path: &Path) {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn types_go_by_the_last_extension() {
        assert_eq!(media_type("a.b.CSS"), "text/css");
        assert_eq!((media_type("index.html"), media_type("x")), ("text/html", "application/octet-stream"));
    }
}

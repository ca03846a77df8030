//! Which pages a scenario visits.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A page of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its name, unique in the scenario.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a page comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Files that are served on loopback: a directory, and the page in it.
    Served {
        /// Everything in it can be fetched.
        directory: PathBuf,
        /// Name of the page's own file.
        file: String,
    },
    /// Fetched from wherever it is.
    Url(String),
}

/// Why a list of pages cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// It cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line names nothing that can be visited.
    #[error("{list}, line {line}: {problem}")]
    Line {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// There is no page in it.
    #[error(
        "there is no page in {0}: expected directories with an index.html, files *.html, or a list with a URL or a path a line"
    )]
    Empty(PathBuf),
    /// Two pages have one name.
    #[error("two pages are called {0:?}")]
    SameName(String),
}

/// A list that is longer than this is none.
const LIST_LIMIT: u64 = 1 << 20;

/// Reads the pages: of a directory (its sub-directories with an `index.html`, and its `*.html` files, by name), or of a list
/// with one page a line: a URL or a path relative to the list, with a name and a blank before it where one is wanted; `#`
/// begins a comment.
///
/// # Errors
/// Nothing can be visited, or not all of what is named.
pub fn read(path: &Path) -> Result<Vec<Page>, PagesError> {
    let unreadable = |source| PagesError::Unreadable { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    let pages = if metadata.is_dir() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path).map_err(unreadable)?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().filter_map(|entry| served(entry, None)).collect()
    } else {
        if metadata.len() > LIST_LIMIT {
            return Err(unreadable(std::io::Error::other("a list of pages is not longer than 1 MiB")));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        of_list(path, &text)?
    };
    if pages.is_empty() {
        return Err(PagesError::Empty(path.to_owned()));
    }
    let mut names = std::collections::BTreeSet::new();
    match pages.iter().find(|page| !names.insert(page.name.as_str())) {
        Some(twice) => Err(PagesError::SameName(twice.name.clone())),
        None => Ok(pages),
    }
}

pub(crate) fn of_list(list: &Path, text: &str) -> Result<Vec<Page>, PagesError> {
    let directory = list.parent().unwrap_or(Path::new("."));
    let mut pages = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, place) = match line.split_once(char::is_whitespace) {
            Some((name, place)) => (Some(name), place.trim()),
            None => (None, line),
        };
        let page = if place.contains("://") {
            is_web(place)
                .then(|| Page { name: name.unwrap_or(place).to_owned(), source: Source::Url(place.to_owned()) })
        } else {
            served(&directory.join(place), name)
        };
        let problem =
            || format!("{place:?} is neither an http(s) URL, an HTML file, nor a directory with an index.html");
        pages.push(page.ok_or_else(|| PagesError::Line {
            list: list.to_owned(),
            line: number + 1,
            problem: problem(),
        })?);
    }
    Ok(pages)
}

fn is_web(url: &str) -> bool {
    let is_printable = !url.chars().any(|character| character.is_control() || character.is_whitespace());
    is_printable && (url.starts_with("http://") || url.starts_with("https://"))
}

/// A directory with an index, or an HTML file.
fn served(path: &Path, name: Option<&str>) -> Option<Page> {
    let own = name.map(str::to_owned).or_else(|| Some(path.file_name()?.to_str()?.to_owned()))?;
    if path.join("index.html").is_file() {
        let source = Source::Served { directory: path.to_owned(), file: "index.html".to_owned() };
        return Some(Page { name: own, source });
    }
    let is_html = path.extension().is_some_and(|extension| extension == "html" || extension == "htm");
    if !(is_html && path.is_file()) {
        return None;
    }
    let (directory, file) = (path.parent()?.to_owned(), path.file_name()?.to_str()?.to_owned());
    Some(Page { name: own, source: Source::Served { directory, file } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> tempfile::TempDir {
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(site.path().join("b")).unwrap();
        std::fs::write(site.path().join("b/index.html"), "b").unwrap();
        std::fs::write(site.path().join("a.html"), "a").unwrap();
        std::fs::write(site.path().join("notes.txt"), "n").unwrap();
        site
    }

    #[test]
    fn a_directory_gives_its_pages_by_name() {
        let site = site();
        let pages = read(site.path()).unwrap();
        assert_eq!(pages.iter().map(|page| page.name.as_str()).collect::<Vec<_>>(), ["a.html", "b"]);
        assert_eq!(pages[1].source, Source::Served { directory: site.path().join("b"), file: "index.html".into() });
        assert!(matches!(read(&site.path().join("missing")), Err(PagesError::Unreadable { .. })));
        std::fs::remove_dir_all(site.path().join("b")).unwrap();
        std::fs::remove_file(site.path().join("a.html")).unwrap();
        assert!(matches!(read(site.path()), Err(PagesError::Empty(_))));
    }

    #[test]
    fn a_list_names_urls_and_paths() {
        let site = site();
        let list = site.path().join("list");
        std::fs::write(&list, "# comment\nhome https://example.org/x\n\nb\nlocal a.html\nhttp://h/\n").unwrap();
        let names: Vec<String> = read(&list).unwrap().into_iter().map(|page| page.name).collect();
        assert_eq!(names, ["home", "b", "local", "http://h/"]);
        for (text, wrong) in [("file:///etc/passwd\n", "line 1"), ("b\nnotes.txt\n", "line 2"), ("b\nb\n", "two pages")]
        {
            std::fs::write(&list, text).unwrap();
            assert!(read(&list).unwrap_err().to_string().contains(wrong), "{text}");
        }
    }
}

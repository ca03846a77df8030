//! Lines of this repository's documents, and subjects of its commits.

use slowpath_house::{files_below, prose, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Documents at the root and beside code.
const PAGES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "fleet/README.md",
    "fuzz/README.md",
    "report-ui/README.md",
];

/// The last commit of which nobody asked for a short subject, and when it was made.
const LAST_UNCHECKED: (&str, &str) = ("fea8bd8c0706a155501bca4c8274b1e97cda0bc0", "2026-11-23T03:43:43+00:00");

#[test]
fn lines_of_documents_are_at_most_120_characters() {
    let docs = Path::new("docs");
    let below = files_below(&root().join(docs)).into_iter().map(|path| docs.join(path));
    let pages = below.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    // Measurements are the output of programs, kept as it was.
    let pages: Vec<PathBuf> =
        pages.filter(|path| !path.starts_with("docs/measurements")).chain(PAGES.iter().map(PathBuf::from)).collect();
    assert!(pages.len() > 20, "only {} pages found: the search is broken", pages.len());
    let mut wrong = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let long = prose::long_lines(&text).into_iter();
        wrong.extend(long.map(|(line, length)| format!("{}:{line}: {length} characters", page.display())));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn git(arguments: &[&str]) -> Result<String, String> {
    // CI may run as another user than the one the clone belongs to.
    let command = Command::new("git").args(["-c", "safe.directory=*"]).args(arguments).current_dir(root()).output();
    let output = command.map_err(|error| format!("git cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[test]
fn subjects_of_commits_are_short_and_end_without_a_full_stop() {
    if let Err(why) = git(&["rev-parse", "--verify", "--quiet", "HEAD"]) {
        println!("skipped: no history of commits here {why}");
        return;
    }
    let (last, made) = LAST_UNCHECKED;
    // A shallow clone ends before it: then all that is there and is younger.
    let is_here = git(&["cat-file", "-e", &format!("{last}^{{commit}}")]).is_ok();
    let range = if is_here { format!("{last}..HEAD") } else { "HEAD".to_owned() };
    let since = format!("--since={made}");
    let log = git(&["log", "--no-merges", "--format=%h%x09%s", &since, &range]).unwrap();
    let wrong: Vec<String> = log
        .lines()
        .filter_map(|line| {
            let (commit, subject) = line.split_once('\t')?;
            Some(format!("{commit} {subject}: {}", prose::subject_problem(subject)?))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

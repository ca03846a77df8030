//! Resource limits of a process (getrlimit(2)).

use crate::factor::{Factor, Known, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::subject::Subject;

/// The factor.
pub const LIMITS: Factor =
    Factor { name: "limits", title: "resource limits", scope: Scope::Process, moves: false, read, known };

fn read(subject: &Subject<'_>) -> Reading {
    let parsed = subject.file("limits").map(|text| Value::table(parts(&text)));
    Reading::of(parsed, "this kernel does not tell it")
}

/// Name and soft limit, and the hard one where it is another. Columns are as wide as the heading says
/// (fs/proc/base.c, `proc_pid_limits`).
fn parts(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let (Some(soft_at), Some(hard_at)) = (heading.find("Soft Limit"), heading.find("Hard Limit")) else {
        return Vec::new();
    };
    let part = |line: &str| {
        let name = line.get(..soft_at)?.trim().trim_start_matches("Max ").replace(' ', "_");
        let soft = line.get(soft_at..hard_at)?.trim();
        let hard = line.get(hard_at..)?.split_whitespace().next()?;
        Some((name, if soft == hard { soft.to_owned() } else { format!("{soft} of {hard}") }))
    };
    lines.filter_map(part).collect()
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "a stack limit moves where memory is mapped, and `unlimited` turns the layout round; few files or little locked memory make \
         programs that ask for more take another way",
        "getrlimit(2); arch/x86/mm/mmap.c, mmap_is_legacy",
    )
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn limits_have_their_soft_and_where_it_differs_their_hard_value() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max stack size            8388608              unlimited            bytes     \n\
                    Max nice priority         0                    0                    \n";
        let expected = [("stack_size", "8388608 of unlimited"), ("nice_priority", "0")];
        assert_eq!(parts(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(parts("").is_empty() && parts("nonsense\nmore").is_empty());
    }
}

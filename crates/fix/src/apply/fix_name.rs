//! How files name the fix that they keep: in a comment, and in their own name.

use crate::plan::FixPlan;

/// A line of a comment: who wrote the file, for which fix, and how it is taken away.
pub(super) fn comments(plan: &FixPlan) -> String {
    let line = |text: &str| -> String {
        let shown = text.chars().map(|c| if slowpath_tables::is_dangerous(c) { ' ' } else { c });
        shown.take(160).collect()
    };
    format!(
        "# Written by `slowpath fix apply` for the fix {}: {}\n# `slowpath fix undo` takes it back.\n",
        line(&plan.name),
        line(&plan.title)
    )
}

/// A part of a file's name for a fix.
pub fn file_part(name: &str) -> String {
    let shown = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    shown.take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::plan;
    use super::*;
    use crate::treatment::Treatment;

    #[test]
    fn a_title_of_several_lines_stays_in_its_comment() {
        let written = comments(&plan(Treatment::None));
        assert!(written.lines().all(|line| line.starts_with("# ")), "{written}");
    }

    #[test]
    fn a_name_of_a_fix_is_no_path() {
        assert_eq!(file_part("../reuse_buffer 2"), "---reuse_buffer-2");
    }
}

//! Comments of types, which schemas carry as descriptions, as sentences for readers.

/// A comment without line ends, and without the brackets of links to code.
pub(crate) fn plain(comment: &str) -> String {
    comment.replace("[`", "`").replace("`]", "`").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first sentence of a plain comment as a title, and what follows it.
pub(crate) fn title_and_rest(comment: &str) -> (String, &str) {
    let (sentence, rest) = comment.split_once(". ").unwrap_or((comment.trim_end_matches('.'), ""));
    let mut letters = sentence.chars();
    let title = letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect());
    (title, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_sentence_and_begins_small() {
        for (comment, title, rest) in [
            ("What it prints: a file.txt, and more.", "what it prints: a file.txt, and more", ""),
            ("`evidence.json`, which it writes. Twice: so.", "`evidence.json`, which it writes", "Twice: so."),
            ("", "", ""),
        ] {
            assert_eq!(title_and_rest(comment), (title.to_owned(), rest));
        }
    }

    #[test]
    fn a_plain_comment_has_no_line_ends_and_no_brackets_of_links() {
        assert_eq!(plain("Points of\ntime;  [`Clock`] maps them."), "Points of time; `Clock` maps them.");
    }
}

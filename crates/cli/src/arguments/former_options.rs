//! Options that had another name in the version before: each is an alias of today's for one version.

use super::Arguments;
use clap::{CommandFactory, Parser};

#[test]
fn an_option_of_the_version_before_is_still_taken_and_not_shown() {
    for (command, former, now, value) in [
        ("record -o d -- ls", "--waits", "--off-cpu", ""),
        ("record -o d -- ls", "--first-waits", "--child-startup", ""),
        ("record -o d -- ls", "--cpu", "--sample", "97"),
        ("record -o d -- ls", "-F", "--sample", "97"),
        ("analyze d", "--needed", "--training", "t"),
        ("export d --to collapsed", "--what", "--weight", "faults"),
        ("launch -- ls", "--detect", "--min-effect", "3%"),
        ("launch -- ls", "--runs", "--blocks", "9"),
        ("launch -- ls", "--max-runs", "--max-blocks", "9"),
        ("launch ladder --base ls --add a=-l", "--runs", "--blocks", "9"),
        ("launch selftest -- ls", "--runs", "--blocks", "9"),
        ("launch scenario pages --browser b", "--detect", "--min-effect", "3%"),
        ("diagnose -- ls", "--runs", "--blocks", "9"),
    ] {
        let mut words: Vec<&str> = command.split(' ').collect();
        let before = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let parsed = |option: &str| {
            let mut line = vec!["slowpath"];
            line.extend(&words[..before]);
            line.extend([option, value].iter().filter(|word| !word.is_empty()));
            line.extend(&words[before..]);
            Arguments::try_parse_from(line).map(|parsed| format!("{parsed:?}")).map_err(|error| error.to_string())
        };
        assert_eq!(parsed(former), Ok(parsed(now).unwrap()), "{command} {former}");
        words.truncate(before);
        let is_shown = |option: &str| {
            let mut root = Arguments::command();
            root.build();
            let (name, further) = (words[0], words.get(1).copied().unwrap_or_default());
            let of = root.find_subcommand_mut(name).unwrap();
            let has_forms = of.find_subcommand(further).is_some();
            let of = if has_forms { of.find_subcommand_mut(further).unwrap() } else { of };
            of.render_long_help().to_string().split_whitespace().any(|word| word.trim_end_matches(',') == option)
        };
        assert_eq!((is_shown(former), is_shown(now)), (former == "-F", true), "{command} {former}");
    }
}

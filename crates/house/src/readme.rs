//! The commands that the README shows, so that they can be run.
//!
//! A fenced block of the language `console` holds commands (lines that begin with `$ `, continued by a final `\`) and
//! their output. The comment above it says whether the tests run it: `<!-- run: yes -->`, `<!-- run: needs-root -->`
//! or, for what takes minutes or installs packages, `<!-- run: long -->`.

/// When the tests run a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Always.
    Yes,
    /// When they run as root.
    NeedsRoot,
    /// Never: another target of the Makefile does.
    Long,
}

/// A block of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of the fence, from 1.
    pub line: usize,
    /// When to run it.
    pub run: Run,
    /// The commands in order.
    pub commands: Vec<String>,
    /// How many lines there are between the fences.
    length: usize,
}

/// All blocks of a text.
///
/// # Errors
/// A block without a comment, with an unknown word in it, without a command, or without an end; each with its line.
pub fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut comment: Option<&str> = None;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim_end();
        if let Some(fence) = line.strip_prefix("```") {
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, end)) if end.trim_end() == "```" => break,
                    Some((_, inside)) => body.push(inside),
                    None => return Err(format!("line {}: the block has no end", at + 1)),
                }
            }
            if fence == "console" {
                let run = match comment {
                    Some("yes") => Run::Yes,
                    Some("needs-root") => Run::NeedsRoot,
                    Some("long") => Run::Long,
                    Some(other) => {
                        return Err(format!("line {}: `run: {other}` is none of yes, needs-root, long", at + 1));
                    }
                    None => return Err(format!("line {}: no `<!-- run: ... -->` above the block", at + 1)),
                };
                let commands = commands(&body);
                if commands.is_empty() {
                    return Err(format!("line {}: the block has no line that begins with `$ `", at + 1));
                }
                blocks.push(Block { line: at + 1, run, commands, length: body.len() });
            }
            comment = None;
        } else if let Some(word) = line.strip_prefix("<!-- run:").and_then(|rest| rest.strip_suffix("-->")) {
            comment = Some(word.trim());
        } else if !line.is_empty() {
            comment = None;
        }
    }
    Ok(blocks)
}

/// The text with what `printed(block, command)` says under each command of the blocks that `wanted` names, in place of what stands there.
///
/// # Errors
/// Those of [`blocks`] and of `printed`; output that would be read as a command or as the end of its block.
pub fn with_output(
    text: &str,
    wanted: impl Fn(&Block) -> bool,
    mut printed: impl FnMut(&Block, &str) -> Result<String, String>,
) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut made = String::new();
    let mut next = 0;
    let add = |lines: &[&str], made: &mut String| lines.iter().for_each(|line| *made += &format!("{line}\n"));
    for block in blocks(text)?.iter().filter(|block| wanted(block)) {
        add(&lines[next..block.line], &mut made);
        for command in &block.commands {
            let output = printed(block, command)?;
            let output: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
            if output.iter().any(|line| line.starts_with("$ ") || line.starts_with("```")) {
                return Err(format!("line {}: `{command}` prints what looks like a command or a fence", block.line));
            }
            made += &format!("$ {command}\n");
            add(&output, &mut made);
        }
        next = block.line + block.length;
    }
    add(&lines[next..], &mut made);
    Ok(made)
}

fn commands(body: &[&str]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut open = false;
    for line in body {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push(command.to_owned()),
            None if open => {
                if let Some(last) = commands.last_mut() {
                    last.push('\n');
                    last.push_str(line);
                }
            }
            None => continue,
        }
        open = line.ends_with('\\');
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_continuation_and_without_their_output() {
        let text = "<!-- run: needs-root -->\n\n```console\n$ a \\\n  b\nout\n$ c\n```\n```rust\nlet x;\n```\n";
        let found = blocks(text).unwrap();
        let commands = vec!["a \\\n  b".into(), "c".into()];
        assert_eq!(found, [Block { line: 3, run: Run::NeedsRoot, commands, length: 4 }]);
    }

    #[test]
    fn what_commands_print_takes_the_place_of_what_stood_under_them_and_nothing_else_changes() {
        let text = "# a\n<!-- run: yes -->\n```console\n$ a \\\n  b\nold\n$ c\n```\nwords\n<!-- run: long -->\n```console\n$ d\nkept\n```\n";
        let said = |_: &Block, command: &str| Ok(format!("new {}  \n\n", command.len()));
        let made = with_output(text, |block| block.run == Run::Yes, said).unwrap();
        assert_eq!(made, text.replace("old\n$ c\n", "new 7\n$ c\nnew 1\n"));
        assert_eq!(with_output(text, |_| false, said).unwrap(), text);
        assert!(with_output(text, |_| true, |_, _| Err("no".to_owned())).is_err());
        for wrong in ["$ rm", "```"] {
            let refused = with_output(text, |_| true, |_, _| Ok(format!("a\n{wrong}\n"))).unwrap_err();
            assert!(refused.starts_with("line 3: "), "{refused}");
        }
    }

    #[test]
    fn a_block_that_nobody_decided_about_is_an_error_with_its_line() {
        let text = "<!-- run: yes -->\nsome words between\n```console\n$ a\n```\n";
        assert_eq!(blocks(text).unwrap_err(), "line 3: no `<!-- run: ... -->` above the block");
        assert!(blocks("<!-- run: maybe -->\n```console\n$ a\n```\n").unwrap_err().contains("maybe"));
        assert!(blocks("<!-- run: yes -->\n```console\nno command\n```\n").unwrap_err().contains("`$ `"));
        assert!(blocks("<!-- run: yes -->\n```console\n$ a\n").unwrap_err().contains("no end"));
    }
}

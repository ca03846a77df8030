//! The two sides of a bisection: each a process or a file, whose context is reproduced, or a wrapper around the command, which is
//! launched as it is too.

use slowpath_context::Snapshot;
use slowpath_context::named::{existing, launched};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::Invocation;
use std::ffi::{OsStr, OsString};

/// What is read in place of a command that ends too soon.
const IN_PLACE: [&str; 2] = ["/bin/sleep", "60"];

/// One of the two.
#[derive(Clone, Debug)]
pub struct GivenSide {
    /// As it was named.
    pub given: String,
    /// The words before the command; `None`: it is a context that only exists.
    pub wrapper: Option<Vec<OsString>>,
    /// Its context.
    pub context: Snapshot,
}

/// Both.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The fast one.
    pub fast: GivenSide,
    /// The slow one.
    pub slow: GivenSide,
    /// Whether the contexts of the wrappers are those of another program, because the command ended before it could be read.
    pub in_place: bool,
}

/// What a word means, before any command is launched.
enum Named {
    Exists(Box<Snapshot>),
    Wrapper(Vec<OsString>),
}

impl Sides {
    /// Reads both contexts: of the words after `--fast` and `--slow`, and where these are wrappers, of `command` launched behind them.
    ///
    /// # Errors
    /// One of them is neither, or the command cannot be started behind a wrapper.
    pub fn read(fast: &OsStr, slow: &OsStr, command: &[OsString], invocation: &Invocation) -> Result<Self, Failure> {
        let named = [named("--fast", fast)?, named("--slow", slow)?];
        let read = |command: &[OsString]| -> Result<[Snapshot; 2], Failure> {
            let context = |one: &Named| match one {
                Named::Exists(context) => Ok(Snapshot::clone(context)),
                Named::Wrapper(words) => {
                    let all = words.iter().chain(command).cloned().collect();
                    launched(invocation, all)
                }
            };
            Ok([context(&named[0])?, context(&named[1])?])
        };
        // Both contexts are those of the same program, so that its own objects are no difference.
        let (contexts, in_place) = match read(command) {
            Ok(contexts) => (contexts, false),
            Err(failure) if failure.is_interruption() => return Err(failure),
            Err(failure) if failure.kind() != Kind::Target => return Err(failure),
            // It may have ended too soon. What is wrong with a wrapper is reported by the other program as well.
            Err(_) => (read(&IN_PLACE.map(OsString::from))?, true),
        };
        let words = named.map(|one| match one {
            Named::Exists(_) => None,
            Named::Wrapper(words) => Some(words),
        });
        let [fast_context, slow_context] = contexts;
        let [fast_words, slow_words] = words;
        let side = |given: &OsStr, wrapper, context| GivenSide {
            given: given.to_string_lossy().into_owned(),
            wrapper,
            context,
        };
        let fast = side(fast, fast_words, fast_context);
        Ok(Self { fast, slow: side(slow, slow_words, slow_context), in_place })
    }

    /// Whether both can be launched as they were given.
    pub fn are_given(&self) -> bool {
        self.fast.wrapper.is_some() && self.slow.wrapper.is_some()
    }
}

fn named(option: &str, word: &OsStr) -> Result<Named, Failure> {
    if word.is_empty() {
        return Ok(Named::Wrapper(Vec::new()));
    }
    if let Some(context) = existing(word)? {
        return Ok(Named::Exists(Box::new(context)));
    }
    let text = word.to_string_lossy();
    let words = shlex::split(&text).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("{option}: a quote in {text:?} does not end"))
            .hint("it is a process, a file of `slowpath context save`, or words that run the command behind them, such as 'nice -n 19'")
    })?;
    Ok(Named::Wrapper(words.into_iter().map(OsString::from).collect()))
}

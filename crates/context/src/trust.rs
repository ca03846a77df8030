//! Whose word a context is. Leaves which variables are taken from anybody to [`crate::factors::environment`].
//!
//! A context from elsewhere is data that anybody may have written: it never gives a launch more than its user has, and never makes
//! his command run other code. Which factors ask these questions stands in their own files.

/// Who says that a context is as it is. What is deserialised or read from copied files is foreign, whoever owns the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A file: nobody knows who wrote it.
    #[default]
    Foreign,
    /// A process that runs here, all of whose user ids are this one; none where they are not the same, or it sees other users or files.
    Process {
        /// The user.
        uid: Option<u32>,
    },
    /// A process that was started for it, by a command line of the invoker's: what it does to itself it may.
    Launched,
}

impl Source {
    /// Whether the user himself could have made it so.
    pub(crate) fn is_of(self, uid: u32) -> bool {
        match self {
            Self::Foreign => false,
            Self::Process { uid: owner } => owner == Some(uid),
            Self::Launched => true,
        }
    }
}

/// Why something of a stranger's context is not taken: it makes other code run.
pub(crate) const OTHER_CODE: &str = "it can make the command run other code, or write elsewhere, and the context is not yours: \
                                     --trust-context takes it all the same";

//! The kinds of work that a worker does. What each may do: limits in [`super::limits`], system calls in [`super::filter`], capabilities and
//! signals in [`super::Sandbox::enter`].

/// What a worker does, which decides what it may do.
///
/// Root's own work (a root shell without sudo) keeps user id 0, because root's files are to be read and written; it keeps
/// `CAP_DAC_READ_SEARCH`, and `CAP_DAC_OVERRIDE` where it writes, because root expects to read the recordings of others. User id 0 alone
/// can change what belongs to root, which is the machine: that is why [`Duty::Read`] cannot open for writing at all, and why
/// [`Duty::Write`] comes with directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Computes on descriptors that it has or is sent, and answers. It opens nothing, starts nothing, prints nothing.
    Parse,
    /// Opens files for reading, anywhere. Changes none.
    Read,
    /// Makes, replaces and removes files too.
    Write,
    /// Reads, writes, and talks over the network, for pages and a browser.
    Browse,
    /// Starts programs of its user: a client of debuginfod, the dynamic loader. What is refused is what gives power over others.
    Run,
    /// Measures memory or system calls, which a filter would be part of. Handles no foreign bytes but filters that it runs under.
    Measure,
}

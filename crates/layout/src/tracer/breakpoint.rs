//! Where breakpoints stand, whatever the machine: its instructions tell how wide they are.

/// Where the breakpoint of a function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point<const WIDTH: usize> {
    /// Bytes from its first instruction.
    pub skip: u8,
    /// What stands there.
    pub original: [u8; WIDTH],
}

/// A function that does nothing, which is stopped at every time: the breakpoint's place, and where it goes on instead of the
/// instruction that the breakpoint replaced. That is never emulated: a return that nobody made breaks a shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook<const WIDTH: usize> {
    /// Address of the breakpoint, as the file states it.
    pub address: u64,
    /// What stands there.
    pub original: [u8; WIDTH],
    /// Address at which it goes on.
    pub resume: u64,
}

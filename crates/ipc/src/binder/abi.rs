//! The driver's interface as bytes: include/uapi/linux/android/binder.h, protocol 8 (64 bit), and `binderfs.h` beside it. Pure.
//!
//! A command and a return are a word and what belongs to it; the word says how long that is, as numbers of ioctl(2) do.

/// `BINDER_CURRENT_PROTOCOL_VERSION` of 64-bit kernels.
pub(super) const PROTOCOL: i32 = 8;

/// Directions of a number (asm-generic/ioctl.h).
const NONE: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;

const fn number(direction: u32, group: u8, index: u8, size: u32) -> u32 {
    direction << 30 | size << 16 | (group as u32) << 8 | index as u32
}

/// Bytes that belong to a command or return.
pub(super) const fn length(word: u32) -> usize {
    (word >> 16 & 0x3fff) as usize
}

/// `struct binder_write_read`: six words of eight bytes.
pub(super) const WRITE_READ: u32 = number(READ | WRITE, b'b', 1, 48);
pub(super) const SET_CONTEXT_MANAGER: u32 = number(WRITE, b'b', 7, 4);
pub(super) const THREAD_EXIT: u32 = number(WRITE, b'b', 8, 4);
pub(super) const VERSION: u32 = number(READ | WRITE, b'b', 9, 4);
/// Of `struct flat_binder_object`.
pub(super) const SET_CONTEXT_MANAGER_EXT: u32 = number(WRITE, b'b', 13, 24);
/// `struct binderfs_device`: a name of 256 bytes, major and minor number.
pub(super) const ADD_DEVICE: u32 = number(READ | WRITE, b'b', 1, 264);

const TRANSACTION_BYTES: usize = 64;
const POINTER_COOKIE: u32 = 16;

const BC_TRANSACTION: u32 = number(WRITE, b'c', 0, TRANSACTION_BYTES as u32);
const BC_REPLY: u32 = number(WRITE, b'c', 1, TRANSACTION_BYTES as u32);
const BC_FREE_BUFFER: u32 = number(WRITE, b'c', 3, 8);
const BC_INCREFS_DONE: u32 = number(WRITE, b'c', 8, POINTER_COOKIE);
const BC_ACQUIRE_DONE: u32 = number(WRITE, b'c', 9, POINTER_COOKIE);
/// The calling thread will serve.
pub(super) const BC_ENTER_LOOPER: u32 = number(NONE, b'c', 12, 0);
/// With the length of all buffers behind.
const BC_TRANSACTION_SG: u32 = number(WRITE, b'c', 17, TRANSACTION_BYTES as u32 + 8);
const BC_REPLY_SG: u32 = number(WRITE, b'c', 18, TRANSACTION_BYTES as u32 + 8);

const BR_ERROR: u32 = number(READ, b'r', 0, 4);
const BR_TRANSACTION: u32 = number(READ, b'r', 2, TRANSACTION_BYTES as u32);
const BR_REPLY: u32 = number(READ, b'r', 3, TRANSACTION_BYTES as u32);
const BR_DEAD_REPLY: u32 = number(NONE, b'r', 5, 0);
const BR_TRANSACTION_COMPLETE: u32 = number(NONE, b'r', 6, 0);
const BR_INCREFS: u32 = number(READ, b'r', 7, POINTER_COOKIE);
const BR_ACQUIRE: u32 = number(READ, b'r', 8, POINTER_COOKIE);
const BR_FAILED_REPLY: u32 = number(NONE, b'r', 17, 0);
const BR_FROZEN_REPLY: u32 = number(NONE, b'r', 18, 0);

const fn packed(one: u8, two: u8, three: u8) -> u32 {
    // B_TYPE_LARGE at the end.
    u32::from_be_bytes([one, two, three, 0x85])
}

/// `BINDER_TYPE_BINDER` and `BINDER_TYPE_PTR`.
const TYPE_BINDER: u32 = packed(b's', b'b', b'*');
const TYPE_POINTER: u32 = packed(b'p', b't', b'*');
/// Flags of a node: the lowest priority at which it serves (nice 19, as libbinder sets it: any caller's nice is taken over), and
/// `FLAT_BINDER_FLAG_INHERIT_RT`, which Android's kernels know and mainline ignores.
const NODE_FLAGS: u32 = 19 | 0x800;

/// The context manager's node, `struct flat_binder_object`.
pub(super) fn manager() -> [u8; 24] {
    let mut object = [0; 24];
    object[..4].copy_from_slice(&TYPE_BINDER.to_ne_bytes());
    object[4..8].copy_from_slice(&NODE_FLAGS.to_ne_bytes());
    object
}

/// A device for binderfs, `struct binderfs_device`.
pub(super) fn new_device(name: &str) -> [u8; 264] {
    let mut device = [0; 264];
    let length = name.len().min(255);
    device[..length].copy_from_slice(&name.as_bytes()[..length]);
    device
}

/// `struct binder_buffer_object`: a buffer that the driver copies from where it is, to where it is put.
pub(super) const BUFFER_OBJECT: usize = 40;

/// A buffer object for `length` bytes at `address`.
pub(super) fn buffer_object(address: u64, length: u64) -> [u8; BUFFER_OBJECT] {
    let mut object = [0; BUFFER_OBJECT];
    object[..4].copy_from_slice(&TYPE_POINTER.to_ne_bytes());
    object[8..16].copy_from_slice(&address.to_ne_bytes());
    object[16..24].copy_from_slice(&length.to_ne_bytes());
    object
}

/// Address and length in a buffer object that arrived; `None` where it is none.
pub(super) fn read_buffer_object(bytes: &[u8]) -> Option<(u64, u64)> {
    let kind = u32::from_ne_bytes(*bytes.first_chunk()?);
    (kind == TYPE_POINTER).then_some((long(bytes, 8)?, long(bytes, 16)?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..at + 8)?.first_chunk()?))
}

/// Where what is sent stands, or what has arrived: addresses of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    pub buffer: u64,
    pub size: u64,
    /// Where the offsets of objects stand, and how many bytes they are.
    pub offsets: u64,
    pub offsets_size: u64,
}

impl Data {
    /// `struct binder_transaction_data` to node or handle 0.
    fn to_bytes(self) -> [u8; TRANSACTION_BYTES] {
        let mut bytes = [0; TRANSACTION_BYTES];
        for (slot, value) in
            bytes[32..].chunks_exact_mut(8).zip([self.size, self.offsets_size, self.buffer, self.offsets])
        {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            size: long(bytes, 32)?,
            offsets_size: long(bytes, 40)?,
            buffer: long(bytes, 48)?,
            offsets: long(bytes, 56)?,
        })
    }
}

/// Whether a call or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Call,
    Reply,
}

/// Appends the command that sends `data`; `buffers`: bytes of all buffer objects, where there are some.
pub(super) fn send(commands: &mut Vec<u8>, direction: Direction, data: Data, buffers: Option<u64>) {
    let word = match (direction, buffers) {
        (Direction::Call, None) => BC_TRANSACTION,
        (Direction::Call, Some(_)) => BC_TRANSACTION_SG,
        (Direction::Reply, None) => BC_REPLY,
        (Direction::Reply, Some(_)) => BC_REPLY_SG,
    };
    commands.extend(word.to_ne_bytes());
    commands.extend(data.to_bytes());
    if let Some(buffers) = buffers {
        commands.extend(buffers.next_multiple_of(8).to_ne_bytes());
    }
}

/// Appends the command that gives a buffer back which arrived.
pub(super) fn free(commands: &mut Vec<u8>, buffer: u64) {
    commands.extend(BC_FREE_BUFFER.to_ne_bytes());
    commands.extend(buffer.to_ne_bytes());
}

/// What the driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// A call to serve.
    Call(Data),
    /// The answer to a call.
    Reply(Data),
    /// What was sent is on its way.
    Sent,
    /// The other process is gone.
    Dead,
    /// It could not be delivered.
    Failed,
    /// A reference that has to be acknowledged with this command.
    Acknowledge(Vec<u8>),
    /// Nothing to do for.
    Other,
}

/// The next return and what follows it; `None` at the end, or where the rest is shorter than it says.
pub(super) fn next(bytes: &[u8]) -> Option<(Return, &[u8])> {
    let word = u32::from_ne_bytes(*bytes.first_chunk()?);
    let (what, rest) = bytes.get(4..)?.split_at_checked(length(word))?;
    let acknowledged = |word: u32| Return::Acknowledge([&word.to_ne_bytes(), what].concat());
    let said = match word {
        BR_TRANSACTION => Return::Call(Data::from_bytes(what)?),
        BR_REPLY => Return::Reply(Data::from_bytes(what)?),
        BR_TRANSACTION_COMPLETE => Return::Sent,
        BR_DEAD_REPLY | BR_FROZEN_REPLY => Return::Dead,
        BR_FAILED_REPLY | BR_ERROR => Return::Failed,
        BR_INCREFS => acknowledged(BC_INCREFS_DONE),
        BR_ACQUIRE => acknowledged(BC_ACQUIRE_DONE),
        _ => Return::Other,
    };
    Some((said, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As printed by a C program that includes the kernel's header (linux/android/binder.h of linux-libc-dev 6.1).
    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        assert_eq!(
            [WRITE_READ, SET_CONTEXT_MANAGER, THREAD_EXIT, VERSION, SET_CONTEXT_MANAGER_EXT],
            [0xc030_6201, 0x4004_6207, 0x4004_6208, 0xc004_6209, 0x4018_620d]
        );
        assert_eq!(
            [BC_TRANSACTION, BC_REPLY, BC_FREE_BUFFER, BC_ENTER_LOOPER, BC_TRANSACTION_SG, BC_REPLY_SG],
            [0x4040_6300, 0x4040_6301, 0x4008_6303, 0x630c, 0x4048_6311, 0x4048_6312]
        );
        assert_eq!(
            [BR_ERROR, BR_TRANSACTION, BR_REPLY, BR_DEAD_REPLY, BR_TRANSACTION_COMPLETE, BR_FAILED_REPLY],
            [0x8004_7200, 0x8040_7202, 0x8040_7203, 0x7205, 0x7206, 0x7211]
        );
        assert_eq!([TYPE_BINDER, TYPE_POINTER, ADD_DEVICE], [0x7362_2a85, 0x7074_2a85, 0xc108_6201]);
    }

    #[test]
    fn what_is_sent_is_read_as_it_was() {
        let data = Data { buffer: 1, size: 2, offsets: 3, offsets_size: 4 };
        let mut commands = Vec::new();
        send(&mut commands, Direction::Call, data, Some(5));
        assert_eq!(commands.len(), 4 + length(BC_TRANSACTION_SG));
        assert_eq!(commands[4 + TRANSACTION_BYTES..], 8u64.to_ne_bytes());
        commands[..4].copy_from_slice(&BR_TRANSACTION.to_ne_bytes());
        assert_eq!(next(&commands), Some((Return::Call(data), &8u64.to_ne_bytes()[..])));
        assert_eq!(read_buffer_object(&buffer_object(7, 9)), Some((7, 9)));
        assert_eq!(read_buffer_object(&[0; BUFFER_OBJECT]), None);
    }

    #[test]
    fn a_reference_is_acknowledged_with_what_it_named() {
        let said: Vec<u8> = BR_ACQUIRE.to_ne_bytes().into_iter().chain(0..16).collect();
        let Some((Return::Acknowledge(command), [])) = next(&said) else { panic!("{:?}", next(&said)) };
        assert_eq!((&command[..4], &command[4..]), (&BC_ACQUIRE_DONE.to_ne_bytes()[..], &said[4..]));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while let Some((_, after)) = next(rest) {
                prop_assert!(after.len() + 4 <= rest.len());
                rest = after;
            }
        }
    }
}

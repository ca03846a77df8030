//! One process's connection to a device: opened, mapped, and what is sent and received through it.

use super::abi::{self, Data, Direction, Return};
use super::device::Device;
use crate::transport::RequestHandler;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// How a payload travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In the data of the transaction, behind its length, as a `Parcel` has it: copied once more by the sender.
    Copied,
    /// As a buffer object: the driver copies it from where it is (scatter-gather, as hwbinder's).
    Scattered,
}

/// How long a device may belong to a server that just ended: the driver lets go of it later, in a work queue.
const PATIENCE: u32 = 200;
/// What one ioctl(2) may return.
const RETURNS: usize = 512;
/// Bytes of a payload's length in a copied transaction; its payload is padded to as many.
const LENGTH: usize = 4;

/// A connection. It belongs to the process that opened it.
#[derive(Debug)]
pub(crate) struct Connection {
    device: Arc<File>,
    mapping: Mapping,
    form: Form,
    largest: usize,
    /// What the next exchange sends first.
    commands: Vec<u8>,
    calls: VecDeque<Data>,
    arrived: VecDeque<Return>,
    parcel: Vec<u8>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Connection {
    /// Opens a device for payloads up to `largest` bytes.
    ///
    /// # Errors
    /// The device cannot be opened or mapped, or speaks another protocol.
    pub(crate) fn open(device: &Device, form: Form, largest: usize) -> io::Result<Self> {
        let device = device.open()?;
        let mut version = 0i32;
        control(&device, abi::VERSION, (&raw mut version).cast())?;
        if version != abi::PROTOCOL {
            return Err(io::Error::other(format!("the driver speaks protocol {version}, not {}", abi::PROTOCOL)));
        }
        // A request or reply that is served, the next one, and what the driver adds.
        let mapping = Mapping::of(&device, 4 * (largest + 4096).next_multiple_of(4096))?;
        Ok(Self {
            device: Arc::new(device),
            mapping,
            form,
            largest,
            commands: Vec::new(),
            calls: VecDeque::new(),
            arrived: VecDeque::new(),
            parcel: Vec::new(),
            request: Vec::new(),
            reply: Vec::new(),
        })
    }

    /// Makes this process the device's context manager, which calls of others reach, and the calling thread its server.
    ///
    /// # Errors
    /// Another process is, or was as another user.
    pub(crate) fn become_manager(&mut self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            match self.set_manager() {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < PATIENCE => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                result => {
                    self.commands.extend(abi::BC_ENTER_LOOPER.to_ne_bytes());
                    return result;
                }
            }
        }
    }

    fn set_manager(&self) -> io::Result<()> {
        let mut node = abi::manager();
        match control(&self.device, abi::SET_CONTEXT_MANAGER_EXT, node.as_mut_ptr()) {
            // Before Linux 4.20.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let mut unused = 0i32;
                control(&self.device, abi::SET_CONTEXT_MANAGER, (&raw mut unused).cast())
            }
            result => result,
        }
    }

    /// One round trip to the context manager.
    ///
    /// # Errors
    /// It is gone, or the driver refuses.
    pub(crate) fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        leaves_with_its_thread(&self.device);
        self.transmit(Direction::Call, request)?;
        let data = loop {
            match self.next()? {
                Return::Reply(data) => break data,
                Return::Dead => return Err(io::ErrorKind::UnexpectedEof.into()),
                Return::Failed => return Err(io::Error::other("the driver could not deliver a call")),
                _ => {}
            }
        };
        reply.clear();
        self.take(data, reply)
    }

    /// Waits for a call and answers it.
    ///
    /// # Errors
    /// The client is gone, or the driver refuses.
    pub(crate) fn serve(&mut self, answer: &mut RequestHandler) -> io::Result<()> {
        let data = loop {
            match self.calls.pop_front() {
                Some(data) => break data,
                None => self.exchange()?,
            }
        };
        let (mut request, mut reply) = (std::mem::take(&mut self.request), std::mem::take(&mut self.reply));
        request.clear();
        reply.clear();
        self.take(data, &mut request)?;
        answer(&request, &mut reply);
        self.arrived.clear();
        self.transmit(Direction::Reply, &reply)?;
        (self.request, self.reply) = (request, reply);
        loop {
            match self.next()? {
                Return::Sent => return Ok(()),
                Return::Dead | Return::Failed => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }

    /// The next return that is no call.
    fn next(&mut self) -> io::Result<Return> {
        loop {
            if let Some(arrived) = self.arrived.pop_front() {
                return Ok(arrived);
            }
            self.exchange()?;
        }
    }

    /// Sends a payload, and takes what the driver says meanwhile.
    fn transmit(&mut self, direction: Direction, payload: &[u8]) -> io::Result<()> {
        if payload.len() > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed"));
        }
        self.parcel.clear();
        // Where the one object stands in the data.
        let offsets = [0u64];
        let (offsets_size, buffers) = match self.form {
            Form::Copied => {
                self.parcel.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_ne_bytes());
                self.parcel.extend_from_slice(payload);
                self.parcel.resize(self.parcel.len().next_multiple_of(LENGTH), 0);
                (0, None)
            }
            Form::Scattered => {
                self.parcel.extend(abi::buffer_object(payload.as_ptr() as u64, payload.len() as u64));
                (size_of_val(&offsets) as u64, Some(payload.len() as u64))
            }
        };
        let data = Data {
            buffer: self.parcel.as_ptr() as u64,
            size: self.parcel.len() as u64,
            offsets: offsets.as_ptr() as u64,
            offsets_size,
        };
        abi::send(&mut self.commands, direction, data, buffers);
        // Payload, parcel and offsets are alive until the driver has copied them.
        self.exchange()
    }

    /// Appends the payload of what arrived to `into`; its buffer is given back with the next exchange.
    fn take(&mut self, data: Data, into: &mut Vec<u8>) -> io::Result<()> {
        let bytes = self.mapping.bytes(data.buffer, data.size);
        let payload = bytes.and_then(|bytes| match self.form {
            Form::Copied => {
                let length = u32::from_ne_bytes(*bytes.first_chunk::<LENGTH>()?) as usize;
                bytes.get(LENGTH..)?.get(..length)
            }
            Form::Scattered => {
                let (address, length) = abi::read_buffer_object(bytes)?;
                self.mapping.bytes(address, length)
            }
        });
        let payload = payload
            .filter(|payload| payload.len() <= self.largest)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a message of the other end"))?;
        into.extend_from_slice(payload);
        abi::free(&mut self.commands, data.buffer);
        Ok(())
    }

    /// Sends what is to be sent, and waits until the driver says something.
    fn exchange(&mut self) -> io::Result<()> {
        let mut returns = [0u8; RETURNS];
        // Size, consumed and address of both buffers.
        let mut words = [
            self.commands.len() as u64,
            0,
            self.commands.as_ptr() as u64,
            RETURNS as u64,
            0,
            returns.as_mut_ptr() as u64,
        ];
        loop {
            // The driver goes on where it was when a signal interrupted it.
            match control(&self.device, abi::WRITE_READ, words.as_mut_ptr().cast()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        }
        self.commands.clear();
        let mut rest = &returns[..usize::try_from(words[4]).unwrap_or(0).min(RETURNS)];
        while let Some((said, after)) = abi::next(rest) {
            rest = after;
            match said {
                Return::Call(data) => self.calls.push_back(data),
                Return::Acknowledge(command) => self.commands.extend(command),
                Return::Other => {}
                said => self.arrived.push_back(said),
            }
        }
        Ok(())
    }
}

/// An ioctl(2) whose argument has the size that its number says.
fn control(device: &File, number: u32, argument: *mut u8) -> io::Result<()> {
    // SAFETY: every caller passes something of that size that is alive; addresses in it are of memory that is, too.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), number as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the driver keeps of a thread, given back when the thread ends.
struct Leaving(Arc<File>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut unused = 0i32;
        let _ = control(&self.0, abi::THREAD_EXIT, (&raw mut unused).cast());
    }
}

thread_local! {
    static LEAVING: RefCell<Vec<Leaving>> = const { RefCell::new(Vec::new()) };
}

/// Every real-time caller is a new thread: without this the driver would keep all of them.
fn leaves_with_its_thread(device: &Arc<File>) {
    LEAVING.with_borrow_mut(|list| {
        if !list.iter().any(|one| Arc::ptr_eq(&one.0, device)) {
            list.push(Leaving(Arc::clone(device)));
        }
    });
}

/// The memory into which the driver puts what arrives; only the driver writes to it.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(device: &File, length: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, device.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))?;
        Ok(Self { start, length })
    }

    /// `length` bytes at `address`, if they lie inside.
    fn bytes(&self, address: u64, length: u64) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(self.start.as_ptr() as u64)?).ok()?;
        let length = usize::try_from(length).ok()?;
        if offset.checked_add(length)? > self.length {
            return None;
        }
        // SAFETY: inside the mapping (checked), which lives as long as `self`. The driver writes a buffer before it says where it is,
        // and not again before it is given back, which needs `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

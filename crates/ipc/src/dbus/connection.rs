//! A connection to a bus: authentication, the name, calls and replies, in the thread that asks.

use super::bus::Address;
use super::message::{CALL, FIXED, MOST_FIELDS, Received, Target, bytes, call, length, malformed, put_bytes, reply};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The name that the server has on the bus.
const NAME: &str = "org.slowpath.Echo";
const ECHO: Target =
    Target { destination: NAME, path: "/org/slowpath/Echo", interface: "org.slowpath.Echo1", member: "Call" };
const fn of_bus(member: &'static str) -> Target {
    Target {
        destination: "org.freedesktop.DBus",
        path: "/org/freedesktop/DBus",
        interface: "org.freedesktop.DBus",
        member,
    }
}
/// How long a bus may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(30);
/// `DBUS_NAME_FLAG_DO_NOT_QUEUE`.
const DO_NOT_QUEUE: u32 = 4;
/// `DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER`.
const OWNER: [u8; 4] = [1, 0, 0, 0];

/// One end.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    largest: usize,
    serial: u32,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were received.
    have: usize,
    /// Length of the message that was given out last.
    taken: usize,
    outgoing: Vec<u8>,
    body: Vec<u8>,
    answered: Vec<u8>,
}

impl Connection {
    /// Connects, and says hello.
    ///
    /// # Errors
    /// There is no bus of this user at the address, or it refuses.
    pub(crate) fn open(address: &Address, largest: usize) -> io::Result<Self> {
        let mut stream = address.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        authenticate(&mut stream)?;
        let incoming = vec![0; FIXED + MOST_FIELDS + 4 + largest];
        let (outgoing, body) = (Vec::new(), Vec::new());
        let answered = Vec::new();
        let mut connection = Self { stream, largest, serial: 0, incoming, have: 0, taken: 0, outgoing, body, answered };
        connection.ask(&of_bus("Hello"), "", &[])?;
        connection.stream.set_read_timeout(None)?;
        Ok(connection)
    }

    /// Takes the name that clients call.
    ///
    /// # Errors
    /// Somebody else has it.
    pub(crate) fn take_name(&mut self) -> io::Result<()> {
        let mut body = Vec::new();
        put_bytes(&mut body, NAME.as_bytes());
        // A string is an array of bytes with a NUL behind it.
        body.push(0);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(&DO_NOT_QUEUE.to_le_bytes());
        match self.ask(&of_bus("RequestName"), "su", &body)? {
            owner if owner == OWNER => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "the name on the bus is taken")),
        }
    }

    /// One round trip.
    ///
    /// # Errors
    /// The bus or the server is gone, or refuses.
    pub(crate) fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.check(request.len())?;
        let mut body = std::mem::take(&mut self.body);
        put_bytes(&mut body, request);
        let answered = self.ask(&ECHO, "ay", &body).and_then(|answer| {
            reply.clear();
            reply.extend_from_slice(bytes(answer)?);
            Ok(())
        });
        self.body = body;
        answered
    }

    /// Waits for a call and answers it.
    ///
    /// # Errors
    /// The bus is gone.
    pub(crate) fn serve(&mut self, answer: &mut crate::transport::RequestHandler<'_>) -> io::Result<()> {
        loop {
            let whole = self.receive()?;
            let received = Received::read(&self.incoming[..whole])?;
            // Signals of the bus.
            if received.kind != CALL {
                continue;
            }
            self.answered.clear();
            answer(bytes(received.body)?, &mut self.answered);
            put_bytes(&mut self.body, &self.answered);
            self.serial += 1;
            reply(&mut self.outgoing, self.serial, received.serial, received.sender, "ay", &self.body);
            self.check(self.answered.len())?;
            return self.stream.write_all(&self.outgoing);
        }
    }

    fn check(&self, size: usize) -> io::Result<()> {
        match size > self.largest {
            true => Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed")),
            false => Ok(()),
        }
    }

    /// The body of the reply to a call.
    fn ask(&mut self, target: &Target, signature: &str, body: &[u8]) -> io::Result<&[u8]> {
        self.serial += 1;
        let serial = self.serial;
        call(&mut self.outgoing, serial, target, signature, body);
        self.stream.write_all(&self.outgoing)?;
        let whole = loop {
            let whole = self.receive()?;
            if Received::read(&self.incoming[..whole])?.answers(serial)? {
                break whole;
            }
        };
        Ok(Received::read(&self.incoming[..whole])?.body)
    }

    /// Waits for a whole message; its length in `incoming`.
    fn receive(&mut self) -> io::Result<usize> {
        self.incoming.copy_within(self.taken..self.have, 0);
        self.have -= self.taken;
        self.taken = 0;
        loop {
            if let Some(fixed) = self.incoming[..self.have].first_chunk::<FIXED>() {
                let whole = length(fixed, 4 + self.largest.max(MOST_FIELDS))?;
                if whole > self.incoming.len() {
                    self.incoming.resize(whole, 0);
                }
                if self.have >= whole {
                    self.taken = whole;
                    return Ok(whole);
                }
            }
            match self.stream.read(&mut self.incoming[self.have..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.have += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// EXTERNAL: the bus reads from the socket who this is (D-Bus Specification, "Authentication Protocol").
fn authenticate(stream: &mut UnixStream) -> io::Result<()> {
    let uid = nix::unistd::geteuid().to_string();
    let digits: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
    stream.write_all(format!("\0AUTH EXTERNAL {digits}\r\n").as_bytes())?;
    // `OK` and the number of the bus; nothing follows before BEGIN.
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
        if line.len() > 512 {
            return Err(malformed());
        }
    }
    match line.starts_with(b"OK ") {
        true => stream.write_all(b"BEGIN\r\n"),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the bus refuses this user")),
    }
}

//! Servers on loopback, which everybody on the machine reaches, and every web page that a browser here shows.
//!
//! Owns how a user's own connections are recognised: the kernel reports who made the other end (sock_diag(7)), and the address holds a
//! secret. Leaves serving to its callers.

use std::io;
use std::mem::{offset_of, size_of};
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_NOCOOKIE` (include/uapi/linux/inet_diag.h).
const NO_COOKIE: u32 = u32::MAX;

/// `struct inet_diag_sockid`, with ports and addresses as they go over the wire.
#[repr(C)]
#[derive(Clone, Copy)]
struct SocketId {
    source_port: [u8; 2],
    destination_port: [u8; 2],
    source: [u8; 16],
    destination: [u8; 16],
    interface: u32,
    cookie: [u32; 2],
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2` behind it.
#[repr(C)]
struct Request {
    length: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    family: u8,
    protocol: u8,
    extensions: u8,
    padding: u8,
    states: u32,
    id: SocketId,
}

/// `struct nlmsghdr` and `struct inet_diag_msg` behind it.
#[repr(C)]
struct Answer {
    length: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    family: u8,
    state: u8,
    timer: u8,
    retransmits: u8,
    id: SocketId,
    expires: u32,
    receive_queue: u32,
    write_queue: u32,
    uid: u32,
    inode: u32,
}

/// 128 bits that nobody else knows, as a part of a path.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes to a place of ours; so few it gives whole (getrandom(2)).
    let given = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if given != 16 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The user who made the socket at `peer` that is connected to `own`.
///
/// # Errors
/// The kernel cannot be asked (it has no inet_diag), or knows no such socket.
pub fn user_of(peer: SocketAddrV4, own: SocketAddrV4) -> io::Result<u32> {
    let checked = |result: isize| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) };
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes integers; the descriptor that it returns is nobody else's.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG);
        checked(socket as isize)?;
        OwnedFd::from_raw_fd(socket)
    };
    let address = |address: SocketAddrV4| {
        let mut wide = [0; 16];
        wide[..4].copy_from_slice(&address.ip().octets());
        wide
    };
    let request = Request {
        length: size_of::<Request>() as u32,
        kind: SOCK_DIAG_BY_FAMILY,
        flags: libc::NLM_F_REQUEST as u16,
        sequence: 1,
        port: 0,
        family: libc::AF_INET as u8,
        protocol: libc::IPPROTO_TCP as u8,
        extensions: 0,
        padding: 0,
        states: u32::MAX,
        id: SocketId {
            source_port: peer.port().to_be_bytes(),
            destination_port: own.port().to_be_bytes(),
            source: address(peer),
            destination: address(own),
            interface: 0,
            cookie: [NO_COOKIE; 2],
        },
    };
    // SAFETY: the kernel reads a structure of ours without padding, as long as is said.
    checked(unsafe { libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<Request>(), 0) })?;
    let mut bytes = [0u8; 4096];
    // The kernel has answered before `send` returned.
    // SAFETY: it writes no more than there is room in a buffer of ours.
    let read =
        checked(unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) })?;
    let word = |at: usize| bytes[..read].get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_ne_bytes);
    let kind = word(offset_of!(Answer, kind))
        .map(|both| both.to_ne_bytes())
        .map(|[low, high, ..]| u16::from_ne_bytes([low, high]));
    let uid = word(offset_of!(Answer, uid)).filter(|_| kind == Some(SOCK_DIAG_BY_FAMILY));
    uid.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the kernel knows no such socket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("{address}"),
        }
    }

    #[test]
    fn the_kernel_tells_whose_a_connection_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = v4(listener.local_addr().unwrap());
        let client = TcpStream::connect(own).unwrap();
        let peer = v4(client.local_addr().unwrap());
        // SAFETY: takes nothing and cannot fail.
        assert_eq!(user_of(peer, own).unwrap(), unsafe { libc::geteuid() });
        let nobody = SocketAddrV4::new(*peer.ip(), 1);
        assert!(user_of(nobody, own).is_err());
    }
}

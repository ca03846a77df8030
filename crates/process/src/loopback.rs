//! Servers on loopback, which everybody on the machine reaches, and every web page that a browser here shows.
//!
//! Owns how a user's own connections are recognised: the kernel reports who made the other end (sock_diag(7)), and the address holds a
//! secret. Leaves serving to its callers.

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// `SOCK_DIAG_BY_FAMILY` (include/uapi/linux/sock_diag.h).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_NOCOOKIE` (include/uapi/linux/inet_diag.h).
const NO_COOKIE: u32 = u32::MAX;
/// `LOOPBACK_IFINDEX` (include/net/flow.h): `lo` in every network namespace, whatever it is called there. Asked for by it, the kernel finds
/// sockets that are bound to the device, too (SO_BINDTODEVICE, which takes no privilege since Linux 5.7).
const LOOPBACK: u32 = 1;
/// States of a connection whose end a program may still hold (include/net/tcp_states.h): established, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT.
const HELD: [u8; 4] = [1, 4, 5, 8];
/// The own connection is made at once, or not at all.
const LONGEST_TRIAL: Duration = Duration::from_secs(1);

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
struct InetDiagMessage {
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

/// Whether the kernel says who made a connection on loopback, tried with one of our own. Where it has no inet_diag, or does not let itself
/// be asked, [`user_of`] fails for every connection; elsewhere an error says that nobody holds this one any more.
///
/// # Errors
/// No connection could be made, or there was no memory or descriptor left to ask with.
pub fn are_users_known() -> io::Result<bool> {
    let at = |address: SocketAddr| SocketAddrV4::new(Ipv4Addr::LOCALHOST, address.port());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // With a limit: others could fill the queue of a listener that accepts nothing.
    let client = TcpStream::connect_timeout(&listener.local_addr()?, LONGEST_TRIAL)?;
    match user_of(at(client.local_addr()?), at(listener.local_addr()?)) {
        Ok(_) => Ok(true),
        // A shortage says nothing of the kernel, and others can bring it about.
        Err(error) => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => Err(error),
            _ => Ok(false),
        },
    }
}

/// The user who made the socket at `peer` that is connected to `own`, while a program holds it. What a program has closed has no user, and
/// the kernel says 0 of it.
///
/// # Errors
/// The kernel cannot be asked (see [`are_users_known`]), or knows no such socket.
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
            interface: LOOPBACK,
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
    // SAFETY: the structure has integers alone, of which all bytes are values, and as many were read.
    let answer = (read >= size_of::<InetDiagMessage>())
        .then(|| unsafe { bytes.as_ptr().cast::<InetDiagMessage>().read_unaligned() });
    // A socket that a program holds has an inode.
    let is_held = |answer: &InetDiagMessage| HELD.contains(&answer.state) && answer.inode != 0;
    let found = answer.filter(|answer| answer.kind == SOCK_DIAG_BY_FAMILY && is_held(answer));
    found
        .map(|answer| answer.uid)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no program holds such a socket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use std::os::fd::RawFd;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("{address}"),
        }
    }

    /// A connection to a listener: both ends, and the listener, which has not accepted it.
    fn connected(prepare: impl FnOnce(RawFd)) -> (TcpListener, TcpStream, SocketAddrV4, SocketAddrV4) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = v4(listener.local_addr().unwrap());
        // SAFETY: socket takes integers; the descriptor that it returns is nobody else's. The address is one of ours with its length.
        let client = unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            assert!(socket >= 0);
            prepare(socket);
            let mut address: libc::sockaddr_in = std::mem::zeroed();
            address.sin_family = libc::AF_INET as libc::sa_family_t;
            address.sin_port = own.port().to_be();
            address.sin_addr.s_addr = u32::from(*own.ip()).to_be();
            let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            assert_eq!(libc::connect(socket, (&raw const address).cast(), length), 0);
            TcpStream::from_raw_fd(socket)
        };
        let peer = v4(client.local_addr().unwrap());
        (listener, client, peer, own)
    }

    fn set(socket: RawFd, option: libc::c_int, value: &[u8]) {
        let length = value.len() as libc::socklen_t;
        // SAFETY: the kernel reads as many bytes as the slice has.
        let done = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, option, value.as_ptr().cast(), length) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
    }

    /// Whether it does, and soon: a child of another test has a copy of what was just dropped, until it leaves.
    fn becomes_nobodys(peer: SocketAddrV4, own: SocketAddrV4) -> bool {
        (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            user_of(peer, own).is_err()
        })
    }

    #[test]
    fn the_kernel_tells_whose_a_connection_is() {
        assert!(are_users_known().unwrap());
        let (_listener, client, peer, own) = connected(|_| {});
        // SAFETY: takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        assert_eq!(user_of(peer, own).unwrap(), user);
        // Whoever has sent all that there is to say still waits for the answer.
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(user_of(peer, own).unwrap(), user);
        let nobody = SocketAddrV4::new(*peer.ip(), 1);
        assert!(user_of(nobody, own).is_err());
    }

    #[test]
    fn a_connection_that_is_bound_to_the_device_is_known_too() {
        let (_listener, _client, peer, own) = connected(|socket| set(socket, libc::SO_BINDTODEVICE, b"lo\0"));
        // SAFETY: takes nothing and cannot fail.
        assert_eq!(user_of(peer, own).unwrap(), unsafe { libc::geteuid() });
    }

    #[test]
    fn a_connection_that_was_closed_or_reset_and_a_listener_are_nobodys() {
        let (listener, client, peer, own) = connected(|_| {});
        drop(client);
        // FIN_WAIT2, and TIME_WAIT when the other end is closed, too.
        assert!(becomes_nobodys(peer, own));
        drop(listener.accept().unwrap());
        assert!(becomes_nobodys(peer, own));
        let reset = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: two integers are as many bytes.
        let reset: [u8; size_of::<libc::linger>()] = unsafe { std::mem::transmute(reset) };
        let (_listener, client, peer, own) = connected(|socket| set(socket, libc::SO_LINGER, &reset));
        drop(client);
        assert!(becomes_nobodys(peer, own));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(user_of(v4(listener.local_addr().unwrap()), own).is_err());
    }
}

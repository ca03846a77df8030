//! Which transports there are: one line each. What a transport is, its file's folder declares ([`super::Transport`]).

use super::{
    Transport, binder, binder_sg, dbus, eventfd_memory, futex_memory, grpc, in_process, io_uring, message_queue,
    pi_futex_memory, pipe, tcp_loopback, unix_seqpacket, unix_stream,
};

/// All transports, the floor first; at the end those that are not available everywhere.
pub static ALL: &[&Transport] = &[
    &in_process::TRANSPORT,
    &pipe::TRANSPORT,
    &unix_stream::TRANSPORT,
    &unix_seqpacket::TRANSPORT,
    &eventfd_memory::TRANSPORT,
    &futex_memory::TRANSPORT,
    &pi_futex_memory::TRANSPORT,
    &message_queue::TRANSPORT,
    &tcp_loopback::TRANSPORT,
    &grpc::TRANSPORT,
    &io_uring::TRANSPORT,
    &dbus::TRANSPORT,
    &binder::TRANSPORT,
    &binder_sg::TRANSPORT,
];

/// The transport with a name.
pub fn named(name: &str) -> Option<&'static Transport> {
    ALL.iter().find(|transport| transport.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{LARGEST_PAYLOAD, Pair};
    use std::collections::BTreeSet;
    use std::io;

    #[test]
    fn names_are_unique_and_can_be_typed() {
        let names: BTreeSet<_> = ALL.iter().map(|transport| transport.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
        assert!(named("pipe").is_some() && named("all").is_none());
    }

    /// The server in a process of its own, as binder asks for. The engine and its tests cover processes.
    #[test]
    fn every_transport_returns_what_was_sent_in_every_size() {
        use crate::children::Child;
        use std::io::{Read, Write};
        for transport in ALL {
            if let Err(gap) = (transport.check)() {
                println!("skipped: {}: {}", transport.name, gap.reason);
                continue;
            }
            let Pair::Processes { mut client, mut server } = (transport.connect)(LARGEST_PAYLOAD).unwrap() else {
                continue;
            };
            let (mut is_ready, mut ready) = io::pipe().unwrap();
            let _serving = Child::start(|| {
                let mut serve = || -> io::Result<()> {
                    server.prepare()?;
                    ready.write_all(&[1])?;
                    loop {
                        server.serve(&mut |request, reply| reply.extend(request.iter().rev()))?;
                    }
                };
                i32::from(serve().is_err())
            })
            .unwrap();
            is_ready.read_exact(&mut [0]).unwrap();
            client.prepare().unwrap();
            let mut reply = Vec::new();
            for size in [0usize, 1, 4, 5, 8191, 8192, 8193, 65535, 65536] {
                let request: Vec<u8> = (0..size).map(|byte| (byte % 251) as u8).collect();
                client.call(&request, &mut reply).unwrap();
                assert!(reply.iter().rev().eq(&request), "{} with {size} bytes", transport.name);
            }
        }
    }

    #[test]
    fn a_payload_beyond_what_was_agreed_is_an_error_and_no_wait() {
        for transport in ALL.iter().filter(|transport| (transport.check)().is_ok()) {
            if let Pair::Processes { mut client, .. } = (transport.connect)(16).unwrap() {
                let called = client.prepare().and_then(|()| client.call(&[0; 17], &mut Vec::new()));
                assert!(called.is_err(), "{}", transport.name);
            }
        }
    }
}

use super::*;
use crate::transport::RequestHandler;
use proptest::prelude::*;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

#[test]
fn messages_are_those_of_protobuf() {
    // protoc --encode of `message Echo { bytes payload = 1; }` with 3 and with 200 bytes.
    assert_eq!(&message(b"abc")[..], b"\0\0\0\0\x05\x0a\x03abc");
    let long = message(&[7; 200]);
    assert_eq!(&long[..8], b"\0\0\0\0\xcb\x0a\xc8\x01");
    assert_eq!(payload(&long).unwrap(), [7; 200]);
    assert_eq!(payload(b"\0\0\0\0\0").unwrap(), b"");
    let cut = [&b""[..], b"\0\0\0\0\x05\x0a\x03ab", b"\0\0\0\0\x03\x0a\xff\xff", b"\0\0\0\0\x01\x12"];
    for wrong in cut.into_iter().chain([&b"\x01\0\0\0\0"[..]]) {
        assert!(payload(wrong).is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_payload_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = payload(&bytes);
    }

    #[test]
    fn any_payload_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let message = message(&bytes);
        prop_assert_eq!(payload(&message).unwrap(), &bytes[..]);
    }
}

/// The field's own implementation at the other end: it echoes messages as they are, or makes three calls.
const PYTHON: &str = r#"
import sys, grpc
role, path = sys.argv[1], "unix:" + sys.argv[2]
def raw(data): return data
if role == "server":
    from concurrent import futures
    handler = grpc.method_handlers_generic_handler("slowpath.Echo", {
        "Call": grpc.unary_unary_rpc_method_handler(lambda request, _: request, raw, raw)})
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(path)
    server.start()
    server.wait_for_termination()
else:
    # Its own is the path in percent signs, which HTTP libraries refuse.
    options = [("grpc.default_authority", "localhost")]
    call = grpc.insecure_channel(path, options).unary_unary("/slowpath.Echo/Call", raw, raw)
    for size in (1, 100, 60000):
        length = bytearray()
        rest = size
        while rest >= 0x80:
            length.append(rest & 0x7f | 0x80)
            rest >>= 7
        length.append(rest)
        message = b"\x0a" + bytes(length) + bytes(i % 251 for i in range(size))
        assert call(message, timeout=60) == message, size
"#;

struct Python(Child);

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Debian's Python, for which grpcio is installed, or the one that `SLOWPATH_GRPC_PYTHON` names.
fn python(role: &str, socket: &Path) -> Option<Python> {
    let program = std::env::var("SLOWPATH_GRPC_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let works = Command::new(&program).args(["-c", "import grpc"]).output().is_ok_and(|done| done.status.success());
    if !works {
        println!("skipped: no python3 with grpcio (package python3-grpcio)");
        return None;
    }
    Command::new(program).args(["-c", PYTHON, role]).arg(socket).spawn().ok().map(Python)
}

#[test]
fn a_server_of_grpcio_answers_our_calls() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    let Some(_server) = python("server", &socket) else { return };
    let until = Instant::now() + Duration::from_secs(60);
    let stream = loop {
        match StdStream::connect(&socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut client = ClientConnection::open(stream, 65_536).unwrap();
    let mut reply = Vec::new();
    for size in [0usize, 1, 100, 8192, 65_536] {
        let request: Vec<u8> = (0..size).map(|byte| (byte % 251) as u8).collect();
        client.call(&request, &mut reply).unwrap();
        assert_eq!(reply, request, "{size} bytes");
    }
}

#[test]
fn a_client_of_grpcio_understands_our_server() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let Some(mut client) = python("client", &socket) else { return };
    let (stream, _) = listener.accept().unwrap();
    let mut server = ServerConnection::open(stream, 65_536).unwrap();
    let echo: &mut RequestHandler<'_> = &mut |request, reply| reply.extend_from_slice(request);
    for _ in 0..3 {
        server.serve(echo).unwrap();
    }
    // What is left to be sent goes while the next call is waited for.
    assert!(server.serve(echo).is_err(), "the client has no fourth call");
    assert!(client.0.wait().unwrap().success());
}

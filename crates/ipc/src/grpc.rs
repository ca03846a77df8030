//! Unary gRPC calls over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md), in one thread an end: a message is one field of bytes.
//!
//! HTTP/2 is the crate h2, which hyper and tonic use. What tonic adds (routing, layers, a channel that balances) is left out: it takes
//! a thread or a task of its own, and is no part of the protocol.

use h2::{RecvStream, SendStream, client, server};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, channel};

use bytes::Bytes;

/// Flow control of a stream and of a connection: hyper's and tonic's usual 1 MiB.
const WINDOW: u32 = 1 << 20;
/// A message's prefix: not compressed, and its length.
const PREFIX: usize = 5;
/// Field 1, length-delimited (protobuf's wire type 2).
const FIELD: u8 = 0x0a;
/// `application/grpc`, and a method of a service.
const CONTENT: &str = "application/grpc";
const METHOD: &str = "http://localhost/slowpath.Echo/Call";

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a gRPC message of the other end")
}

/// A runtime whose tasks run in the thread that waits.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().build()
}

fn stream(socket: StdStream) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// A message: prefix, and one field of bytes.
fn message(payload: &[u8]) -> Bytes {
    let mut varint = Vec::with_capacity(6);
    varint.push(FIELD);
    let mut rest = payload.len();
    while rest >= 0x80 {
        varint.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    varint.push(rest as u8);
    let length = u32::try_from(varint.len() + payload.len()).unwrap_or(u32::MAX);
    let mut whole = Vec::with_capacity(PREFIX + varint.len() + payload.len());
    whole.push(0);
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(&varint);
    whole.extend_from_slice(payload);
    whole.into()
}

/// The payload of a message.
fn payload(message: &[u8]) -> io::Result<&[u8]> {
    let (prefix, body) = message.split_first_chunk::<PREFIX>().ok_or_else(malformed)?;
    let [0, a, b, c, d] = *prefix else { return Err(malformed()) };
    let body = body.get(..u32::from_be_bytes([a, b, c, d]) as usize).ok_or_else(malformed)?;
    // Of an empty field proto3 sends nothing.
    let Some((&FIELD, mut rest)) = body.split_first() else {
        return if body.is_empty() { Ok(body) } else { Err(malformed()) };
    };
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first().ok_or_else(malformed)?;
        length |= u64::from(byte & 0x7f) << shift;
        rest = after;
        if byte & 0x80 == 0 {
            return rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).ok_or_else(malformed);
        }
    }
    Err(malformed())
}

/// Reads a message to its end.
async fn receive(body: &mut RecvStream, largest: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(failed)?;
        into.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).map_err(failed)?;
        if into.len() > largest + PREFIX + 8 {
            return Err(malformed());
        }
    }
    Ok(())
}

/// The caller's end.
pub(crate) struct ClientConnection {
    runtime: Runtime,
    calls: client::SendRequest<Bytes>,
    largest: usize,
    received: Vec<u8>,
}

impl ClientConnection {
    /// Begins HTTP/2 on a socket.
    ///
    /// # Errors
    /// The kernel refuses, or the other end is gone.
    pub(crate) fn open(socket: StdStream, largest: usize) -> io::Result<Self> {
        let runtime = runtime()?;
        let calls = runtime.block_on(async {
            let mut builder = client::Builder::new();
            builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
            let (calls, connection) = builder.handshake(stream(socket)?).await.map_err(failed)?;
            tokio::spawn(async move {
                // Its end is seen by the calls.
                let _ = connection.await;
            });
            Ok::<_, io::Error>(calls)
        })?;
        Ok(Self { runtime, calls, largest, received: Vec::new() })
    }

    /// One round trip.
    ///
    /// # Errors
    /// The server is gone, or answers with a status that is no success.
    pub(crate) fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        if request.len() > self.largest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload beyond what was agreed"));
        }
        let Self { runtime, calls, largest, received } = self;
        runtime.block_on(async {
            let mut ready = calls.clone().ready().await.map_err(failed)?;
            let head = Request::post(METHOD).header("content-type", CONTENT).header("te", "trailers");
            let (response, mut body) = ready.send_request(head.body(()).map_err(failed)?, false).map_err(failed)?;
            body.send_data(message(request), true).map_err(failed)?;
            let mut body = response.await.map_err(failed)?.into_body();
            receive(&mut body, *largest, received).await?;
            let trailers = body.trailers().await.map_err(failed)?;
            match trailers.as_ref().and_then(|trailers| trailers.get("grpc-status")) {
                Some(status) if status == "0" => Ok(()),
                status => Err(failed(format!(
                    "gRPC status {}",
                    status.and_then(|status| status.to_str().ok()).unwrap_or("missing")
                ))),
            }
        })?;
        reply.clear();
        reply.extend_from_slice(payload(received)?);
        Ok(())
    }
}

/// A request, and where its response goes.
type Asked = (Request<RecvStream>, server::SendResponse<Bytes>);

/// The answering end.
pub(crate) struct ServerConnection {
    runtime: Runtime,
    requests: Receiver<Asked>,
    largest: usize,
    received: Vec<u8>,
    answered: Vec<u8>,
}

impl ServerConnection {
    /// Takes HTTP/2 on a socket, whose client need not be there yet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn open(socket: StdStream, largest: usize) -> io::Result<Self> {
        let runtime = runtime()?;
        let (send, requests) = channel(1);
        runtime.block_on(async {
            let socket = stream(socket)?;
            tokio::spawn(async move {
                let mut builder = server::Builder::new();
                builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
                let Ok(mut connection) = builder.handshake(socket).await else { return };
                // `accept` also moves the data of the requests that were accepted.
                while let Some(Ok(asked)) = connection.accept().await {
                    if send.send(asked).await.is_err() {
                        return;
                    }
                }
            });
            Ok::<_, io::Error>(())
        })?;
        Ok(Self { runtime, requests, largest, received: Vec::new(), answered: Vec::new() })
    }

    /// Waits for a call and answers it.
    ///
    /// # Errors
    /// The client is gone.
    pub(crate) fn serve(&mut self, answer: &mut crate::transport::RequestHandler<'_>) -> io::Result<()> {
        let Self { runtime, requests, largest, received, answered } = self;
        runtime.block_on(async {
            let (request, mut respond) = requests.recv().await.ok_or(io::ErrorKind::UnexpectedEof)?;
            receive(&mut request.into_body(), *largest, received).await?;
            answered.clear();
            answer(payload(received)?, answered);
            let head = Response::builder().header("content-type", CONTENT).body(()).map_err(failed)?;
            let mut body: SendStream<Bytes> = respond.send_response(head, false).map_err(failed)?;
            body.send_data(message(answered), false).map_err(failed)?;
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            body.send_trailers(trailers).map_err(failed)
        })
    }
}

#[cfg(test)]
#[path = "grpc_tests.rs"]
mod tests;

//! The front over real sockets: limits, framing, the connection cap and the drain. Waiting is by
//! events; the few time limits that must run out are set to milliseconds.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::Incoming;
use hyper::{Request, Response};
use qm_host_native::http::body::Body;
use qm_host_native::http::error::ApiError;
use qm_host_native::http::read_body::{BodyLimits, read_body};
use qm_host_native::http::server::{ConnectionFacts, ServerLimits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// A served front with a tiny service behind it.
struct Front {
    address: SocketAddr,
    state: Arc<State>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    calls: AtomicUsize,
    arrived: Notify,
    go_on: Notify,
    gone: Notify,
}

impl Front {
    async fn start(limits: ServerLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (stop, stopped) = oneshot::channel();
        let service = {
            let state = Arc::clone(&state);
            move |request, facts| answer(Arc::clone(&state), request, facts)
        };
        let shutdown = async {
            let _stopped = stopped.await;
        };
        let served = tokio::spawn(serve(listener, service, limits, shutdown));
        Self { address, state, stop, served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends octets and reads to the end of the connection.
    async fn exchange(&self, octets: &str) -> String {
        let mut socket = self.connect().await;
        socket.write_all(octets.as_bytes()).await.unwrap();
        read_to_end(&mut socket).await
    }

    fn calls(&self) -> usize {
        self.state.calls.load(Ordering::Relaxed)
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
    facts: Arc<ConnectionFacts>,
) -> Response<Body> {
    state.calls.fetch_add(1, Ordering::Relaxed);
    assert!(facts.peer.ip().is_loopback());
    match request.uri().path() {
        "/body" => {
            let limits = BodyLimits { size_max: 64 * 1024, time_max: Duration::from_secs(10) };
            echo(request, limits).await
        }
        "/body-soon" => {
            let limits = BodyLimits { size_max: 64 * 1024, time_max: Duration::from_millis(20) };
            echo(request, limits).await
        }
        "/wait" => {
            state.arrived.notify_one();
            state.go_on.notified().await;
            Response::new(Body::from("waited"))
        }
        "/stream" => {
            let (frames, source) = mpsc::channel(1);
            let mut draining = facts.draining.clone();
            tokio::spawn(async move {
                frames.send(Bytes::from_static(b"first")).await.unwrap();
                tokio::select! {
                    () = draining.begun() => {
                        frames.send(Bytes::from_static(b"last")).await.unwrap();
                    }
                    () = frames.closed() => state.gone.notify_one(),
                }
            });
            Response::new(Body::stream(Frames(source)))
        }
        "/panic" => panic!("the service is broken on purpose"),
        _ => Response::new(Body::from("hello")),
    }
}

async fn echo(request: Request<Incoming>, limits: BodyLimits) -> Response<Body> {
    match read_body(request.into_body(), limits).await {
        Ok(octets) => Response::new(Body::from(octets)),
        Err(error) => error.into_response(),
    }
}

struct Frames(mpsc::Receiver<Bytes>);

impl Stream for Frames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx)
    }
}

fn limits() -> ServerLimits {
    ServerLimits::new(100)
}

/// No test may hang; nothing here waits for this time to pass.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("did not happen")
}

async fn read_to_end(socket: &mut TcpStream) -> String {
    let mut octets = Vec::new();
    soon(socket.read_to_end(&mut octets)).await.unwrap();
    String::from_utf8(octets).unwrap()
}

async fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let octet = soon(socket.read_u8()).await.unwrap();
        text.push(char::from(octet));
    }
    text
}

fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn requests_are_answered() {
    let front = Front::start(limits()).await;
    let text = front.exchange(GET).await;
    assert_eq!(statuses(&text), ["200"]);
    assert!(text.contains("x-content-type-options: nosniff\r\n") && text.ends_with("hello"));
    let head = front.exchange(&GET.replace("GET", "HEAD")).await;
    assert!(head.contains("content-length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let two = GET.replace("Connection: close\r\n", "");
    assert_eq!(statuses(&front.exchange(&format!("{two}{GET}")).await), ["200", "200"]);
}

#[tokio::test]
async fn heads_are_bounded() {
    let front = Front::start(limits()).await;
    let with = |header: &str| GET.replace("\r\n\r\n", &format!("\r\n{header}\r\n\r\n"));
    for (header, status) in [
        (format!("X-Big: {}", "a".repeat(24_000)), "200"),
        (format!("X-Big: {}", "a".repeat(40_000)), "431"),
        (format!("X-Big: {}", "a".repeat(200_000)), "431"),
        ("a: b\r\n".repeat(5000), "431"),
    ] {
        let text = front.exchange(&with(header.trim())).await;
        assert_eq!(statuses(&text), [status], "{:.40}", header);
    }
}

#[tokio::test]
async fn ambiguous_lengths_end_the_connection() {
    let front = Front::start(limits()).await;
    let head = "POST /body HTTP/1.1\r\nHost: x\r\n";
    let chunked = "5\r\nhello\r\n0\r\n\r\n";
    for (what, request) in [
        ("both", format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}")),
        (
            "turned",
            format!("{head}transfer-encoding: chunked\r\nCONTENT-LENGTH:5\r\n\r\n{chunked}"),
        ),
        ("two", format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")),
        ("list", format!("{head}Content-Length: 5, 6\r\n\r\nhello!")),
        ("coding", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{chunked}")),
        ("order", format!("{head}Transfer-Encoding: chunked, gzip\r\n\r\n{chunked}")),
    ] {
        let text = front.exchange(&format!("{request}{GET}")).await;
        assert_eq!(statuses(&text), ["400"], "{what}: {text}");
    }
    assert_eq!(front.calls(), 0);
    // What looks like it but is not: a chunk that holds such a line, and plain chunks after others.
    let line = "13\r\n\r\nContent-Length: 5\r\n0\r\n\r\n";
    let fine = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let text = front.exchange(&format!("{fine}{line}{fine}{chunked}{GET}")).await;
    assert_eq!(statuses(&text), ["200", "200", "200"], "{text}");
    // A later request of a connection is watched as well as the first.
    let second = format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}");
    let mut socket = front.connect().await;
    socket.write_all(format!("{fine}{chunked}").as_bytes()).await.unwrap();
    read_until(&mut socket, "hello").await;
    socket.write_all(second.as_bytes()).await.unwrap();
    assert_eq!(statuses(&read_to_end(&mut socket).await), ["400"]);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let front = Front::start(limits()).await;
    let head = "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    let sized = |n: usize| format!("{head}Content-Length: {n}\r\n\r\n{}", "x".repeat(n));
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let chunks =
        |n| format!("{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(n));
    for (request, status, code) in [
        (sized(64 * 1024), "200", ""),
        (sized(64 * 1024 + 1), "413", "payload_too_large"),
        (chunks(4), "200", ""),
        (chunks(5), "413", "payload_too_large"),
        (
            sized(10).replace("xxxxxxxxxx", "x").replace("/body", "/body-soon"),
            "408",
            "request_timeout",
        ),
    ] {
        let text = front.exchange(&request).await;
        assert_eq!(statuses(&text), [status], "{:.200}", text);
        assert!(text.contains(code));
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let front =
        Front::start(ServerLimits { head_time: Duration::from_millis(20), ..limits() }).await;
    for part in ["", "GET / HTTP/1.1\r\nHo"] {
        assert_eq!(front.exchange(part).await, "");
    }
    // A connection at rest is not hurried, a later head is.
    let mut socket = front.connect().await;
    socket.write_all(GET.replace("Connection: close\r\n", "").as_bytes()).await.unwrap();
    read_until(&mut socket, "hello").await;
    socket.write_all(b"GET / HT").await.unwrap();
    assert_eq!(read_to_end(&mut socket).await, "");
}

#[tokio::test]
async fn a_client_that_closed_its_sending_side_is_answered() {
    let front = Front::start(limits()).await;
    let mut socket = front.connect().await;
    socket.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    socket.shutdown().await.unwrap();
    soon(front.state.arrived.notified()).await;
    front.state.go_on.notify_one();
    let text = read_to_end(&mut socket).await;
    assert!(text.ends_with("waited"), "{text}");
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_leaves() {
    let front = Front::start(limits()).await;
    let mut socket = front.connect().await;
    socket.write_all(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut socket, "first\r\n").await;
    drop(socket);
    soon(front.state.gone.notified()).await;
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let front = Front::start(limits()).await;
    let text = front.exchange("GET /panic HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(statuses(&text), ["500"]);
    assert!(text.ends_with(&ApiError::internal().json()));
    assert_eq!(statuses(&front.exchange(GET).await), ["200"]);
}

#[tokio::test]
async fn over_the_cap_is_503() {
    let front = Front::start(ServerLimits { connections: 1, ..limits() }).await;
    let mut first = front.connect().await;
    first.write_all(GET.replace("Connection: close\r\n", "").as_bytes()).await.unwrap();
    read_until(&mut first, "hello").await;
    let text = front.exchange(GET).await;
    assert_eq!(statuses(&text), ["503"]);
    assert!(text.contains("retry-after: 5\r\n"), "{text}");
    assert!(text.ends_with(r#""code":"server_saturated"}"#), "{text}");
    drop(first);
    // The place is free once the server has seen the end.
    while statuses(&front.exchange(GET).await) != ["200"] {}
}

#[tokio::test]
async fn a_drain_ends_streams_and_returns() {
    let front = Front::start(limits()).await;
    let mut idle = front.connect().await;
    idle.write_all(GET.replace("Connection: close\r\n", "").as_bytes()).await.unwrap();
    read_until(&mut idle, "hello").await;
    let mut stream = front.connect().await;
    stream.write_all(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut stream, "first\r\n").await;
    let mut waiting = front.connect().await;
    waiting.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    soon(front.state.arrived.notified()).await;

    front.stop.send(()).unwrap();
    assert_eq!(read_to_end(&mut stream).await, "4\r\nlast\r\n0\r\n\r\n");
    assert_eq!(read_to_end(&mut idle).await, "");
    assert!(TcpStream::connect(front.address).await.is_err());
    front.state.go_on.notify_one();
    assert!(read_to_end(&mut waiting).await.ends_with("waited"));
    drop((stream, idle, waiting));
    soon(front.served).await.unwrap();
}

#[tokio::test]
async fn a_drain_has_a_deadline() {
    let front =
        Front::start(ServerLimits { drain_time: Duration::from_millis(20), ..limits() }).await;
    let mut waiting = front.connect().await;
    waiting.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    soon(front.state.arrived.notified()).await;
    front.stop.send(()).unwrap();
    soon(front.served).await.unwrap();
    assert_eq!(read_to_end(&mut waiting).await, "");
}

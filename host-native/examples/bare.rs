//! The yardstick of `scripts/bench`: hyper alone, answering every request with the octets of a
//! recorded answer. Runtime, HTTP settings and socket options are those of the queue server.
//!
//! `bare FILE` reads a raw answer (head and body), listens on a free loopback port and prints it.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

/// The answer to everything.
struct Recorded {
    headers: HeaderMap,
    body: Bytes,
}

impl Recorded {
    fn parse(raw: &str) -> Result<Self, Box<dyn Error>> {
        let (head, body) = raw.split_once("\r\n\r\n").ok_or("no end of the head")?;
        let mut headers = HeaderMap::new();
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").ok_or("a header without a value")?;
            let name: HeaderName = name.parse()?;
            // These two are hyper's own to write.
            if name != DATE && name != CONTENT_LENGTH {
                headers.append(name, HeaderValue::from_str(value)?);
            }
        }
        Ok(Self { headers, body: Bytes::from(body.to_owned()) })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: bare FILE")?;
    let recorded: &'static Recorded =
        Box::leak(Box::new(Recorded::parse(&std::fs::read_to_string(file)?)?));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(recorded))
}

async fn serve(recorded: &'static Recorded) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .keep_alive(true)
        .header_read_timeout(Duration::from_secs(75))
        .max_header_size(32 * 1024)
        .max_buf_size(32 * 1024);
    loop {
        let (stream, _) = listener.accept().await?;
        prepare(&stream)?;
        let service = service_fn(move |request| answer(recorded, request));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A client that went away is no concern of a yardstick.
            let _ = connection.await;
        });
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
    Ok(())
}

async fn answer(
    recorded: &'static Recorded,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // A request's body is read to its end, as every server must.
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(recorded.body.clone()));
    response.headers_mut().clone_from(&recorded.headers);
    Ok(response)
}

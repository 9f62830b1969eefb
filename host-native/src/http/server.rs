//! Accepts connections and runs HTTP/1.1 on them: limits, the connection cap, and the end of it all
//! in good order. It knows nothing of routes; what answers is handed in.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderValue, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::body::Body;
use super::connection::{ClientSocket, Shared};
use super::error::ApiError;
use crate::config::Limit;

/// Limits of the front.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at one time; see [`connection_cap`].
    pub connections: usize,
    /// Octets of a request's head; more is answered 431.
    pub head_octets: usize,
    /// Time for a request's head, from its first octet (of the first request: from the connection).
    pub head_time: Duration,
    /// Time a connection may rest between two requests.
    pub idle_time: Duration,
    /// Time that requests under way have after the shutdown began.
    pub drain_time: Duration,
}

impl ServerLimits {
    /// The contract's limits with that many connections. Connections rest longer than those that
    /// common load balancers keep (60 s), so that it is the balancer who closes them.
    #[must_use]
    pub const fn new(connections: usize) -> Self {
        Self {
            connections,
            head_octets: 32 * 1024,
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            drain_time: Duration::from_secs(10),
        }
    }
}

/// What a service learns about the connection of a request.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// The other end of the socket.
    pub peer: SocketAddr,
    /// When to end what would run for ever.
    pub draining: Draining,
}

/// Tells that the shutdown has begun.
#[derive(Clone, Debug)]
pub struct Draining(watch::Receiver<bool>);

impl Draining {
    /// Follows a channel that turns to `true` when the shutdown begins.
    #[must_use]
    pub const fn new(begun: watch::Receiver<bool>) -> Self {
        Self(begun)
    }

    /// Whether the shutdown has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the shutdown to begin.
    pub async fn begun(&mut self) {
        // A sender that is gone has stopped serving as well.
        let _gone = self.0.wait_for(|begun| *begun).await;
    }
}

/// Serves until `shutdown` is ready and every connection has ended or the drain time is over.
///
/// `service` gets each request with the [`ConnectionFacts`] of its connection. Its future is not
/// dropped when the client merely closes its sending side; it is when the connection breaks.
pub async fn serve<S, F>(
    listener: TcpListener,
    service: S,
    limits: ServerLimits,
    shutdown: impl Future<Output = ()>,
) where
    S: Fn(Request<Incoming>, Arc<ConnectionFacts>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (drain, draining) = watch::channel(false);
    // Every connection holds a receiver: the channel is closed when all of them have ended.
    let (abort, aborted) = watch::channel(());
    let front =
        Front { service, limits, http: http(limits), draining: Draining::new(draining), aborted };
    let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let shedding = Arc::new(Semaphore::new(SHEDDING_MAX));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut shutdown => break,
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            front.start(stream, peer, place);
        } else if let Ok(place) = Arc::clone(&shedding).try_acquire_owned() {
            tokio::spawn(shed(stream, place));
        }
    }
    // From here on new clients are refused by the system instead of waiting in the backlog.
    drop(listener);
    drop(front);
    drain.send_replace(true);
    tracing::info!(connections = abort.receiver_count(), "draining");
    if tokio::time::timeout(limits.drain_time, abort.closed()).await.is_err() {
        tracing::warn!(connections = abort.receiver_count(), "connections are cut, time is up");
        abort.send_replace(());
    }
}

/// How many connections the process may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCap {
    /// For [`ServerLimits::new`].
    pub connections: usize,
    /// The limit on file descriptors.
    pub descriptors: u64,
    /// Whether the descriptors allow fewer than was asked for.
    pub is_lowered: bool,
}

/// Raises the soft limit on file descriptors to the hard one and fits `MAX_CONNECTIONS` to it, with
/// a warning when that lowers it.
#[must_use]
pub fn connection_cap(asked: Limit) -> ConnectionCap {
    let descriptors = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(DESCRIPTORS_UNKNOWN);
    let cap = lower_cap(asked, descriptors);
    if cap.is_lowered {
        tracing::warn!(
            asked = asked.number(),
            allowed = cap.connections,
            descriptors,
            "MAX_CONNECTIONS is lowered to what the file-descriptor limit allows"
        );
    }
    cap
}

fn lower_cap(asked: Limit, descriptors: u64) -> ConnectionCap {
    let reserve = DESCRIPTORS_RESERVED.min(descriptors / 2);
    let allowed = usize::try_from(descriptors - reserve).unwrap_or(usize::MAX).max(1);
    let asked = asked.number().map_or(allowed, |asked| asked as usize);
    ConnectionCap { connections: asked.min(allowed), descriptors, is_lowered: asked > allowed }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut pause = ACCEPT_PAUSE_MIN;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_clients_doing(&error) => {}
            Err(error) => {
                // Out of descriptors or memory: trying again at once would only burn the processor.
                tracing::error!(%error, "failed to accept a connection");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
            }
        }
    }
}

fn is_clients_doing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Frames of a stream are small and must not wait for each other.
    stream.set_nodelay(true)?;
    // A phone that lost its network sends no end. Without this its stream would seem alive, and
    // its owner present, for the quarter of an hour that the system tries to reach it.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNREACHABLE_TIME_MAX))?;
    Ok(())
}

fn http(limits: ServerLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .keep_alive(true)
        // hyper's timer covers the rest between requests; the head has its own, in the socket.
        .header_read_timeout(limits.idle_time)
        .max_header_size(limits.head_octets)
        .max_buf_size(limits.head_octets);
    http
}

struct Front<S> {
    service: S,
    limits: ServerLimits,
    http: http1::Builder,
    draining: Draining,
    aborted: watch::Receiver<()>,
}

impl<S, F> Front<S>
where
    S: Fn(Request<Incoming>, Arc<ConnectionFacts>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    fn start(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "failed to set socket options");
        }
        let shared = Arc::new(Shared::default());
        let socket = ClientSocket::new(stream, Arc::clone(&shared), self.limits.head_time);
        let facts = Arc::new(ConnectionFacts { peer, draining: self.draining.clone() });
        let guarded = Guarded { service: self.service.clone(), shared, facts };
        let connection = self.http.serve_connection(TokioIo::new(socket), guarded).with_upgrades();
        let (mut draining, mut aborted) = (self.draining.clone(), self.aborted.clone());
        tokio::spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let mut is_draining = false;
            // Nothing is lost by dropping what was not chosen: the connection stays pinned until
            // it ends, or until the process is about to end.
            let result = loop {
                tokio::select! {
                    result = connection.as_mut() => break result,
                    () = draining.begun(), if !is_draining => {
                        is_draining = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    _ = aborted.changed() => break Ok(()),
                }
            };
            if let Err(error) = result {
                tracing::debug!(%peer, %error, "connection ended");
            }
            drop(place);
        });
    }
}

/// Stands before the service: refuses ambiguous requests, turns a panic into an answer, and adds
/// what every answer carries.
struct Guarded<S> {
    service: S,
    shared: Arc<Shared>,
    facts: Arc<ConnectionFacts>,
}

impl<S, F> Service<Request<Incoming>> for Guarded<S>
where
    S: Fn(Request<Incoming>, Arc<ConnectionFacts>) -> F,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<F>;

    fn call(&self, request: Request<Incoming>) -> Answering<F> {
        self.shared.is_busy.store(true, Ordering::Relaxed);
        let is_ambiguous = self.shared.is_ambiguous.load(Ordering::Relaxed)
            && request.headers().contains_key(TRANSFER_ENCODING);
        let answer = if is_ambiguous {
            None
        } else {
            Some(Box::pin((self.service)(request, Arc::clone(&self.facts))))
        };
        Answering { answer, shared: Arc::clone(&self.shared) }
    }
}

struct Answering<F> {
    /// `None` for a request that is refused.
    answer: Option<Pin<Box<F>>>,
    shared: Arc<Shared>,
}

impl<F: Future<Output = Response<Body>>> Future for Answering<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = match self.answer.as_mut() {
            None => ApiError::bad_request().closing().into_response(),
            Some(answer) => {
                let polled = AssertUnwindSafe(|| answer.as_mut().poll(cx));
                match std::panic::catch_unwind(polled) {
                    Ok(Poll::Pending) => return Poll::Pending,
                    Ok(Poll::Ready(response)) => response,
                    // The panic itself is logged by the process-wide hook. The future is not
                    // polled again, so what it left half done is dropped unseen.
                    Err(_panic) => ApiError::internal().closing().into_response(),
                }
            }
        };
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().entry(X_CONTENT_TYPE_OPTIONS).or_insert(nosniff);
        self.shared.is_busy.store(false, Ordering::Relaxed);
        if self.shared.is_end_held.load(Ordering::Relaxed) {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(response))
    }
}

/// Answers 503 to a client over the cap, without a place and without parsing anything.
async fn shed(stream: TcpStream, place: OwnedSemaphorePermit) {
    let mut socket = ClientSocket::new(stream, Arc::default(), SHED_TIME_MAX);
    let talk = async {
        // An answer before the request would confuse clients that reuse the connection.
        let mut request = [0; 1024];
        if socket.read(&mut request).await? == 0 {
            return Ok(());
        }
        socket.write_all(&ApiError::server_saturated().into_octets()).await?;
        socket.shutdown().await
    };
    let outcome: Result<io::Result<()>, _> = tokio::time::timeout(SHED_TIME_MAX, talk).await;
    if !matches!(outcome, Ok(Ok(()))) {
        tracing::debug!("a client over the connection cap left without its answer");
    }
    drop(place);
}

/// Clients over the cap that are told so at one time; further ones are just closed.
const SHEDDING_MAX: usize = 64;
const SHED_TIME_MAX: Duration = Duration::from_secs(2);
#[cfg(target_os = "linux")]
const UNREACHABLE_TIME_MAX: Duration = Duration::from_secs(30);
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Left for stores, mail, the clients being shed and the runtime itself.
const DESCRIPTORS_RESERVED: u64 = 256;
const DESCRIPTORS_UNKNOWN: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_leaves_descriptors_for_others() {
        for (asked, descriptors, expected) in [
            (Limit::At(120_000), 1_048_576, (120_000, false)),
            (Limit::At(120_000), 1024, (768, true)),
            (Limit::At(100), 1024, (100, false)),
            (Limit::At(100), 100, (50, true)),
            (Limit::At(100), 0, (1, true)),
            (Limit::Off, 4096, (3840, false)),
        ] {
            let cap = lower_cap(asked, descriptors);
            assert_eq!((cap.connections, cap.is_lowered), expected, "{asked:?} of {descriptors}");
        }
    }
}

//! One client's socket as hyper sees it. This layer adds what hyper has no setting for: a time
//! limit for a request's head apart from the idle time, ambiguous framing, clients that close their
//! sending side and still want the answer, and an end that does not cut the last answer off.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::framing::Framing;
use super::unreadable::own_words;

/// What the socket and the requests on it tell each other. Both live in one task.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The framing of a request was ambiguous; chunked requests are refused from here on.
    pub(super) is_ambiguous: AtomicBool,
    /// A request is being answered.
    pub(super) is_busy: AtomicBool,
    /// The client has closed its sending side while its request was being answered.
    pub(super) is_end_held: AtomicBool,
}

/// The socket.
pub(super) struct ClientSocket<T> {
    io: T,
    shared: Arc<Shared>,
    framing: Framing,
    /// Runs while a head is awaited that must come soon.
    head_deadline: Pin<Box<Sleep>>,
    is_deadline_running: bool,
    head_time_max: Duration,
    closing: Closing,
    /// What is being sent in place of an answer of hyper's, and how much of it is out.
    replacing: Option<(Vec<u8>, usize)>,
}

enum Closing {
    NotYet,
    /// Our side is shut; what the client still sends is thrown away, for a while.
    Draining {
        octets_left: usize,
    },
}

impl<T> ClientSocket<T> {
    /// The first head must come within `head_time_max`, later ones as fast once they have begun.
    pub(super) fn new(io: T, shared: Arc<Shared>, head_time_max: Duration) -> Self {
        Self {
            io,
            shared,
            framing: Framing::new(),
            head_deadline: Box::pin(tokio::time::sleep(head_time_max)),
            is_deadline_running: true,
            head_time_max,
            closing: Closing::NotYet,
            replacing: None,
        }
    }

    fn note_read(&mut self, octets: &[u8]) {
        let seen = self.framing.advance(octets);
        if seen.is_ambiguous {
            self.shared.is_ambiguous.store(true, Ordering::Relaxed);
        }
        if seen.is_head_complete {
            self.is_deadline_running = false;
        }
        if self.framing.is_inside_head() && !self.is_deadline_running {
            self.is_deadline_running = true;
            self.head_deadline.as_mut().reset(Instant::now() + self.head_time_max);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ClientSocket<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {
                if self.is_deadline_running && self.head_deadline.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                return Poll::Pending;
            }
        }
        let new = &buffer.filled()[before..];
        if new.is_empty() {
            // hyper drops the request it is answering when it sees the end. A client that closed
            // its sending side after a whole request may still be reading: the end is shown once
            // the answer is made, for which the request's future wakes this task.
            let is_busy = self.shared.is_busy.load(Ordering::Relaxed);
            if is_busy && self.framing.is_between_requests() {
                self.shared.is_end_held.store(true, Ordering::Relaxed);
                return Poll::Pending;
            }
            return Poll::Ready(Ok(()));
        }
        self.note_read(new);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> ClientSocket<T> {
    /// Sends all of the replacement; then `octets` count as written.
    fn poll_replace(&mut self, cx: &mut Context<'_>, octets: usize) -> Poll<io::Result<usize>> {
        while let Some((text, sent)) = &mut self.replacing {
            let rest = text.get(*sent..).unwrap_or_default();
            if rest.is_empty() {
                self.replacing = None;
            } else {
                match ready!(Pin::new(&mut self.io).poll_write(cx, rest))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    octets => *sent += octets,
                }
            }
        }
        Poll::Ready(Ok(octets))
    }

    /// Throws away what the client still sends. Closing a socket with unread octets makes the
    /// system reset the connection, and the client may lose the answer that tells it why.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Closing::Draining { octets_left } = &mut self.closing else { return Poll::Ready(()) };
        let mut scratch = [0; 8 * 1024];
        while *octets_left > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.io).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {
                    *octets_left = octets_left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(Err(_gone)) => return Poll::Ready(()),
                Poll::Pending => return self.head_deadline.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientSocket<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replacing.is_none() {
            self.replacing = own_words(octets).map(|text| (text, 0));
        }
        if self.replacing.is_some() {
            return self.poll_replace(cx, octets.len());
        }
        Pin::new(&mut self.io).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.closing, Closing::NotYet) {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            self.closing = Closing::Draining { octets_left: DRAIN_OCTETS_MAX };
            self.head_deadline.as_mut().reset(Instant::now() + DRAIN_TIME_MAX);
        }
        self.poll_drain(cx).map(Ok)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        if let Some(first) = first.filter(|first| own_words(first).is_some()) {
            return self.poll_write(cx, first);
        }
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

const DRAIN_OCTETS_MAX: usize = 512 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

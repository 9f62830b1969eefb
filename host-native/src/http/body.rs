//! The body of every answer: octets known at once, or a stream (events, proxied answers).

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

type BoxedStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of an answer.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    Stream(BoxedStream),
}

impl Body {
    /// No octets.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    /// A stream that ends when its source ends.
    pub fn stream(source: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(Sound(Box::pin(source)))))
    }

    /// A stream whose source may break off; the connection is then cut, so that the reader cannot
    /// take a part for the whole.
    pub fn fallible(source: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(source)))
    }

    /// The octets, unless this is a stream.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes),
            Kind::Stream(_) => None,
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Body({} octets)", bytes.len()),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Stream(stream) => {
                let next = ready!(stream.as_mut().poll_next(cx));
                Poll::Ready(next.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.as_bytes().is_some_and(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.as_bytes().map_or_else(SizeHint::default, |b| SizeHint::with_exact(b.len() as u64))
    }
}

/// Lifts a stream that cannot fail.
struct Sound<S>(Pin<Box<S>>);

impl<S: Stream<Item = Bytes>> Stream for Sound<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map(|item| item.map(Ok))
    }
}

/// Answers are made without IO, so making one cannot fail.
pub type Answer = Result<hyper::Response<Body>, Infallible>;

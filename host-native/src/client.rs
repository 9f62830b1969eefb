//! Requests of this server and its command line to others: webhooks, probes, another server. One
//! client of the HTTP library that serves here anyway; TLS by rustls against the system's roots.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// A client; copies share connections.
#[derive(Clone)]
pub struct Client(HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// One request.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The method.
    pub method: Method,
    /// The address; its credentials and query never reach an error.
    pub url: &'a str,
    /// Headers besides the common ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A JSON body.
    pub json: Option<String>,
    /// From the connection to the last octet.
    pub time_max: Duration,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The body, at most 16 MiB.
    pub body: Bytes,
}

/// Why nothing came back. Names no address: it may hold a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The address is none.
    Address,
    /// No answer in time.
    Timeout,
    /// No connection, or it broke.
    Network,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "the address cannot be used",
            Self::Timeout => "no answer in time",
            Self::Network => "no connection, or it broke",
        })
    }
}

impl std::error::Error for CallError {}

impl Client {
    /// A client with the roots of this system, or those of Mozilla where it has none.
    #[must_use]
    pub fn new() -> Self {
        let builder = HttpsConnectorBuilder::new();
        let builder = match builder.with_native_roots() {
            Ok(builder) => builder,
            Err(_none) => HttpsConnectorBuilder::new().with_webpki_roots(),
        };
        let connector = builder.https_or_http().enable_http1().build();
        Self(HyperClient::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a request and reads the answer. Redirects are not followed.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn send(&self, call: Call<'_>) -> Result<Answered, CallError> {
        let mut request = Request::builder().method(call.method).uri(call.url);
        let agent = concat!("queue-manager/", env!("CARGO_PKG_VERSION"));
        request = request.header(USER_AGENT, agent);
        if call.json.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(call.json.unwrap_or_default()));
        let request = request.body(body).map_err(|_| CallError::Address)?;
        let exchange = async {
            let response = self.0.request(request).await.map_err(|_| CallError::Network)?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), BODY_MAX).collect().await;
            let body = body.map_err(|_| CallError::Network)?.to_bytes();
            Ok(Answered { status, body })
        };
        tokio::time::timeout(call.time_max, exchange).await.unwrap_or(Err(CallError::Timeout))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

const BODY_MAX: usize = 16 * 1024 * 1024;

//! Asking the queue server: bounded in time and size, redirects not followed.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use qm_core::edge::{ANSWER_BYTES_MAX, Answer, Query};
use worker::{
    AbortController, AbortSignal, Delay, Fetch, Headers, Request, RequestInit, RequestRedirect,
};

/// What came back.
pub(super) enum Got {
    Timeout,
    Unreachable,
    Unreadable,
    Http { status: u16, body: String, etag: Option<String> },
}

impl Got {
    pub(super) fn answer(&self) -> Answer<'_> {
        match self {
            Self::Timeout => Answer::Timeout,
            Self::Unreachable => Answer::Unreachable,
            Self::Unreadable => Answer::Unreadable,
            Self::Http { status, body, .. } => Answer::Http { status: *status, body },
        }
    }
}

/// Asks once; the body belongs to the time given.
pub(super) async fn ask(query: &Query, budget_ms: u32) -> Got {
    let controller = AbortController::default();
    let signal = controller.signal();
    let exchange = Box::pin(exchange(query, &signal));
    let late = Delay::from(Duration::from_millis(budget_ms.into()));
    match select(exchange, late).await {
        Either::Left((got, _)) => got.unwrap_or(Got::Unreachable),
        Either::Right(_) => {
            controller.abort();
            Got::Timeout
        }
    }
}

async fn exchange(query: &Query, signal: &AbortSignal) -> worker::Result<Got> {
    let headers = Headers::new();
    for (name, value) in &query.headers {
        headers.set(name, value)?;
    }
    let mut init = RequestInit::new();
    init.with_headers(headers).with_redirect(RequestRedirect::Manual);
    let request = Request::new_with_init(&query.url, &init)?;
    let mut response = Fetch::Request(request).send_with_signal(signal).await?;
    let status = response.status_code();
    let etag = response.headers().get("etag")?;
    let mut octets = Vec::new();
    // An answer without a body has no stream.
    if let Ok(mut stream) = response.stream() {
        while let Some(part) = stream.next().await {
            octets.extend(part?);
            if octets.len() > ANSWER_BYTES_MAX {
                return Ok(Got::Unreadable);
            }
        }
    }
    let body = match String::from_utf8(octets) {
        Ok(body) => body,
        Err(_) if status == 200 => return Ok(Got::Unreadable),
        Err(_) => String::new(),
    };
    Ok(Got::Http { status, body, etag })
}

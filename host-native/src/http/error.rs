//! Every error answer of the contract, in one table: status, code and a text for people. Routes
//! return an [`ApiError`]; only here does it become octets.

use std::borrow::Cow;

use hyper::Response;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use serde::Serialize;

use super::body::Body;

/// The content type of every JSON answer.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// A refusal or a fault, as a client sees it (API-10): `{"error": …, "code": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The stable part that integrations branch on.
    pub code: &'static str,
    /// The text for people.
    pub message: Cow<'static, str>,
    /// Seconds for `Retry-After`.
    pub retry_after: Option<u32>,
    /// The methods for `Allow`.
    pub allow: Option<&'static str>,
    /// Further headers; boxed, since almost no error has any.
    pub headers: Option<Box<Vec<(HeaderName, HeaderValue)>>>,
    /// Whether the connection cannot go on, because the request was not read to its end.
    pub close: bool,
}

#[derive(Serialize)]
struct Wire<'a> {
    error: &'a str,
    code: &'a str,
}

macro_rules! table {
    ($(
        $(#[$doc:meta])*
        $code:ident $status:literal $message:literal $(retry $retry:literal)?;
    )*) => {
        impl ApiError {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $code() -> Self {
                    Self::new($status, stringify!($code), $message)$(.retry($retry))?
                }
            )*
        }

        /// Status and code of every row of the table, for documentation and tests.
        pub const TABLE: &[(u16, &str)] = &[$(($status, stringify!($code))),*];
    };
}

table! {
    /// API-12.
    room_not_found 404 "no such room on this server";
    /// API-13.
    invalid_token 401 "the token does not verify, queue again";
    /// API-14.
    stale_ticket 409 "the ticket belongs to an earlier queue of this room, queue again";
    /// API-19; also every malformed room id in a path, and reserved ids on creation.
    invalid_room_id 400 "roomId must be 1 to 64 characters of a-z, A-Z, 0-9, _ and -";
    /// API-20.
    invalid_token_field 400 "token must be a string";
    /// API-21.
    blocked_by_protection 403 "this request was refused by bot protection";
    /// API-22.
    queue_identity_limit 429 "too many places are held from this address" retry 30;
    /// API-23.
    prequeue_identity_limit 429 "too many early places are held from this address" retry 30;
    /// API-24.
    prequeue_full 503 "the room's early queue is full, try again" retry 30;
    /// API-25.
    storage_unavailable 503 "the place could not be recorded, try again" retry 2;
    /// API-26.
    sse_capacity 503 "too many streams are open, poll /api/status" retry 5;
    /// API-27.
    sse_per_ip_limit 429 "too many streams are open from this address" retry 5;
    /// API-28.
    unauthorized 401 "a valid key is required";
    /// API-29.
    credential_in_query 401 "a key is accepted only as Authorization: Bearer";
    /// API-30.
    edge_required 403 "this server is reached through its edge only";
    /// API-31.
    server_saturated 503 "the server is busy, try again" retry 5;
    /// API-32.
    uri_too_long 414 "the URL is longer than 4096 bytes";
    /// API-33.
    bad_request 400 "the request cannot be read";
    /// The headers of a request are too large.
    headers_too_large 431 "the request headers are larger than 32 KiB";
    /// API-34.
    not_inline_host 404 "this host fronts no room";
    /// API-35.
    internal 500 "internal error";
    /// API-36.
    email_notify_disabled 404 "this server sends no mail";
    /// API-37.
    invalid_email 400 "email must be a mail address";
    /// API-38.
    ticket_ended 409 "the ticket has ended";
    /// API-39.
    invalid_json 400 "the body is not JSON";
    /// API-39.
    invalid_body 400 "the body must be a JSON object without repeated members";
    /// API-41.
    not_found 404 "no such path on this server";
    /// AUT-05.
    insufficient_role 403 "this credential may not do that";
    /// AUT-12.
    csrf_required 403 "the header X-QM-CSRF is required";
    /// ADM-31.
    redacted_shape 400 "a room read with a monitor link is incomplete and cannot be written back";
    /// ADM-46.
    nothing_to_change 400 "send opensAt or preQueueMaxPerIp";
    /// ADM-52.
    ticket_not_found 404 "no such ticket in this room";
    /// ADM-52.
    invalid_ticket 400 "ticket must be a ticket number";
    /// ADM-01.
    operator_not_found 404 "no such operator";
    /// ADM-01.
    invalid_role 400 "role must be owner, operator or viewer";
    /// ADM-05.
    invalid_bucket 400 "bucket must be hour or day";
    /// ADM-62.
    invalid_range 400 "range must be 15m, 1h, 6h, 24h or 7d";
    /// ADM-08.
    alerts_disabled 400 "ALERT_WEBHOOK_URL is not set";
    /// ADM-08.
    webhook_failed 502 "the webhook refused the test alert";
}

impl ApiError {
    /// An error outside the table; prefer a row of it.
    #[must_use]
    pub const fn new(status: u16, code: &'static str, message: &'static str) -> Self {
        Self {
            status,
            code,
            message: Cow::Borrowed(message),
            retry_after: None,
            allow: None,
            headers: None,
            close: false,
        }
    }

    /// A field that does not fit; `code` is `invalid_<field>`, the text names the bound.
    #[must_use]
    pub fn invalid_field(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, code, "").with_message(message)
    }

    /// ADM-35.
    #[must_use]
    pub fn unknown_field(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid_field("unknown_field", message)
    }

    /// ADM-34.
    #[must_use]
    pub fn conflicting_field(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid_field("conflicting_field", message)
    }

    /// API-08.
    #[must_use]
    pub const fn method_not_allowed(allow: &'static str) -> Self {
        let mut error = Self::new(405, "method_not_allowed", "this path has other methods");
        error.allow = Some(allow);
        error
    }

    /// API-15; the seconds until one call is back.
    #[must_use]
    pub const fn rate_limited(retry_after: u32) -> Self {
        Self::new(429, "rate_limited", "too many requests from this address").retry(retry_after)
    }

    /// AUT-06; the seconds of lock left.
    #[must_use]
    pub const fn too_many_auth_failures(retry_after: u32) -> Self {
        Self::new(429, "too_many_auth_failures", "too many wrong keys from this address")
            .retry(retry_after)
    }

    /// API-33: the body broke off.
    #[must_use]
    pub const fn request_aborted() -> Self {
        Self::new(400, "request_aborted", "the request broke off").closing()
    }

    /// The body took too long.
    #[must_use]
    pub const fn request_timeout() -> Self {
        Self::new(408, "request_timeout", "the request body took too long").closing()
    }

    /// API-40.
    #[must_use]
    pub const fn payload_too_large() -> Self {
        Self::new(413, "payload_too_large", "the request body is too large").closing()
    }

    /// With another text.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    /// With `Retry-After`.
    #[must_use]
    pub const fn retry(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// With one header more.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.get_or_insert_default().push((name, value));
        self
    }

    /// With the end of the connection after the answer.
    #[must_use]
    pub const fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The body text.
    #[must_use]
    pub fn json(&self) -> String {
        let wire = Wire { error: &self.message, code: self.code };
        serde_json::to_string(&wire).expect("two texts are always JSON")
    }

    /// The answer as octets that end the connection, for clients that hyper does not serve.
    #[must_use]
    pub fn into_octets(self) -> Vec<u8> {
        let body = self.json();
        let response = self.closing().into_response();
        let mut octets = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
        for (name, value) in response.headers() {
            octets.extend_from_slice(name.as_str().as_bytes());
            octets.extend_from_slice(b": ");
            octets.extend_from_slice(value.as_bytes());
            octets.extend_from_slice(b"\r\n");
        }
        octets
            .extend_from_slice(format!("content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        octets
    }

    /// The answer.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.json()));
        *response.status_mut() = self.status.try_into().expect("the table holds valid statuses");
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        for (name, value) in self.headers.into_iter().flat_map(|list| *list) {
            headers.append(name, value);
        }
        response
    }
}

impl From<ApiError> for Response<Body> {
    fn from(error: ApiError) -> Self {
        error.into_response()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_statuses_are_errors() {
        let codes: BTreeSet<_> = TABLE.iter().map(|(_, code)| code).collect();
        assert_eq!(codes.len(), TABLE.len());
        assert!(TABLE.iter().all(|(status, _)| (400..600).contains(status)));
    }

    #[test]
    fn an_answer_has_the_contract_shape() {
        let error = ApiError::rate_limited(7)
            .with_header(HeaderName::from_static("x-qm-test"), HeaderValue::from_static("1"));
        let response = error.with_message("so \"many\"").into_response();
        assert_eq!(response.status(), 429);
        let text = response.body().as_bytes().expect("errors are not streams");
        assert_eq!(&text[..], br#"{"error":"so \"many\"","code":"rate_limited"}"#);
        for (name, value) in [
            ("content-type", "application/json; charset=utf-8"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("retry-after", "7"),
            ("x-qm-test", "1"),
        ] {
            assert_eq!(response.headers()[name], value);
        }
        let wrong_method = ApiError::method_not_allowed("GET, HEAD").into_response();
        assert_eq!(wrong_method.headers()["allow"], "GET, HEAD");
        assert!(!wrong_method.headers().contains_key("connection"));
        assert_eq!(ApiError::request_timeout().into_response().headers()["connection"], "close");
    }
}

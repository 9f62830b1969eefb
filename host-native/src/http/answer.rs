//! Turning the core's replies and JSON values into HTTP answers.

use std::borrow::Cow;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use qm_core::reply::Reply;
use serde::Serialize;

use super::body::Body;

/// Converts a reply of the core.
#[must_use]
pub fn from_reply(reply: Reply) -> Response<Body> {
    let mut response = Response::new(Body::from(reply.body));
    // Room for what the route and the front add: growing later would hash everything anew.
    response.headers_mut().reserve(reply.headers.len() + ADDED_HEADERS);
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        let value = match value {
            Cow::Borrowed(text) => Ok(HeaderValue::from_static(text)),
            Cow::Owned(text) => HeaderValue::try_from(text),
        };
        if let Ok(value) = value {
            response.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    response
}

/// Cookies, `vary`, the origin, and hyper's own.
const ADDED_HEADERS: usize = 6;

/// A 200 with `value` as JSON that no cache keeps.
#[must_use]
pub fn json(value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_string(value).expect("answers have text keys and finite numbers");
    from_reply(Reply::json(200, text))
}

/// Adds a header whose value was built from checked parts.
pub fn add_header(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().append(HeaderName::from_static(name), value);
    }
}

/// Adds cookies.
pub fn set_cookies(response: &mut Response<Body>, cookies: &[String]) {
    for cookie in cookies {
        add_header(response, "set-cookie", cookie);
    }
}

//! Request bodies: read within a size and a time, then parsed as one JSON object. A repeated member
//! is refused at any depth, because two readers of such a text may see two different values.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::ApiError;

/// How large a body may be, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Octets.
    pub size_max: usize,
    /// Time from the first look to the last octet.
    pub time_max: Duration,
}

/// 64 KiB within 10 s.
pub const JSON_BODY_LIMITS: BodyLimits =
    BodyLimits { size_max: 64 * 1024, time_max: Duration::from_secs(10) };

/// Reads a JSON body within [`JSON_BODY_LIMITS`].
///
/// # Errors
/// As [`read_body`].
pub async fn read_json_body<B: Body<Data = Bytes>>(body: B) -> Result<Bytes, ApiError> {
    read_body(body, JSON_BODY_LIMITS).await
}

/// Reads a body to its end.
///
/// # Errors
/// `payload_too_large`, `request_timeout` or `request_aborted`.
pub async fn read_body<B: Body<Data = Bytes>>(
    body: B,
    limits: BodyLimits,
) -> Result<Bytes, ApiError> {
    // An announced size is judged before anything is read.
    if body.size_hint().lower() > limits.size_max as u64 {
        return Err(ApiError::payload_too_large());
    }
    match tokio::time::timeout(limits.time_max, collect(body, limits.size_max)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(ApiError::request_timeout()),
    }
}

async fn collect<B: Body<Data = Bytes>>(body: B, size_max: usize) -> Result<Bytes, ApiError> {
    let mut body = pin!(body);
    // Most bodies come in one piece, which is then not copied.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|_| ApiError::request_aborted())?.into_data() else {
            continue;
        };
        if first.len() + rest.len() + chunk.len() > size_max {
            return Err(ApiError::payload_too_large());
        }
        if first.is_empty() {
            first = chunk;
        } else {
            rest.extend_from_slice(&chunk);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

/// Parses one JSON object.
///
/// # Errors
/// `invalid_json` for what is no JSON (nesting deeper than 128 included), `invalid_body` for
/// another value than an object and for a repeated member at any depth.
pub fn parse_json_object(text: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = Strict
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value))
        // The visitor takes every value, so a complaint about data is the one it makes itself.
        .map_err(
            |e| if e.is_data() { ApiError::invalid_body() } else { ApiError::invalid_json() },
        )?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid_body()),
    }
}

/// Builds a [`Value`] and refuses repeated members.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self)?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("repeated member"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::http::body;

    #[test]
    fn objects() {
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        let (shallow, bottomless) = (deep(100), deep(200));
        for (text, expected) in [
            (r#"{}"#, Ok(0)),
            (r#" {"a":1,"b":{"a":[null,true,-1,1.5,"x"]}} "#, Ok(2)),
            (r#"{"__proto__":1,"constructor":2}"#, Ok(2)),
            (&shallow, Ok(1)),
            (&bottomless, Err("invalid_json")),
            ("", Err("invalid_json")),
            ("{", Err("invalid_json")),
            ("{}x", Err("invalid_json")),
            (r#"{"a":1e999}"#, Err("invalid_json")),
            (r#"{"a":"\ud800"}"#, Err("invalid_json")),
            (r#"{'a':1}"#, Err("invalid_json")),
            (r#"{"a":1,}"#, Err("invalid_json")),
            (r#"{"a":NaN}"#, Err("invalid_json")),
            ("\u{feff}{}", Err("invalid_json")),
            ("[]", Err("invalid_body")),
            ("null", Err("invalid_body")),
            ("\"x\"", Err("invalid_body")),
            ("5", Err("invalid_body")),
            (r#"{"a":1,"a":1}"#, Err("invalid_body")),
            (r#"{"a":1,"\u0061":2}"#, Err("invalid_body")),
            (r#"{"a":[{"b":{"c":1,"c":2}}]}"#, Err("invalid_body")),
        ] {
            let got = parse_json_object(text.as_bytes()).map(|map| map.len());
            assert_eq!(got.map_err(|e| e.code), expected, "{text:.60}");
        }
        assert_eq!(parse_json_object(b"{\"a\":\"\xff\"}").unwrap_err().code, "invalid_json");
    }

    #[tokio::test]
    async fn bodies() {
        let limits = BodyLimits { size_max: 4, time_max: Duration::from_secs(10) };
        let chunks = |list: &[&'static str]| {
            let list: Vec<_> = list.iter().map(|c| Ok(Bytes::from_static(c.as_bytes()))).collect();
            body::Body::fallible(Items(list.into()))
        };
        let broken = body::Body::fallible(Items(
            [Ok(Bytes::from_static(b"a")), Err(io::Error::other("cut"))].into(),
        ));
        for (body, expected) in [
            (body::Body::empty(), Ok("")),
            (body::Body::from("abcd"), Ok("abcd")),
            (body::Body::from("abcde"), Err("payload_too_large")),
            (chunks(&["ab", "c", "d"]), Ok("abcd")),
            (chunks(&["ab", "cd", "e"]), Err("payload_too_large")),
            (broken, Err("request_aborted")),
        ] {
            let got = read_body(body, limits).await;
            let got = got.map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|e| e.code);
            assert_eq!(got, expected.map(str::to_owned));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_timed_out() {
        let error = read_json_body(body::Body::stream(Silence)).await.unwrap_err();
        assert_eq!((error.status, error.code), (408, "request_timeout"));
    }

    struct Items(std::collections::VecDeque<io::Result<Bytes>>);

    impl futures_core::Stream for Items {
        type Item = io::Result<Bytes>;

        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Ready(self.0.pop_front())
        }
    }

    struct Silence;

    impl futures_core::Stream for Silence {
        type Item = Bytes;

        fn poll_next(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Bytes>> {
            std::task::Poll::Pending
        }
    }
}

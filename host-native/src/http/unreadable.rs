//! hyper itself answers requests that it cannot read, with nothing but a status. Every error of
//! this server says in JSON what is wrong (HOL-16): such an answer is put into our own words on its
//! way to the socket.

use super::error::ApiError;

/// Our answer in place of a bare one of hyper's. Everything that went through a service carries
/// `nosniff`, which tells the two apart.
pub(super) fn own_words(octets: &[u8]) -> Option<Vec<u8>> {
    let is_bare_head = octets.len() <= BARE_OCTETS_MAX
        && octets.starts_with(b"HTTP/1.")
        && octets.ends_with(b"\r\n\r\n");
    if !is_bare_head {
        return None;
    }
    let error = match octets.get(9..12)? {
        b"400" => ApiError::bad_request(),
        b"414" => ApiError::uri_too_long(),
        b"431" => ApiError::headers_too_large(),
        _ => return None,
    };
    let text = std::str::from_utf8(octets).ok()?;
    (!text.contains("nosniff")).then(|| error.into_octets())
}

/// hyper's bare answers are about a hundred octets.
const BARE_OCTETS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_refusals_are_replaced() {
        let rest = "connection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        for (status, code) in [
            ("400 Bad Request", "bad_request"),
            ("414 URI Too Long", "uri_too_long"),
            ("431 Request Header Fields Too Large", "headers_too_large"),
        ] {
            let bare = format!("HTTP/1.1 {status}\r\n{rest}");
            let text = String::from_utf8(own_words(bare.as_bytes()).unwrap()).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{text}");
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains("connection: close") && head.contains("nosniff"), "{head}");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            assert!(body.contains(code), "{body}");
            let ours = format!("HTTP/1.1 {status}\r\nx-content-type-options: nosniff\r\n{rest}");
            assert_eq!(own_words(ours.as_bytes()), None);
        }
        for other in [
            format!("HTTP/1.1 200 OK\r\n{rest}"),
            format!("HTTP/1.1 400 Bad Request\r\n{rest}body"),
            "data: HTTP/1.1 400\n\n".into(),
            String::new(),
        ] {
            assert_eq!(own_words(other.as_bytes()), None, "{other}");
        }
    }
}

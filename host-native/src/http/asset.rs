//! Files built into the binary: page assets under names that carry their digest, the snippet,
//! released connector files and page templates. Each is compressed once, at the first need or by
//! [`warm`] at the start.

use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use hyper::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};

use super::body::Body;
use crate::connector::release;

/// The files of `public/` served under `/assets/`; a page's script is one file.
static FILES: LazyLock<Box<[Asset]>> = LazyLock::new(|| {
    Box::new([
        Asset::new("waiting.css", include_bytes!("../../../public/waiting.css")),
        Asset::new("waiting.js", include_bytes!("../../../public/waiting.js")),
        Asset::new("console.css", include_bytes!("../../../public/console.css")),
        Asset::new("console.js", include_bytes!("../../../public/console.js")),
    ])
});

/// The snippet as released last, so that its digest is the one the registry tells.
static SNIPPET: LazyLock<Asset> = LazyLock::new(|| {
    let release = release::at_latest("/snippet/qm.js");
    Asset::new("qm.js", release.expect("a test shows that the snippet is released").octets)
});

/// The released files of all connectors, in the order of [`release::FILES`].
static RELEASES: LazyLock<Box<[Asset]>> = LazyLock::new(|| {
    release::FILES.iter().map(|file| Asset::new(file.name(), file.octets)).collect()
});

/// The template of the waiting page.
pub const WAITING_HTML: &str = include_str!("../../../public/waiting.html");

/// The template of short pages about something that went wrong.
pub const NOT_FOUND_HTML: &str = include_str!("../../../public/notfound.html");

/// The template of the console.
pub const CONSOLE_HTML: &str = include_str!("../../../public/console.html");

/// The path of a file of `public/`, for templates: `waiting.js` is `/assets/waiting-<hash>.js`.
/// On an inline host `/__qm` goes before it.
///
/// # Panics
/// When no such file is built in, which a test of the template shows.
#[must_use]
pub fn asset_path(file: &str) -> &'static str {
    let asset = FILES.iter().find(|asset| asset.file == file);
    &asset.expect("templates name files of the table").path
}

/// The answer to a request for `path`, if it is the path of an asset. The body is left out by the
/// caller for `HEAD`.
#[must_use]
pub fn serve_asset(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let asset = FILES.iter().find(|asset| asset.path == path)?;
    let mut response = asset.respond(headers);
    let immutable = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, immutable);
    Some(response)
}

/// The answer to a request for `/snippet/qm.js`.
#[must_use]
pub fn serve_snippet(headers: &HeaderMap) -> Response<Body> {
    let mut response = SNIPPET.respond(headers);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// The answer to a request for a released file, if `path` names one: by its version for ever, by
/// a `latest` name until the next release (VER-21 to VER-23).
#[must_use]
pub fn serve_release(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let (file, lifetime) = match release::at_version(path) {
        Some(file) => (file, "public, max-age=31536000, immutable"),
        None => (release::at_latest(path)?, "no-cache"),
    };
    let index = release::FILES.iter().position(|other| other.url == file.url)?;
    let mut response = RELEASES.get(index)?.respond(headers);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(lifetime));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Some(response)
}

/// Compresses everything; for a thread of its own at the start.
pub fn warm() {
    for asset in FILES.iter().chain([&*SNIPPET]) {
        for coding in CODINGS {
            asset.encoded(coding);
        }
    }
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Brotli,
    Gzip,
    Deflate,
    Identity,
}

/// In the order of preference among equal weights.
const CODINGS: [Coding; 4] = [Coding::Brotli, Coding::Gzip, Coding::Deflate, Coding::Identity];

impl Coding {
    const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Identity => "identity",
        }
    }

    fn apply(self, octets: &'static [u8]) -> Bytes {
        let sound = "writing to a Vec cannot fail";
        match self {
            Self::Identity => Bytes::from_static(octets),
            Self::Brotli => {
                let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 11, 22);
                writer.write_all(octets).expect(sound);
                writer.into_inner().into()
            }
            Self::Gzip => {
                let mut writer = GzEncoder::new(Vec::new(), Compression::best());
                writer.write_all(octets).expect(sound);
                writer.finish().expect(sound).into()
            }
            // "deflate" is the zlib format (RFC 9110, 8.4.1.2).
            Self::Deflate => {
                let mut writer = ZlibEncoder::new(Vec::new(), Compression::best());
                writer.write_all(octets).expect(sound);
                writer.finish().expect(sound).into()
            }
        }
    }
}

/// What one coding of a file is sent with.
#[derive(Debug)]
struct Encoded {
    octets: Bytes,
    tag: HeaderValue,
}

#[derive(Debug)]
struct Asset {
    file: &'static str,
    octets: &'static [u8],
    /// 22 characters of the digest (WAI-05).
    hash: String,
    path: String,
    encoded: [OnceLock<Encoded>; CODINGS.len()],
}

impl Asset {
    fn new(file: &'static str, octets: &'static [u8]) -> Self {
        let mut hash = URL_SAFE_NO_PAD.encode(Sha256::digest(octets));
        hash.truncate(22);
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, "bin"));
        let path = format!("/assets/{stem}-{hash}.{extension}");
        Self { file, octets, hash, path, encoded: Default::default() }
    }

    fn encoded(&self, coding: Coding) -> &Encoded {
        self.encoded[coding as usize].get_or_init(|| {
            // A tag for each coding, strong: the octets differ.
            let tag = match coding {
                Coding::Identity => format!("\"{}\"", self.hash),
                _ => format!("\"{}-{}\"", self.hash, coding.name()),
            };
            let tag = HeaderValue::try_from(tag).expect("base64url is a header value");
            Encoded { octets: coding.apply(self.octets), tag }
        })
    }

    fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.file.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            Some((_, "tgz")) => "application/gzip",
            Some((_, "zip")) => "application/zip",
            Some((_, "tpl")) => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        })
    }

    fn is_archive(&self) -> bool {
        matches!(self.file.rsplit_once('.'), Some((_, "tgz" | "zip")))
    }

    fn respond(&self, request: &HeaderMap) -> Response<Body> {
        let coding = if self.is_archive() { Coding::Identity } else { choose(request) };
        let encoded = self.encoded(coding);
        let is_known = knows(request, &encoded.tag);
        let body = if is_known { Body::empty() } else { encoded.octets.clone().into() };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(ETAG, encoded.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, self.content_type());
        if coding != Coding::Identity {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        response
    }
}

/// The coding that `Accept-Encoding` weighs highest (RFC 9110, 12.5.3). Plain octets are the
/// fallback even where the client excludes them: a script it must decode beats none.
fn choose(request: &HeaderMap) -> Coding {
    let lines = request.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut weights: [Option<u16>; CODINGS.len()] = [None; CODINGS.len()];
    let mut any = None;
    for (name, weight) in lines.flat_map(|line| line.split(',')).filter_map(weighted) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("*") {
            any = Some(weight);
        } else if is("x-gzip") {
            weights[Coding::Gzip as usize] = Some(weight);
        } else if let Some(coding) = CODINGS.iter().find(|coding| is(coding.name())) {
            weights[*coding as usize] = Some(weight);
        }
    }
    let mut best = (Coding::Identity, weights[Coding::Identity as usize].unwrap_or(0));
    for coding in CODINGS {
        let weight = weights[coding as usize].or(any).unwrap_or(0);
        let is_plain_so_far = best.0 == Coding::Identity;
        if weight > best.1 || (weight == best.1 && weight > 0 && is_plain_so_far) {
            best = (coding, weight);
        }
    }
    best.0
}

/// `gzip;q=0.5` is `("gzip", 500)`; an entry that cannot be read is left out.
fn weighted(entry: &str) -> Option<(&str, u16)> {
    let mut parts = entry.split(';');
    let name = parts.next()?.trim();
    let mut weight = 1000;
    for parameter in parts {
        let (key, value) = parameter.split_once('=')?;
        if key.trim().eq_ignore_ascii_case("q") {
            weight = thousandths(value.trim())?;
        }
    }
    (!name.is_empty()).then_some((name, weight))
}

fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let fraction: u16 = format!("{fraction:0<3}").parse().ok().filter(|_| digits)?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}

/// Whether `If-None-Match` names the tag; comparison is weak there (RFC 9110, 13.1.2).
fn knows(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let lines = request.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).any(|known| {
        known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset() -> Asset {
        Asset::new("qm.js", include_bytes!("asset.rs"))
    }

    fn request(accept: Option<&'static str>, known: Option<&HeaderValue>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
        }
        if let Some(known) = known {
            headers.insert(IF_NONE_MATCH, known.clone());
        }
        headers
    }

    #[test]
    fn codings_are_negotiated() {
        for (accept, expected) in [
            (None, "identity"),
            (Some(""), "identity"),
            (Some("identity"), "identity"),
            (Some("zstd"), "identity"),
            (Some("gzip, deflate, br, zstd"), "br"),
            (Some("GZIP"), "gzip"),
            (Some("x-gzip"), "gzip"),
            (Some("br;q=0, gzip"), "gzip"),
            (Some("br;Q=0.000 ,gzip ; q=0.1"), "gzip"),
            (Some("gzip;q=0, br;q=0, deflate;q=0"), "identity"),
            (Some("gzip;q=0.4, deflate;q=0.5"), "deflate"),
            (Some("gzip;q=0.5, identity"), "identity"),
            (Some("gzip, identity"), "gzip"),
            (Some("*"), "br"),
            (Some("*;q=0"), "identity"),
            (Some("br;q=0, *;q=0.5"), "gzip"),
            (Some("br;q=2, gzip;q=x, deflate"), "deflate"),
            (Some("br;q=1.000"), "br"),
        ] {
            assert_eq!(choose(&request(accept, None)).name(), expected, "{accept:?}");
        }
    }

    #[test]
    fn each_coding_has_its_own_tag() {
        let asset = asset();
        let tags: Vec<_> =
            CODINGS.iter().map(|coding| asset.encoded(*coding).tag.clone()).collect();
        for (index, coding) in CODINGS.iter().enumerate() {
            for (known, tag) in tags.iter().enumerate() {
                let response = asset.respond(&request(Some(coding.name()), Some(tag)));
                let expected = if known == index { 304 } else { 200 };
                assert_eq!(response.status(), expected, "{coding:?} {tag:?}");
                assert_eq!(response.headers()[ETAG], tags[index]);
                let is_empty = response.body().as_bytes().is_some_and(Bytes::is_empty);
                assert_eq!(is_empty, expected == 304);
            }
            assert!(
                *coding == Coding::Identity || {
                    asset.encoded(*coding).octets.len() < asset.octets.len() / 2
                }
            );
        }
        let list =
            HeaderValue::try_from(format!("\"x\", W/{}", tags[1].to_str().unwrap())).unwrap();
        assert_eq!(asset.respond(&request(Some("gzip"), Some(&list))).status(), 304);
    }

    #[test]
    fn releases_are_served_by_version_and_as_latest() {
        for file in release::FILES {
            let by_version = serve_release(file.url, &HeaderMap::new()).expect("it is released");
            let cache = by_version.headers()[CACHE_CONTROL].to_str().unwrap();
            assert!(cache.contains("immutable"), "{cache}");
            assert_eq!(by_version.body().as_bytes().map(|b| &b[..]), Some(file.octets));
            let latest = serve_release(file.latest, &HeaderMap::new()).expect("some is newest");
            assert_eq!(latest.headers()[CACHE_CONTROL], "no-cache");
            if file.url.ends_with("gz") || file.url.ends_with("zip") {
                let packed = file.url;
                let asked = request(Some("br, gzip"), None);
                let answer = serve_release(packed, &asked).unwrap();
                assert!(!answer.headers().contains_key(CONTENT_ENCODING), "{packed}");
            }
        }
        assert!(
            serve_release("/connectors/node/queue-manager-node-99.0.0.tgz", &HeaderMap::new())
                .is_none()
        );
    }

    #[test]
    fn the_snippet_is_released_as_it_stands() {
        let source: &[u8] = include_bytes!("../../../snippet/qm.js");
        assert!(SNIPPET.octets == source, "snippet/qm.js was changed: run scripts/dist snippet");
    }

    #[test]
    fn names_carry_the_digest() {
        // base64url(SHA-256("")) starts with these 22 characters.
        let asset = Asset::new("waiting.css", b"");
        assert_eq!(asset.path, "/assets/waiting-47DEQpj8HBSa-_TImW-5JC.css");
        let path = asset_path("waiting.js");
        let response = serve_asset(path, &HeaderMap::new()).expect("the path is known");
        assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=31536000, immutable");
        assert!(serve_asset("/assets/waiting.js", &HeaderMap::new()).is_none());
    }
}

//! Follows the framing of one connection's requests, to know what hyper does not tell: whether a
//! request carried `Content-Length` beside `Transfer-Encoding`. hyper drops the length then, as it
//! may, but a proxy in front that went by the length would see other requests than we do.

/// Where in the octets of a connection we are. What cannot be followed (too long a head, a broken
/// chunk) ends in [`State::Lost`], and from then on no chunked request is taken.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    line: Line,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// That many octets of a body to go.
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    Lost,
}

/// What the lines of the current head said.
#[derive(Debug, Default, Clone, Copy)]
struct Head {
    /// Octets so far, leading empty lines aside.
    octets: usize,
    length: Option<u64>,
    is_chunked: bool,
}

/// What a look at some octets found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// A request has both a length and a transfer coding, or the framing cannot be followed.
    pub(super) is_ambiguous: bool,
    /// A request's head ended.
    pub(super) is_head_complete: bool,
}

impl Framing {
    pub(super) const fn new() -> Self {
        Self { state: State::Head, line: Line::new(), head: Head::new() }
    }

    /// Whether no request is under way: the octets so far end where a next one begins.
    pub(super) const fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Head) && self.head.octets == 0
    }

    /// Whether a head has begun and not ended.
    pub(super) const fn is_inside_head(&self) -> bool {
        matches!(self.state, State::Head) && self.head.octets > 0
    }

    pub(super) fn advance(&mut self, mut octets: &[u8]) -> Seen {
        let mut seen = Seen::default();
        while !octets.is_empty() {
            octets = match self.state {
                State::Lost => {
                    seen.is_ambiguous = true;
                    return seen;
                }
                State::Length(left) => self.skip(octets, left, State::Head, State::Length),
                State::ChunkData(left) => {
                    self.skip(octets, left, State::ChunkEnd, State::ChunkData)
                }
                _ => match self.line.take(octets) {
                    (rest, false) => {
                        self.note_partial(octets.len());
                        rest
                    }
                    (rest, true) => {
                        self.end_line(octets.len() - rest.len(), &mut seen);
                        rest
                    }
                },
            };
        }
        seen
    }

    fn skip<'a>(
        &mut self,
        octets: &'a [u8],
        left: u64,
        after: State,
        during: fn(u64) -> State,
    ) -> &'a [u8] {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(octets.len());
        let left = left - here as u64;
        self.state = if left == 0 { after } else { during(left) };
        &octets[here..]
    }

    fn note_partial(&mut self, octets: usize) {
        // A line that is empty so far may come before the request, or end its head.
        if self.state == State::Head && !self.line.text().is_empty() {
            self.head.octets += octets;
            if self.head.octets > HEAD_OCTETS_MAX {
                self.state = State::Lost;
            }
        }
    }

    fn end_line(&mut self, octets: usize, seen: &mut Seen) {
        let line = self.line.text();
        let next = match self.state {
            State::Head if line.is_empty() && self.head.octets == 0 => State::Head,
            State::Head if line.is_empty() => {
                seen.is_head_complete = true;
                let head = std::mem::take(&mut self.head);
                seen.is_ambiguous |= head.is_chunked && head.length.is_some();
                match head {
                    Head { is_chunked: true, .. } => State::ChunkSize,
                    Head { length: Some(left @ 1..), .. } => State::Length(left),
                    Head { .. } => State::Head,
                }
            }
            State::Head => {
                self.head.octets += octets;
                if self.head.note(line) && self.head.octets <= HEAD_OCTETS_MAX {
                    State::Head
                } else {
                    State::Lost
                }
            }
            State::ChunkSize => match chunk_size(line) {
                Some(0) => State::Trailer,
                Some(left) => State::ChunkData(left),
                None => State::Lost,
            },
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::Trailer if line.is_empty() => State::Head,
            State::Trailer => State::Trailer,
            _ => State::Lost,
        };
        self.state = next;
        seen.is_ambiguous |= next == State::Lost;
        self.line.clear();
    }
}

impl Head {
    const fn new() -> Self {
        Self { octets: 0, length: None, is_chunked: false }
    }

    /// Whether the line could be understood.
    fn note(&mut self, line: &[u8]) -> bool {
        if let Some(value) = value_of(line, b"content-length:") {
            let Some(length) = whole(value, 10) else { return false };
            let same = self.length.is_none_or(|before| before == length);
            self.length = Some(length);
            return same;
        }
        // hyper refuses every coding that does not end in "chunked".
        self.is_chunked |= value_of(line, b"transfer-encoding:").is_some();
        true
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|b| *b == b';').next()?;
    whole(size.trim_ascii(), 16)
}

fn whole(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(text, radix).ok().filter(|_| digits)
}

/// The start of the current line; longer lines need not be understood beyond it.
#[derive(Debug)]
struct Line {
    start: [u8; LINE_START],
    len: usize,
}

impl Line {
    const fn new() -> Self {
        Self { start: [0; LINE_START], len: 0 }
    }

    /// Takes octets up to the end of the line; gives the rest, and whether the line ended.
    fn take<'a>(&mut self, octets: &'a [u8]) -> (&'a [u8], bool) {
        let end = octets.iter().position(|b| *b == b'\n');
        let (line, rest) = octets.split_at(end.unwrap_or(octets.len()));
        let kept = line.len().min(LINE_START - self.len);
        self.start[self.len..self.len + kept].copy_from_slice(&line[..kept]);
        self.len += kept;
        (rest.get(1..).unwrap_or_default(), end.is_some())
    }

    fn text(&self) -> &[u8] {
        let text = &self.start[..self.len];
        text.strip_suffix(b"\r").unwrap_or(text)
    }

    const fn clear(&mut self) {
        self.len = 0;
    }
}

/// Enough for `content-length:` with the longest number, blanks around it included in reason.
const LINE_START: usize = 96;
/// More than hyper reads of a head, so that it refuses such a request first.
const HEAD_OCTETS_MAX: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text whole and octet by octet; both must see the same.
    fn ambiguous(text: &str) -> (bool, bool) {
        let mut whole = Framing::new();
        let at_once = whole.advance(text.as_bytes()).is_ambiguous;
        let mut single = Framing::new();
        let mut one_by_one = false;
        for octet in text.as_bytes() {
            one_by_one |= single.advance(&[*octet]).is_ambiguous;
        }
        assert_eq!((at_once, whole.state), (one_by_one, single.state), "{text:?}");
        (at_once, whole.is_between_requests())
    }

    #[test]
    fn requests_in_a_row() {
        let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
                       5;x=y\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n";
        let both = "POST / HTTP/1.1\r\nCONTENT-length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let both_turned =
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-Length:5\r\n\r\n";
        let innocent = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                        14\r\n\nContent-Length: 5\r\n\r\n0\r\n\r\n";
        let part = "POST / HTTP/1.1\r\nX: content-length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (text, expected) in [
            (get.repeat(3), (false, true)),
            (format!("\r\n\r\n{get}"), (false, true)),
            (format!("{post}{get}{post}"), (false, true)),
            (format!("{chunked}{post}{chunked}"), (false, true)),
            (post.replace("\r\n", "\n"), (false, true)),
            (both.to_owned(), (true, false)),
            (both_turned.to_owned(), (true, false)),
            (format!("{get}{post}{chunked}{both}"), (true, false)),
            (innocent.to_owned(), (false, true)),
            (part.to_owned(), (false, false)),
            ("GET / HTTP/1.1\r\nHo".to_owned(), (false, false)),
            (post.replace("hello", "hel"), (false, false)),
            (post.replace('5', "x"), (true, false)),
            (post.replace('5', "+5"), (true, false)),
            (chunked.replace("5;", "zz;"), (true, false)),
            (chunked.replace("hello", "hello!"), (true, false)),
            (format!("GET / HTTP/1.1\r\nX: {}\r\n", "a".repeat(HEAD_OCTETS_MAX)), (true, false)),
        ] {
            assert_eq!(ambiguous(&text), expected, "{:.90}", text);
        }
    }
}

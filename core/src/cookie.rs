//! The queue's cookies: reading a `Cookie` header without being misled by what else is in it,
//! writing `Set-Cookie`, the names a room's cookies have, and the cap on rooms per browser
//! (COO-07).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::id::RoomId;
use crate::time::TimeMs;

/// How many pairs of a `Cookie` header are looked at; browsers keep fewer for a site.
pub const PAIRS_MAX: usize = 512;

/// The pairs of a `Cookie` header, blanks trimmed, quotes kept. It is split on every `;`, whatever
/// the quotes: a reader that honours them could be made to hide one of our cookies.
pub fn pairs(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header
        .split(';')
        .take(PAIRS_MAX)
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (trim_blanks(name), trim_blanks(value)))
}

/// The values of one cookie, in the order sent, each without one pair of surrounding quotes.
pub fn values<'a>(header: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    pairs(header).filter(move |(found, _)| *found == name).map(|(_, value)| unquote(value))
}

/// The value without one pair of surrounding quotes, which gateways add.
#[must_use]
pub fn unquote(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

fn trim_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// The `SameSite` attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Sent on navigations from other sites.
    Lax,
    /// Sent from the same site only.
    Strict,
}

/// A cookie to set. It is host-only: the queue never sets `Domain`.
#[derive(Clone, Copy, Debug)]
pub struct SetCookie<'a> {
    /// The name.
    pub name: &'a str,
    /// The value; octets a cookie cannot carry are left out.
    pub value: &'a str,
    /// The lifetime; 0 expires the cookie.
    pub max_age_seconds: u64,
    /// Whether scripts cannot read it.
    pub http_only: bool,
    /// Whether it is sent over https only.
    pub secure: bool,
    /// The path.
    pub path: &'a str,
    /// The `SameSite` attribute.
    pub same_site: SameSite,
}

impl SetCookie<'_> {
    /// The value of the `Set-Cookie` header.
    #[must_use]
    pub fn header_value(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for SetCookie<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_safe(f, self.name)?;
        f.write_str("=")?;
        write_safe(f, self.value)?;
        write!(f, "; Max-Age={}; Path=", self.max_age_seconds)?;
        write_safe(f, self.path)?;
        f.write_str(match self.same_site {
            SameSite::Lax => "; SameSite=Lax",
            SameSite::Strict => "; SameSite=Strict",
        })?;
        if self.http_only {
            f.write_str("; HttpOnly")?;
        }
        if self.secure {
            f.write_str("; Secure")?;
        }
        Ok(())
    }
}

/// Writes the octets RFC 6265 § 4.1.1 lets a cookie carry, so that no value adds an attribute.
fn write_safe(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let is_safe = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | ',' | ';' | '\\');
    // Nearly always: bytes are looked through much faster than characters.
    if text.bytes().all(|b| is_safe(char::from(b))) {
        return f.write_str(text);
    }
    text.split(|c| !is_safe(c)).try_for_each(|run| f.write_str(run))
}

/// The cookie with the visitor token.
#[must_use]
pub fn ticket_cookie(room: &RoomId) -> String {
    format!("qm_{room}")
}

/// The cookie that proves who owns the place.
#[must_use]
pub fn owner_cookie(room: &RoomId) -> String {
    format!("qms_{room}")
}

/// The cookie with the door-session key on an inline host.
#[must_use]
pub fn door_key_cookie(room: &RoomId) -> String {
    format!("qm_dk_{room}")
}

/// The room whose ticket cookie this name is. Names no room can take (ADM-20) are other cookies.
#[must_use]
pub fn room_of_ticket_cookie(name: &str) -> Option<RoomId> {
    let room = RoomId::parse(name.strip_prefix("qm_")?).ok()?;
    (!room.is_reserved()).then_some(room)
}

/// The rooms whose cookies an answer must expire so that the rest plus `room` fit the cap (COO-07,
/// HOL-26): those with the oldest tickets, unreadable ones first, never `room` itself. `issued_at`
/// verifies a value; it is asked only when the cap is exceeded.
pub fn rooms_over_cap(
    header: &str,
    room: &RoomId,
    cap: usize,
    issued_at: impl Fn(&RoomId, &str) -> Option<TimeMs>,
) -> Vec<RoomId> {
    let mut held: Vec<(RoomId, &str)> = pairs(header)
        .filter_map(|(name, value)| Some((room_of_ticket_cookie(name)?, unquote(value))))
        .filter(|(found, _)| found != room)
        .collect();
    held.sort_unstable();
    let others = held.chunk_by(|a, b| a.0 == b.0).count();
    let excess = others.saturating_add(1).saturating_sub(cap);
    if excess == 0 {
        return Vec::new();
    }
    let mut ages: Vec<(Option<TimeMs>, &RoomId)> = held
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|values| {
            let newest = values.iter().map(|(room, value)| issued_at(room, value)).max()?;
            Some((newest, &values.first()?.0))
        })
        .collect();
    // `None` sorts before every time: what does not verify is older than all that do.
    ages.sort_unstable();
    ages.into_iter().take(excess).map(|(_, room)| room.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    fn room(text: &str) -> RoomId {
        RoomId::parse(text).unwrap()
    }

    #[test]
    fn values_of_one_name() {
        for (header, expected) in [
            ("", vec![]),
            ("qm_a=1", vec!["1"]),
            ("x=0;qm_a=1;qm_a=2", vec!["1", "2"]),
            (" qm_a = 1 ;\tqm_a\t=\t2", vec!["1", "2"]),
            ("qm_a=\"1\"", vec!["1"]),
            ("qm_a=\"\"1\"\"", vec!["\"1\""]),
            ("qm_a=\"1", vec!["\"1"]),
            ("qm_a=\"", vec!["\""]),
            ("qm_a=a=b", vec!["a=b"]),
            ("qm_a=", vec![""]),
            ("qm_a", vec![]),
            ("QM_A=1; qm_A=2; qm_ab=3; qms_a=4", vec![]),
            ("x=\"a; qm_a=fake; b\"", vec!["fake"]),
        ] {
            assert_eq!(values(header, "qm_a").collect::<Vec<_>>(), expected, "{header}");
        }
    }

    #[test]
    fn pairs_are_bounded() {
        let header = "a=1;".repeat(PAIRS_MAX + 9);
        assert_eq!(pairs(&header).count(), PAIRS_MAX);
        assert_eq!(pairs("a=\"1\"; b").collect::<Vec<_>>(), [("a", "\"1\"")]);
    }

    #[test]
    fn set_cookie_text() {
        let cookie = SetCookie {
            name: "qm_a",
            value: "x.y",
            max_age_seconds: 86_400,
            http_only: false,
            secure: false,
            path: "/",
            same_site: SameSite::Lax,
        };
        let full =
            SetCookie { http_only: true, secure: true, same_site: SameSite::Strict, ..cookie };
        let tricky =
            SetCookie { value: "a; Domain=x\r\nB: \"c\", é", max_age_seconds: 0, ..cookie };
        for (cookie, expected) in [
            (cookie, "qm_a=x.y; Max-Age=86400; Path=/; SameSite=Lax"),
            (full, "qm_a=x.y; Max-Age=86400; Path=/; SameSite=Strict; HttpOnly; Secure"),
            (tricky, "qm_a=aDomain=xB:c; Max-Age=0; Path=/; SameSite=Lax"),
        ] {
            assert_eq!(cookie.header_value(), expected);
        }
    }

    #[test]
    fn names() {
        let a = room("a");
        assert_eq!(
            [ticket_cookie(&a), owner_cookie(&a), door_key_cookie(&a)],
            ["qm_a", "qms_a", "qm_dk_a"]
        );
        for (name, expected) in [
            ("qm_a", Some("a")),
            ("qm__", Some("_")),
            ("qm_s_a", Some("s_a")),
            ("qm_", None),
            ("qms_a", None),
            ("qm_dk_a", None),
            ("qm_console", None),
            ("qm_meta_a", None),
            ("qmt_a", None),
            ("QM_a", None),
            ("qm_a.b", None),
        ] {
            let got = room_of_ticket_cookie(name);
            assert_eq!(got.as_ref().map(RoomId::as_str), expected, "{name}");
        }
    }

    /// A value is its own issue time; anything else does not verify.
    fn over_cap(header: &str, cap: usize) -> Vec<String> {
        let rooms = rooms_over_cap(header, &room("new"), cap, |_, v| v.parse().ok().map(TimeMs));
        rooms.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cap_of_rooms() {
        for (header, cap, expected) in [
            ("", 1, vec![]),
            ("qm_a=1", 2, vec![]),
            ("qm_a=1", 1, vec!["a"]),
            ("qm_b=2; qm_a=1; qm_c=3", 3, vec!["a"]),
            ("qm_b=2; qm_a=1; qm_c=3", 2, vec!["a", "b"]),
            ("qm_b=2; qm_a=1; qm_c=3", 1, vec!["a", "b", "c"]),
            ("qm_b=2; qm_a=1; qm_new=0", 3, vec![]),
            ("qm_b=2; qm_a=1; qm_new=0", 2, vec!["a"]),
            // What does not verify is oldest.
            ("qm_b=junk; qm_a=1; qm_c=3", 3, vec!["b"]),
            ("qm_c=junk; qm_b=junk; qm_a=1", 2, vec!["b", "c"]),
            // Of several values the newest counts, in any order, quoted or not.
            ("qm_a=1; qm_b=2; qm_a=9", 2, vec!["b"]),
            ("qm_a=\"9\"; qm_b=2; qm_a=junk", 2, vec!["b"]),
            ("qm_a=1; qm_a=2; qm_a=3", 2, vec![]),
            // Other cookies are no rooms.
            ("qms_x=1; qm_dk_y=1; qm_console=1; z=1; qm_a=1", 2, vec![]),
            ("qm_a=1; qm_b=2", 0, vec!["a", "b"]),
        ] {
            assert_eq!(over_cap(header, cap), expected, "{header} {cap}");
        }
    }

    #[test]
    fn cap_verifies_nothing_below_it() {
        let never = |_: &RoomId, _: &str| -> Option<TimeMs> { panic!("asked") };
        assert!(rooms_over_cap("qm_a=1; qm_b=2; qm_b=3", &room("new"), 3, never).is_empty());
    }
}

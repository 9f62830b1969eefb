//! The queue's cookies: reading a `Cookie` header without being misled by what else is in it,
//! writing `Set-Cookie`, the names a room's cookies have, and the cap on rooms per browser (COO-07).

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

//! What a visitor shows: the passes in the page's address and in cookies, as far as they can be
//! tokens of this room at all. The server says whether they are.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::Facts;
use super::page::Page;
use super::settings::Settings;
use crate::cookie;
use crate::id::RoomId;
use crate::time::TimeMs;
use crate::token::Peek;

/// How many things are shown to the server at most, one question each.
const SHOWN_MAX: usize = 2;

/// A token that may be one of this room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub(super) token: String,
    /// It came in the page's address, not in a cookie.
    pub(super) from_url: bool,
}

/// What was found.
pub(super) struct Shown {
    /// What to show, in this order.
    pub(super) candidates: Vec<Candidate>,
    /// The room's cookie was sent and cannot be a token of the room.
    pub(super) useless_cookies: bool,
    /// Something was shown that the visitor key or its form refuses.
    pub(super) refused_locally: bool,
    pub(super) door_key: Option<String>,
}

pub(super) fn read(
    settings: &Settings,
    facts: &Facts<'_>,
    page: Option<&Page>,
    now: TimeMs,
) -> Shown {
    let header = facts.header("cookie").unwrap_or_default();
    let name = cookie::ticket_cookie(&settings.room);
    let from_url: Vec<&str> =
        page.map(|page| page.tokens.iter().map(String::as_str).collect()).unwrap_or_default();
    let in_cookies: Vec<&str> =
        cookie::values(header, &name).filter(|value| !value.is_empty()).collect();
    let is_refused = |token: &str| {
        settings.visitor_keys.as_ref().is_some_and(|keys| keys.refuse(token, &settings.room, now))
    };
    let usable = |tokens: &[&str], from_url: bool| {
        let mut found: Vec<(Reverse<TimeMs>, String)> = tokens
            .iter()
            .filter(|token| !is_refused(token))
            .filter_map(|token| {
                Some((Reverse(issued_at(token, &settings.room)?), (*token).to_string()))
            })
            .collect();
        // The newest first; equally new ones in an order that is not the visitor's.
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(move |(_, token)| Candidate { token, from_url })
    };
    let mut candidates: Vec<Candidate> = usable(&from_url, true).take(1).collect();
    let is_first = |held: &Candidate, candidates: &[Candidate]| {
        candidates.iter().all(|known| known.token != held.token)
    };
    let mut any_cookie = false;
    for held in usable(&in_cookies, false) {
        any_cookie = true;
        if candidates.len() < SHOWN_MAX && is_first(&held, &candidates) {
            candidates.push(held);
        }
    }
    Shown {
        candidates,
        useless_cookies: !any_cookie && !in_cookies.is_empty(),
        refused_locally: settings.visitor_keys.is_some()
            && !(from_url.is_empty() && in_cookies.is_empty()),
        door_key: door_key(settings, header),
    }
}

/// When the token says it was issued, if it can be one of this room.
fn issued_at(token: &str, room: &RoomId) -> Option<TimeMs> {
    Peek::at(token).filter(|peek| peek.room == *room).map(|peek| peek.issued_at)
}

/// The key of the door session, which only an unvouched check shows.
fn door_key(settings: &Settings, header: &str) -> Option<String> {
    if settings.key.is_some() {
        return None;
    }
    let is_key = |key: &&str| {
        key.len() <= 64
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    };
    let name = door_key_cookie(&settings.room);
    cookie::values(header, &name).filter(|key| !key.is_empty()).find(is_key).map(str::to_string)
}

/// The cookie a connector keeps the door key in.
pub(super) fn door_key_cookie(room: &RoomId) -> String {
    alloc::format!("qmk_{room}")
}

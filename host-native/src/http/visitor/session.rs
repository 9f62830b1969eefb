//! Secrets made for visitors, and the cookies that carry tokens and owner proofs (COO-*, HOL-60).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use qm_core::cookie::{SameSite, SetCookie, owner_cookie, rooms_over_cap, ticket_cookie};
use qm_core::id::RoomId;
use rand::Rng as _;

use super::super::app::App;
use super::super::request::Ask;
use super::claim::verify;

/// A fresh session id for `qms_<room>`: 32 characters of base64url (HOL-46).
#[must_use]
pub fn fresh_session_id() -> String {
    let mut octets = [0; 24];
    rand::rng().fill_bytes(&mut octets);
    URL_SAFE_NO_PAD.encode(octets)
}

/// A fresh door-session key (HOL-46).
#[must_use]
pub fn fresh_door_key() -> String {
    format!("qk_{}", fresh_session_id())
}

/// The two cookies of a place, and the expiry of those of rooms over the cap (COO-07).
#[must_use]
pub fn place_cookies(app: &App, ask: &Ask, room: &RoomId, token: &str, id: &str) -> Vec<String> {
    let max_age = u64::from(app.config.tokens.cookie_max_age_seconds);
    let mut cookies = vec![
        cookie(ask, &ticket_cookie(room), token, max_age, false),
        cookie(ask, &owner_cookie(room), id, max_age, true),
    ];
    let issued_at = |room: &RoomId, text: &str| {
        verify(app, ask, text)
            .filter(|held| held.token.room == *room)
            .map(|held| held.token.issued_at)
    };
    let cap = usize::try_from(app.config.tokens.room_cookie_cap).unwrap_or(usize::MAX);
    for over in rooms_over_cap(&ask.cookies(), room, cap, issued_at) {
        cookies.push(cookie(ask, &ticket_cookie(&over), "", 0, false));
        cookies.push(cookie(ask, &owner_cookie(&over), "", 0, true));
    }
    cookies
}

fn cookie(ask: &Ask, name: &str, value: &str, max_age_seconds: u64, http_only: bool) -> String {
    SetCookie {
        name,
        value,
        max_age_seconds,
        http_only,
        secure: ask.is_https,
        path: "/",
        same_site: SameSite::Lax,
    }
    .header_value()
}

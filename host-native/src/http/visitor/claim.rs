//! What a request claims to hold in a room: tokens from the body, the query and cookies, and the
//! owner's session ids. Of several values for one name all count, in no particular order; the room
//! picks the one that owns a live place.

use qm_core::cookie::{owner_cookie, pairs, room_of_ticket_cookie, ticket_cookie, unquote, values};
use qm_core::digest::Digest16;
use qm_core::id::{Place, RoomId};
use qm_core::room::Claim;
use qm_core::token::VisitorToken;

use super::super::app::App;
use super::super::error::ApiError;
use super::super::request::Ask;

/// Values looked at for one cookie name.
const VALUES_MAX: usize = 8;

/// A verified token and its text.
#[derive(Clone, Debug)]
pub struct Held {
    /// What it says.
    pub token: VisitorToken,
    /// As it was presented.
    pub text: String,
}

/// Verifies a token text; refusals count as no token.
#[must_use]
pub fn verify(app: &App, ask: &Ask, text: &str) -> Option<Held> {
    let token = app.keys.verify_visitor(text, ask.now, app.token_max_age_ms).ok()?;
    Some(Held { token, text: text.to_owned() })
}

/// The verified tokens of a room among the cookies, newest first.
#[must_use]
pub fn cookie_tokens(app: &App, ask: &Ask, room: &RoomId) -> Vec<Held> {
    let cookies = ask.cookies();
    let name = ticket_cookie(room);
    let mut held: Vec<_> = values(&cookies, &name)
        .take(VALUES_MAX)
        .filter_map(|text| verify(app, ask, text))
        .filter(|held| held.token.room == *room)
        .collect();
    held.sort_by_key(|held| std::cmp::Reverse(held.token.issued_at));
    held
}

/// Waits briefly for places that the request names and another instance may just have given out:
/// what was answered by one instance is true on all. Costs nothing in the memory store.
pub async fn hear_of_places(app: &App, ask: &Ask, sent: Option<&str>) {
    if !app.rooms.is_shared() {
        return;
    }
    let cookies = ask.cookies();
    let kept = pairs(&cookies)
        .filter(|(name, _)| room_of_ticket_cookie(name).is_some())
        .map(|(_, value)| unquote(value))
        .take(VALUES_MAX);
    let held: Vec<Held> =
        sent.into_iter().chain(kept).filter_map(|t| verify(app, ask, t)).collect();
    for Held { token, .. } in held {
        app.rooms.hear_of(&token.room, token.generation, token.place).await;
    }
}

/// The session ids of a room among the cookies (COO-02: 16 to 128 characters).
#[must_use]
pub fn session_ids(ask: &Ask, room: &RoomId) -> Vec<String> {
    let cookies = ask.cookies();
    values(&cookies, &owner_cookie(room))
        .filter(|id| (16..=128).contains(&id.len()))
        .take(VALUES_MAX)
        .map(str::to_owned)
        .collect()
}

/// The owner proofs of a room among the cookies.
#[must_use]
pub fn owners(ask: &Ask, room: &RoomId) -> Vec<Digest16> {
    session_ids(ask, room).iter().map(|id| Digest16::of_owner(id)).collect()
}

/// The claim that tokens and session ids make in one generation of a room.
#[must_use]
pub fn claim_of(held: &[Held], session_ids: &[String], generation: u64) -> Claim {
    let places = held
        .iter()
        .filter(|held| held.token.generation == generation)
        .map(|held| held.token.place)
        .filter(|place| *place != Place::Ticket(0))
        .collect();
    let owners = session_ids.iter().map(|id| Digest16::of_owner(id)).collect();
    Claim { places, owners }
}

/// The token a status, stream, leave or notify is about: `sent` when it verifies, else that of the
/// cookie; without `room` there must be exactly one room among the cookies (HOL-51). Of several
/// values for one name the one that owns a live place wins, else the newest.
///
/// # Errors
/// `invalid_room_id` for an unusable or ambiguous room, `invalid_token` when nothing is usable.
pub fn named_token(
    app: &App,
    ask: &Ask,
    sent: Option<&str>,
    room: Option<&str>,
) -> Result<Held, ApiError> {
    if let Some(held) = sent.and_then(|text| verify(app, ask, text)) {
        return Ok(held);
    }
    let room = match room {
        Some(room) => RoomId::parse(room).map_err(|_| ApiError::invalid_room_id())?,
        None => only_room(ask)?,
    };
    let mut held = cookie_tokens(app, ask, &room);
    let live = held.iter().position(|held| owns_live_place(app, ask, held));
    let best = live.unwrap_or(0);
    if best < held.len() { Ok(held.swap_remove(best)) } else { Err(ApiError::invalid_token()) }
}

fn only_room(ask: &Ask) -> Result<RoomId, ApiError> {
    let cookies = ask.cookies();
    let mut rooms: Vec<RoomId> = pairs(&cookies)
        .filter(|(_, value)| !unquote(value).is_empty())
        .filter_map(|(name, _)| room_of_ticket_cookie(name))
        .collect();
    rooms.sort_unstable();
    rooms.dedup();
    match (rooms.pop(), rooms.is_empty()) {
        (Some(room), true) => Ok(room),
        (Some(_), false) => Err(ApiError::invalid_room_id()
            .with_message("several rooms have a cookie here, say which with roomId")),
        (None, _) => Err(ApiError::invalid_token()),
    }
}

fn owns_live_place(app: &App, ask: &Ask, held: &Held) -> bool {
    let Some(room) = app.rooms.find(&held.token.room) else { return false };
    let owners = owners(ask, &held.token.room);
    room.generation() == held.token.generation
        && room.look(|room, presence, now| {
            let frame = room.frame(held.token.place, presence, now);
            frame.is_some_and(|(frame, _)| !frame.expired)
                && owners.iter().any(|owner| room.is_owner(held.token.place, owner))
        })
}

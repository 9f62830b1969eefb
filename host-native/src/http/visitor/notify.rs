//! `POST /api/notify`: a mail when the turn comes (NOT-*). A notice belongs to the place; joining
//! moves it along when the visitor gets another one.

use hyper::Response;
use hyper::header::ACCEPT_LANGUAGE;
use qm_core::digest::Digest16;
use qm_core::id::Place;
use qm_core::room::Standing;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::claim::{Held, named_token, owners, session_ids};
use super::language::choose;
use crate::rooms::RoomHandle;
use crate::side::SideError;
use crate::side::notice::{Delivery, Notice, NoticeKey};

/// The longest mail address (RFC 5321, § 4.5.3.1.3).
const EMAIL_BYTES_MAX: usize = 254;

/// Refuses a request before its body is read: over the quota, or while no mail is sent.
///
/// # Errors
/// `rate_limited`, `email_notify_disabled`.
pub fn before_body(app: &App, ask: &Ask) -> Result<(), ApiError> {
    app.notify_quota.take(ask.address.group(), ask.now).map_err(|wait| {
        app.metrics.count_rate_limited("notify");
        ApiError::rate_limited(wait.0)
    })?;
    if app.config.mail.is_some() { Ok(()) } else { Err(ApiError::email_notify_disabled()) }
}

/// Sets or withdraws the notice of a place.
///
/// # Errors
/// `invalid_token_field`, `invalid_email`, `invalid_token`, `stale_ticket`, `ticket_ended`.
pub async fn notify(
    app: &App,
    ask: &Ask,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    let text_of = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(()),
    };
    let token = text_of("token").map_err(|()| ApiError::invalid_token_field())?;
    let room = text_of("roomId").map_err(|()| ApiError::invalid_room_id())?;
    let email = text_of("email").map_err(|()| ApiError::invalid_email())?;
    let email = email.filter(|email| !email.is_empty());
    if email.is_some_and(|email| !is_address(email)) {
        return Err(ApiError::invalid_email());
    }
    let held = named_token(app, ask, token, room)?;
    let handle = app.rooms.find(&held.token.room);
    let handle = handle.filter(|room| room.generation() == held.token.generation);
    let key = key_of(&held, handle.as_deref());
    let Some(email) = email else {
        app.side.remove_notice(&key).await.map_err(unavailable)?;
        return Ok(told(None));
    };
    let handle = handle.ok_or_else(ApiError::stale_ticket)?;
    let owner = owner_of_waiting(ask, &handle, key.place)?;
    let notice = Notice {
        key,
        email: email.to_owned(),
        language: choose(None, ask.header(ACCEPT_LANGUAGE)).code.to_owned(),
        owner: owner.map(|owner| owner.to_hex()),
        requested_at: app.clock.now(),
        delivery: Delivery::Pending,
    };
    app.side.put_notice(notice.clone()).await.map_err(unavailable)?;
    Ok(told(Some(&notice)))
}

fn told(notice: Option<&Notice>) -> Response<Body> {
    answer::json(&json!({ "ok": true, "notify": notice.map(Notice::to_json) }))
}

/// The place a token stands for: a drawn reference is its ticket.
fn key_of(held: &Held, room: Option<&RoomHandle>) -> NoticeKey {
    let place = match held.token.place {
        Place::Reference(reference) => room
            .and_then(|room| room.look(|room, _, _| room.drawn_ticket(reference)))
            .map_or(held.token.place, Place::Ticket),
        ticket @ Place::Ticket(_) => ticket,
    };
    NoticeKey { room: held.token.room.clone(), generation: held.token.generation, place }
}

/// The proof of who owns a waiting place. Somebody who merely saw its token sets no mail on it.
fn owner_of_waiting(
    ask: &Ask,
    handle: &RoomHandle,
    place: Place,
) -> Result<Option<Digest16>, ApiError> {
    let owners = owners(ask, handle.id());
    handle.look(|room, presence, now| match room.standing(place, presence, now) {
        Standing::Waiting { .. } | Standing::PreQueued { .. } => {
            let own = owners.into_iter().find(|owner| room.is_owner(place, owner));
            own.map(Some).ok_or_else(ApiError::invalid_token)
        }
        Standing::Passed { .. } | Standing::Admitted { .. } | Standing::Ended(_) => {
            Err(ApiError::ticket_ended())
        }
        Standing::Unknown => Err(ApiError::invalid_token()),
    })
}

/// One plain address: what the mail library takes, with a domain of at least two labels.
fn is_address(email: &str) -> bool {
    let parsed = email.parse::<lettre::Address>();
    email.len() <= EMAIL_BYTES_MAX
        && !email.chars().any(|c| c.is_control() || c.is_whitespace())
        && parsed.is_ok_and(|address| {
            let domain = address.domain();
            domain.contains('.') && !domain.starts_with('.') && !domain.ends_with('.')
        })
}

/// The `notify` member of a join: the notice of the new place, after those of the places it
/// replaces were moved to it (NOT-03). `None` while no mail is sent. The place is taken already, so
/// a notice that cannot be read does not refuse the join.
pub async fn follow(
    app: &App,
    ask: &Ask,
    handle: &RoomHandle,
    held: &[Held],
    place: Place,
) -> Option<Value> {
    app.config.mail.as_ref()?;
    if place == Place::Ticket(0) {
        return Some(Value::Null);
    }
    let to = NoticeKey { room: handle.id().clone(), generation: handle.generation(), place };
    let told = move_all(app, ask, handle, held, &to).await.unwrap_or_else(|error| {
        tracing::error!(%error, "notices cannot be read or written");
        None
    });
    Some(told.map_or(Value::Null, |notice| notice.to_json()))
}

async fn move_all(
    app: &App,
    ask: &Ask,
    handle: &RoomHandle,
    held: &[Held],
    to: &NoticeKey,
) -> Result<Option<Notice>, SideError> {
    let ids = session_ids(ask, handle.id());
    for held in held {
        let current = held.token.generation == handle.generation();
        let from = key_of(held, current.then_some(handle));
        if from != *to {
            move_own(app, &ids, &from, to).await?;
        }
    }
    app.side.notice(to).await
}

async fn move_own(
    app: &App,
    session_ids: &[String],
    from: &NoticeKey,
    to: &NoticeKey,
) -> Result<(), SideError> {
    let Some(notice) = app.side.notice(from).await? else { return Ok(()) };
    let is_own =
        |owner: &String| session_ids.iter().any(|id| Digest16::of_owner(id).to_hex() == *owner);
    if notice.owner.as_ref().is_none_or(is_own) {
        app.side.move_notice(from, to.clone()).await?;
    }
    Ok(())
}

/// Deletes the notices of places that their owner gave up.
pub async fn forget(app: &App, held: &[Held], handle: &RoomHandle) {
    if app.config.mail.is_none() {
        return;
    }
    for held in held {
        if let Err(error) = app.side.remove_notice(&key_of(held, Some(handle))).await {
            tracing::error!(%error, "a notice of a place given up is not deleted");
        }
    }
}

fn unavailable(error: SideError) -> ApiError {
    tracing::error!(%error, "notices cannot be read or written");
    ApiError::storage_unavailable().with_message("the notice could not be recorded, try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_addresses_only() {
        for (email, expected) in [
            ("a@example.com", true),
            ("first.last+tag@shop.example.co.th", true),
            ("plain", false),
            ("a@", false),
            ("@example.com", false),
            ("a b@example.com", false),
            ("a@b@example.com", false),
            ("a@localhost", false),
            ("a@example.com\r\nBcc: x@example.com", false),
            ("Name <a@example.com>", false),
            ("a@example.com,b@example.com", false),
        ] {
            assert_eq!(is_address(email), expected, "{email}");
        }
        assert!(!is_address(&format!("{}@example.com", "x".repeat(300))));
    }
}

//! A place as join, status and stream tell it: the core's frame, completed with the token text,
//! the support code and the destination. One builder, so that the three always agree (EVT-01).

use qm_core::id::Place;
use qm_core::room::view::Frame;
use qm_core::room::{EndReason, Presence, Room};
use qm_core::time::TimeMs;
use qm_core::token::VisitorToken;
use qm_core::url::with_query_parameter;

use super::super::app::App;
use super::claim::Held;

/// A frame ready to send, and what else the answer should do.
pub struct Told {
    /// The frame.
    pub frame: Frame,
    /// A new token text to set as a cookie too: the presented one was due, or named a reference
    /// that has been drawn (TOK-29, HOL-52).
    pub fresh: Option<String>,
}

/// Builds the frame of a held token in its own room and generation, and notes that the owner was
/// seen. `is_owner` is whether the request proved it owns the place. `None` when the room never
/// gave this place out, or it is a bypass pass that proves nothing any more (HOL-53).
pub fn tell(
    app: &App,
    room: &Room,
    presence: &mut Presence,
    held: &Held,
    is_owner: bool,
    now: TimeMs,
) -> Option<Told> {
    let (mut frame, place) = room.frame(held.token.place, presence, now)?;
    if frame.expired {
        return Some(Told { frame, fresh: None });
    }
    match place {
        Place::Ticket(number) => presence.saw_ticket(number, now, frame.passed),
        Place::Reference(reference) => presence.saw_reference(reference, now),
    }
    let was_drawn = place != held.token.place;
    let is_due = !frame.passed && app.refresh.is_due(held.token.issued_at, now);
    let fresh = (is_owner && (is_due || was_drawn)).then(|| sign(app, room, place, now));
    frame.token.clone_from(&fresh);
    if frame.passed && fresh.is_none() && !was_drawn {
        frame.token = Some(held.text.clone());
    }
    complete(app, room, place, &mut frame);
    Some(Told { frame, fresh })
}

/// The frame a joining visitor gets, with a freshly signed token.
#[must_use]
pub fn tell_joined(
    app: &App,
    room: &Room,
    presence: &mut Presence,
    place: Place,
    now: TimeMs,
) -> Frame {
    let (mut frame, place) = room
        .frame(place, presence, now)
        .unwrap_or_else(|| (Frame::ended(EndReason::RoomReset), place));
    if let Place::Ticket(number) = place {
        presence.saw_ticket(number, now, frame.passed);
    }
    frame.token = Some(sign(app, room, place, now));
    complete(app, room, place, &mut frame);
    frame
}

fn sign(app: &App, room: &Room, place: Place, now: TimeMs) -> String {
    app.keys.sign_visitor(&VisitorToken {
        room: room.id().clone(),
        place,
        generation: room.generation(),
        issued_at: now,
    })
}

fn complete(app: &App, room: &Room, place: Place, frame: &mut Frame) {
    if let Place::Ticket(number) = place
        && number > 0
    {
        frame.short_code = Some(app.keys.short_code(room.id(), room.generation(), number));
    }
    if frame.passed
        && let (Some(target), Some(token)) = (&room.settings().target_url, &frame.token)
    {
        frame.redirect_url = with_query_parameter(target, "qm_token", token);
    }
}

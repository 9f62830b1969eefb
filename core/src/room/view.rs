//! What a visitor is told: one frame for join, status and stream (HOL-34). Built from the room
//! alone; hosts add the token text, the support code and the destination.

use alloc::string::String;

use serde::Serialize;
use serde_json::Value;

use super::config::RoomState;
use super::presence::Presence;
use super::{EndReason, Room, Standing};
use crate::id::Place;
use crate::time::TimeMs;

/// A status frame. Members that say nothing are absent; `null` is "there is no honest number".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// The signed text of the place, when the answer hands it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// 1 is the next to pass; 0 when passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Option<u64>>,
    /// How many stand in front.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Option<u64>>,
    /// The wait in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_sec: Option<Option<u64>>,
    /// The wait is a floor: a draw decides the rest.
    #[serde(skip_serializing_if = "is_false")]
    pub eta_floor: bool,
    /// `waiting | passed | scheduled | paused | bypass | expired`.
    pub state: &'static str,
    /// Whether the visitor may go on.
    pub passed: bool,
    /// The place is over.
    #[serde(skip_serializing_if = "is_false")]
    pub expired: bool,
    /// Why it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The drop is still ahead.
    #[serde(skip_serializing_if = "is_false")]
    pub scheduled: bool,
    /// Whether the place is in the pre-queue; only while the drop is ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_queued: Option<bool>,
    /// Places in the pre-queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_count: Option<u64>,
    /// When the doors open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<TimeMs>,
    /// How many wait in the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Releases a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Value>,
    /// The short code for support (WAI-24).
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub short_code: Option<String>,
    /// Where the visitor may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// When the pass or the session runs out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<TimeMs>,
    /// The operator's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the message was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_at: Option<TimeMs>,
    /// Server time, with every frame that carries another one (API-11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<TimeMs>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde calls")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Frame {
    /// The frame of a place that is over.
    #[must_use]
    pub fn ended(reason: EndReason) -> Self {
        Self { state: "expired", expired: true, reason: Some(reason.as_str()), ..Self::default() }
    }

    fn through(state: &'static str) -> Self {
        Self {
            position: Some(Some(0)),
            ahead: Some(Some(0)),
            eta_sec: Some(Some(0)),
            state,
            passed: true,
            ..Self::default()
        }
    }
}

impl Room {
    /// The frame of a place, and the place it stands for now: a drawn reference reads as its
    /// ticket. `None` when the room never gave the place out.
    #[must_use]
    pub fn frame(&self, place: Place, presence: &Presence, now: TimeMs) -> Option<(Frame, Place)> {
        if place == Place::Ticket(0) {
            return (self.is_bypass() && !self.is_closed())
                .then(|| (self.finish(Frame::through("passed"), now), place));
        }
        let (frame, place) = match self.standing(place, presence, now) {
            Standing::Waiting { n } => (self.waiting_frame(n, now), Place::Ticket(n)),
            Standing::PreQueued { q } => (self.pre_queued_frame(now), Place::Reference(q)),
            Standing::Passed { n, expires_at } | Standing::Admitted { n, expires_at } => {
                let frame = Frame { expires_at: Some(expires_at), ..Frame::through("passed") };
                (frame, Place::Ticket(n))
            }
            Standing::Ended(reason) => return Some((Frame::ended(reason), place)),
            Standing::Unknown => return None,
        };
        Some((self.finish(frame, now), place))
    }

    fn waiting_frame(&self, number: u64, now: TimeMs) -> Frame {
        if self.is_bypass() {
            return Frame::through("bypass");
        }
        let position = self.position(number).unwrap_or(1);
        let scheduled = self.gate_closed(now);
        let state = match self.settings().state {
            _ if scheduled => "scheduled",
            RoomState::Paused => "paused",
            RoomState::Active | RoomState::Bypass => "waiting",
        };
        Frame {
            position: Some(Some(position)),
            ahead: Some(Some(position - 1)),
            eta_sec: Some(self.wait_at(position, now)),
            state,
            scheduled,
            pre_queued: scheduled.then_some(false),
            opens_at: self.settings().opens_at.filter(|_| scheduled),
            waiting: Some(self.waiting()),
            rate: Some(self.settings().rate.to_json()),
            ..Frame::default()
        }
    }

    fn pre_queued_frame(&self, now: TimeMs) -> Frame {
        if self.is_bypass() {
            return Frame::through("bypass");
        }
        Frame {
            position: Some(None),
            ahead: Some(None),
            eta_sec: Some(self.wait_at(self.waiting(), now)),
            eta_floor: true,
            state: "scheduled",
            scheduled: true,
            pre_queued: Some(true),
            pre_count: Some(self.pre_queued()),
            opens_at: self.settings().opens_at,
            rate: Some(self.settings().rate.to_json()),
            ..Frame::default()
        }
    }

    fn finish(&self, mut frame: Frame, now: TimeMs) -> Frame {
        let branding = &self.settings().branding;
        frame.message.clone_from(&branding.message);
        frame.message_at = branding.message_at.filter(|_| branding.message.is_some());
        let carries_time = frame.passed
            || frame.message_at.is_some()
            || frame.opens_at.is_some()
            || frame.expires_at.is_some();
        frame.now = carries_time.then_some(now);
        frame
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::vec;

    use super::*;
    use crate::address::{Address, agent_digest};
    use crate::digest::Digest16;
    use crate::door::{Channel, Knock, Shown, Verdict, decide_place};
    use crate::id::RoomId;
    use crate::room::{Claim, Client, Command, Event, Fact, Family, Join, Settings, run};

    #[test]
    fn places_of_a_closed_room_are_over() {
        let (id, now) = (RoomId::parse("shop").unwrap(), TimeMs(1_000_000));
        let settings = Box::new(Settings::new(&id, now));
        let fact = Fact::RoomOpened { room: id, generation: 1, settings };
        let mut room = Room::open(&Event { seq: 1, at: now, fact }).unwrap();
        let mut presence = Presence::new(now);
        let address = Address::from_ip("203.0.113.7".parse().unwrap()).digest();
        let client = Client { family: Family::V4, address, agent: agent_digest(b"b") };
        let fresh_owner = Some(Digest16::of_owner("0123456789abcdef"));
        let claim = Claim::default();
        let join = Join { claim, fresh_owner, client, pre_queue_max: 9 };
        for command in [Command::Join(join), Command::Close] {
            assert!(run(&mut room, &mut presence, &command, now, &[7; 32]).result.is_ok());
        }
        let place = Place::Ticket(1);
        let (frame, _) = room.frame(place, &presence, now).unwrap();
        assert_eq!(frame, Frame::ended(EndReason::RoomReset));
        assert_eq!(room.frame(Place::Ticket(0), &presence, now), None);
        let channel = Channel::Direct { client, key: None };
        let knock = Knock { shown: Shown::Place(place), owners: vec![], channel };
        let verdict = decide_place(&room, &presence, &knock, now);
        assert_eq!(verdict, Verdict::Queue { reason: "room_reset", clear_token: true });
    }
}

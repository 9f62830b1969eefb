//! What an operator is told: the room as the admin list shows it (HOL-41) and one visitor as
//! support looks them up (ADM-52). Only one-way digests of a visitor leave the room.

use alloc::format;
use alloc::string::String;

use serde_json::{Map, Value, json};

use super::event::Proof;
use super::presence::Presence;
use super::{Room, Standing};
use crate::id::Place;
use crate::time::TimeMs;

impl Room {
    /// The state that visitors see (ENG-03).
    #[must_use]
    pub fn effective_state(&self, now: TimeMs) -> &'static str {
        if self.gate_closed(now) && !self.is_bypass() {
            "scheduled"
        } else {
            self.settings().state.as_str()
        }
    }

    /// The item of the admin list.
    #[must_use]
    pub fn list_item(&self, now: TimeMs) -> Map<String, Value> {
        let mut item = Map::new();
        item.insert("id".into(), self.id().as_str().into());
        item.insert("g".into(), self.generation().into());
        self.settings().write_list_fields(&mut item);
        let oldest = self.front().and_then(|n| self.joined_at(n));
        let wait = self.wait_of_newcomer(now);
        let live = [
            ("effectiveState", self.effective_state(now).into()),
            ("waiting", self.waiting().into()),
            ("preQueue", self.pre_queued().into()),
            ("passed", self.passes_unused().into()),
            ("sessions", self.sessions().into()),
            ("slotsUsed", self.slots_used().into()),
            ("passedLastMin", self.passed_last_minute(now).into()),
            ("joinedLastMin", self.joined_last_minute(now).into()),
            ("oldestWaitSec", oldest.map_or(0, |at| now.ms_since(at) / 1000).into()),
            ("estWaitSec", wait.map_or(Value::Null, |wait| wait.seconds.into())),
            ("nextTicket", self.next_ticket().into()),
            ("createdAt", self.created_at().0.into()),
        ];
        for (name, value) in live {
            item.insert(name.into(), value);
        }
        if wait.is_some_and(|wait| wait.is_floor) {
            item.insert("estWaitFloor".into(), true.into());
        }
        item
    }

    /// One visitor for support; `None` when the room never gave the ticket out or forgot it.
    #[must_use]
    pub fn visitor(&self, number: u64, presence: &Presence, now: TimeMs) -> Option<Value> {
        let ticket = self.ticket(number)?;
        let standing = self.standing(Place::Ticket(number), presence, now);
        let (state, reason) = match standing {
            Standing::Waiting { .. } => ("waiting", None),
            Standing::Passed { .. } | Standing::Admitted { .. } => ("passed", None),
            Standing::Ended(reason) => ("expired", Some(reason.as_str())),
            Standing::PreQueued { .. } | Standing::Unknown => return None,
        };
        let pass = self.passes.look_up(number);
        let session = pass.and_then(|pass| pass.session.as_ref());
        let open = matches!(standing, Standing::Admitted { .. });
        let channel = session.map(|session| match session.proof {
            Proof::Key(_) => "browser",
            Proof::Channel => "connector",
        });
        let [v4, v6] = ticket.addresses;
        Some(json!({
            "ticket": number,
            "state": state,
            "reason": reason,
            "position": self.position(number),
            "joinedAt": ticket.joined_at,
            "passedAt": pass.map(|pass| pass.passed_at),
            "lastSeenAt": presence.last_seen(number),
            "session": {
                "open": open,
                "openedAt": session.map(|session| session.opened_at),
                "lastSeenAt": session.and(presence.last_touch(number)),
                "channel": channel,
            },
            "binding": {
                "addressDigest": format!("{:016x}", if v4.0 == 0 { v6.0 } else { v4.0 }),
                "agentDigest": format!("{:016x}", ticket.agent.0),
                "ownerDigest": ticket.owner.map(|owner| owner.to_hex()),
            },
        }))
    }
}

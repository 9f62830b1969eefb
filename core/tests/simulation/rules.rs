//! What each command must answer and change, as the contract has it: the part of the model that
//! knows commands. Every function compares the engine's answer and then moves the model on.

use qm_core::door::{Channel, Knock, Shown, Verdict};
use qm_core::id::Place;
use qm_core::room::config::{RoomState, Settings};
use qm_core::room::patch::Patch;
use qm_core::room::{Claim, Command, EndReason, Join, Outcome, Proof, Refusal, Standing};
use qm_core::time::TimeMs;

use crate::model::{Model, Stage};

type Answer = Result<Outcome, Refusal>;

fn expect(what: &str, wanted: &Answer, got: &Answer) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("{what}: wanted {wanted:?}, got {got:?}")) }
}

impl Model {
    /// Checks the answer to any command but a tick, and does to the model what it must do.
    pub(crate) fn follow(
        &mut self,
        command: &Command,
        now: TimeMs,
        got: &Answer,
    ) -> Result<(), String> {
        match command {
            Command::Join(join) => self.join(join, now, got),
            Command::Leave(claim) => self.leave(claim, now, got),
            Command::Enter { knock, fresh_key } => {
                let verdict = self.door(knock, now);
                let keyed = matches!(knock.channel, Channel::Direct { .. });
                let proof = if keyed { Proof::Key(*fresh_key) } else { Proof::Channel };
                let opens = matches!(verdict, Verdict::Admit { .. } | Verdict::Reclaim { .. });
                let key_issued = keyed && opens;
                expect("door", &Ok(Outcome::Door { verdict, key_issued }), got)?;
                self.enter(verdict, proof, now);
                Ok(())
            }
            Command::Flush { count } => {
                let released = self.flush(*count, now);
                expect("flush", &Ok(Outcome::Released(released)), got)
            }
            Command::Eject { ticket } => {
                let alive = live(self.standing(Place::Ticket(*ticket), now));
                let Some(place) = alive else {
                    return expect("eject", &Err(Refusal::NoSuchTicket), got);
                };
                self.end(place, EndReason::Ejected);
                expect("eject", &Ok(Outcome::Ejected), got)
            }
            Command::Purge => {
                let (waiting, pre_queue) = (self.waiting(), self.pre_waiting());
                self.purge();
                expect("purge", &Ok(Outcome::Purged { waiting, pre_queue }), got)
            }
            Command::Configure(patch) => self.configure(patch, now, got),
            Command::SetState(state) => {
                self.rules.state = *state;
                expect("state", &Ok(Outcome::Done), got)
            }
            Command::Tick { .. } | Command::Close => expect("done", &Ok(Outcome::Done), got),
        }
    }

    /// The live place that is the claimant's by proof, and which proof it was.
    fn own_place(&self, claim: &Claim, now: TimeMs) -> Option<(Place, usize)> {
        let proof_of = |place| {
            let owner = self.owner_of(place)?;
            claim.owners.iter().position(|shown| *shown == owner)
        };
        for named in &claim.places {
            if let Some(place) = live(self.standing(*named, now))
                && let Some(index) = proof_of(place)
            {
                return Some((place, index));
            }
        }
        let tickets = self.tickets.keys().map(|n| Place::Ticket(*n));
        let references = self.pre.keys().map(|q| Place::Reference(*q));
        let owned = tickets.chain(references).filter_map(|place| {
            let place = live(self.standing(place, now))?;
            Some((place, proof_of(place)?))
        });
        owned.min_by_key(|(_, index)| *index)
    }

    fn join(&mut self, join: &Join, now: TimeMs, got: &Answer) -> Result<(), String> {
        if let Some((place, index)) = self.own_place(&join.claim, now) {
            let inside = matches!(self.standing(place, now), Standing::Admitted { .. });
            let until = now.plus_seconds(u64::from(self.rules.passed_ttl_seconds));
            if let Place::Ticket(n) = place
                && let Some(ticket) = self.tickets.get_mut(&n)
            {
                ticket.bind(&join.client);
                if let Stage::Inside { offered_until, .. } = &mut ticket.stage
                    && inside
                    && offered_until.is_none_or(|until| until <= now)
                {
                    *offered_until = Some(until);
                }
            }
            let owner_index = Some(index);
            return expect("rejoin", &Ok(Outcome::Placed { place, owner_index }), got);
        }
        let placed = |place| Ok(Outcome::Placed { place, owner_index: None });
        if self.rules.state == RoomState::Bypass {
            return expect("join in bypass", &placed(Place::Ticket(0)), got);
        }
        if self.gate_closed(now) {
            return self.pre_join(join, now, got);
        }
        let held = self.held_in_line(join.client.address);
        let most = self.rules.queue_max_per_address.map_or(u64::MAX, u64::from);
        if join.fresh_owner.is_some() && held >= most {
            return expect("join over the cap", &Err(Refusal::QueueAddressLimit), got);
        }
        let n = self.next_ticket();
        self.take_ticket(join.fresh_owner, &join.client, now);
        expect("join", &placed(Place::Ticket(n)), got)
    }

    fn pre_join(&mut self, join: &Join, now: TimeMs, got: &Answer) -> Result<(), String> {
        if self.pre_waiting() >= join.pre_queue_max {
            return expect("join a full pre-queue", &Err(Refusal::PreQueueFull), got);
        }
        let held = self.held_before(join.client.address);
        let most = self.rules.pre_queue_max_per_address.map_or(u64::MAX, u64::from);
        if join.fresh_owner.is_some() && held >= most {
            let refused = Err(Refusal::PreQueueAddressLimit);
            return expect("pre-join over the cap", &refused, got);
        }
        match got {
            Ok(Outcome::Placed { place: Place::Reference(q), owner_index: None })
                if *q > 0 && *q < 1 << 53 && !self.pre.contains_key(q) =>
            {
                self.take_reference(*q, join.fresh_owner, join.client, now);
                Ok(())
            }
            _ => Err(format!("pre-join: wanted a fresh reference, got {got:?}")),
        }
    }

    fn leave(&mut self, claim: &Claim, now: TimeMs, got: &Answer) -> Result<(), String> {
        if let Some((place, _)) = self.own_place(claim, now) {
            self.end(place, EndReason::Left);
            return expect("leave", &Ok(Outcome::Left), got);
        }
        // Nobody gains by leaving a place that is over; the owner of a reference that ended is
        // not remembered, so anybody may.
        let over = |place: &Place| {
            let proven = self.owner_of(*place).is_some_and(|owner| claim.owners.contains(&owner));
            let kept = !matches!(place, Place::Ticket(n) if *n <= self.forgotten);
            matches!(self.standing(*place, now), Standing::Ended(_))
                && ((proven && kept) || matches!(place, Place::Reference(_)))
        };
        let wanted =
            if claim.places.iter().any(over) { Ok(Outcome::Left) } else { Err(Refusal::NotOwner) };
        expect("leave nothing", &wanted, got)
    }

    /// What the door must say, from CHK-10 to CHK-27, HOL-05, HOL-35 and HOL-56.
    pub(crate) fn door(&self, knock: &Knock, now: TimeMs) -> Verdict {
        let queue = |reason, clear_token| Verdict::Queue { reason, clear_token };
        let place = match knock.shown {
            Shown::Nothing => return queue("no_token", false),
            Shown::Useless => return queue("no_token", true),
            Shown::Outdated => return queue("room_reset", true),
            Shown::Place(place) => place,
        };
        match self.standing(place, now) {
            Standing::Unknown => queue("no_token", true),
            Standing::PreQueued { .. } => queue("scheduled", false),
            Standing::Waiting { .. } if self.gate_closed(now) => queue("scheduled", false),
            Standing::Waiting { .. } if self.rules.state == RoomState::Paused => {
                queue("paused", false)
            }
            Standing::Waiting { .. } => queue("waiting", false),
            Standing::Ended(EndReason::SessionEnded) => queue("session_expired", true),
            Standing::Ended(reason) => queue(reason.as_str(), true),
            Standing::Passed { n, .. } if self.fits(n, knock) => Verdict::Admit { n },
            Standing::Passed { .. } => queue("bound_to_other_client", false),
            Standing::Admitted { n, .. } => self.door_inside(n, knock, now),
        }
    }

    fn door_inside(&self, n: u64, knock: &Knock, now: TimeMs) -> Verdict {
        let Stage::Inside { proof, offered_until, .. } = self.tickets[&n].stage else {
            return Verdict::Queue { reason: "no_token", clear_token: true };
        };
        let key = match knock.channel {
            Channel::Direct { key, .. } => key,
            Channel::Vouched { .. } => None,
        };
        let proven = match proof {
            Proof::Key(digest) => key == Some(digest),
            Proof::Channel => matches!(knock.channel, Channel::Vouched { .. }),
        };
        let offered = offered_until.is_some_and(|until| now < until);
        match () {
            () if proven => Verdict::Session { n },
            () if offered && self.fits(n, knock) => Verdict::Reclaim { n },
            () if self.owns(n, knock) && key.is_none() => Verdict::Session { n },
            () => Verdict::Queue { reason: "session_elsewhere", clear_token: true },
        }
    }

    pub(crate) fn owns(&self, n: u64, knock: &Knock) -> bool {
        self.owner_of(Place::Ticket(n)).is_some_and(|owner| knock.owners.contains(&owner))
    }

    fn fits(&self, n: u64, knock: &Knock) -> bool {
        let ticket = &self.tickets[&n];
        let same_browser = match knock.channel {
            Channel::Vouched { client } => ticket.knows(&client),
            Channel::Direct { client, .. } => ticket.knows(&client) && ticket.agent == client.agent,
        };
        same_browser || self.owns(n, knock) || ticket.owner.is_none()
    }

    fn enter(&mut self, verdict: Verdict, proof: Proof, now: TimeMs) {
        let (Verdict::Admit { n } | Verdict::Reclaim { n } | Verdict::Session { n }) = verdict
        else {
            return;
        };
        let Some(ticket) = self.tickets.get_mut(&n) else { return };
        ticket.stage = match (verdict, ticket.stage) {
            (Verdict::Reclaim { .. }, Stage::Inside { opened_at, .. }) => {
                Stage::Inside { opened_at, touched_at: now, proof, offered_until: None }
            }
            (Verdict::Session { .. }, Stage::Inside { opened_at, proof, offered_until, .. }) => {
                Stage::Inside { opened_at, touched_at: now, proof, offered_until }
            }
            _ => Stage::Inside { opened_at: now, touched_at: now, proof, offered_until: None },
        };
    }

    fn configure(&mut self, patch: &Patch, now: TimeMs, got: &Answer) -> Result<(), String> {
        let rules = patched(&self.rules, patch);
        if rules.session_max_seconds.is_some_and(|most| most < rules.session_ttl_seconds) {
            return match got {
                Err(Refusal::Settings(_)) => Ok(()),
                _ => Err(format!("impossible settings: got {got:?}")),
            };
        }
        self.change_rules(rules, now);
        expect("configure", &Ok(Outcome::Done), got)
    }
}

fn live(standing: Standing) -> Option<Place> {
    match standing {
        Standing::Waiting { n } | Standing::Passed { n, .. } | Standing::Admitted { n, .. } => {
            Some(Place::Ticket(n))
        }
        Standing::PreQueued { q } => Some(Place::Reference(q)),
        Standing::Ended(_) | Standing::Unknown => None,
    }
}

/// The fields that the simulation changes, one by one.
fn patched(old: &Settings, patch: &Patch) -> Settings {
    Settings {
        rate: patch.rate.unwrap_or(old.rate),
        max_concurrent: patch.max_concurrent.unwrap_or(old.max_concurrent),
        passed_ttl_seconds: patch.passed_ttl_seconds.unwrap_or(old.passed_ttl_seconds),
        session_ttl_seconds: patch.session_ttl_seconds.unwrap_or(old.session_ttl_seconds),
        session_max_seconds: patch.session_max_seconds.unwrap_or(old.session_max_seconds),
        presence_seconds: patch.presence_seconds.unwrap_or(old.presence_seconds),
        queue_max_per_address: patch.queue_max_per_address.unwrap_or(old.queue_max_per_address),
        pre_queue_max_per_address: patch
            .pre_queue_max_per_address
            .unwrap_or(old.pre_queue_max_per_address),
        opens_at: patch.opens_at.unwrap_or(old.opens_at),
        state: patch.state.unwrap_or(old.state),
        ..old.clone()
    }
}

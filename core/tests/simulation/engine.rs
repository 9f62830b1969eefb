//! The room under test with its log, and the bugs that can be planted into it: each edits the
//! events between the decision and the fold, as a wrong rule would.

use qm_core::id::RoomId;
use qm_core::room::{
    Command, Event, Fact, Outcome, Presence, Ran, Refusal, Release, Room, Settings, decide, run,
};
use qm_core::time::TimeMs;

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    Nothing,
    /// Nothing, but folded by the path that plants take.
    NothingByHand,
    FreesASlotTwice,
    SkipsATicket,
    ReleasesOneTooMany,
    KeepsAnExpiredPass,
    KeepsASession,
    GivesAbsentOwnersSlots,
    LosesATicket,
    LosesADrawnPlace,
    ForgetsToLeave,
    ForgetsToChargeTheRate,
    KeepsTheOldKey,
    TakesOnlyTheSlotOfAnEjected,
}

impl Plant {
    pub(crate) const BUGS: [Self; 12] = [
        Self::FreesASlotTwice,
        Self::SkipsATicket,
        Self::ReleasesOneTooMany,
        Self::KeepsAnExpiredPass,
        Self::KeepsASession,
        Self::GivesAbsentOwnersSlots,
        Self::LosesATicket,
        Self::LosesADrawnPlace,
        Self::ForgetsToLeave,
        Self::ForgetsToChargeTheRate,
        Self::KeepsTheOldKey,
        Self::TakesOnlyTheSlotOfAnEjected,
    ];

    fn edit(self, facts: &mut Vec<Fact>) {
        for fact in facts.iter_mut() {
            self.edit_one(fact);
        }
        match self {
            Self::FreesASlotTwice => {
                let over = |fact: &Fact| match fact {
                    Fact::Expired { ns } | Fact::SessionEnded { ns } => ns.first().copied(),
                    _ => None,
                };
                if let Some(n) = facts.iter().find_map(over) {
                    facts.push(Fact::SlotsReturned { ns: vec![n + 1] });
                }
            }
            Self::LosesATicket => {
                facts.retain(|fact| !matches!(fact, Fact::Join { n, .. } if n % 7 == 0));
            }
            Self::ForgetsToLeave => facts.retain(|fact| !matches!(fact, Fact::Left { .. })),
            Self::KeepsTheOldKey => facts.retain(|fact| !matches!(fact, Fact::Reclaimed { .. })),
            _ => {}
        }
    }

    fn edit_one(self, fact: &mut Fact) {
        match (self, fact) {
            (Self::SkipsATicket, Fact::Passed(release)) => {
                if let Some((from, to)) = release.ranges.first_mut()
                    && *from < *to
                {
                    *from += 1;
                }
            }
            (Self::ReleasesOneTooMany, Fact::Passed(Release { ranges, .. })) => {
                if let Some((_, to)) = ranges.last_mut() {
                    *to += 1;
                }
            }
            (Self::KeepsAnExpiredPass, Fact::Expired { ns })
            | (Self::KeepsASession, Fact::SessionEnded { ns }) => {
                ns.pop();
            }
            (Self::GivesAbsentOwnersSlots, Fact::Passed(release)) => release.ns.clear(),
            (Self::LosesADrawnPlace, Fact::Drawn { entries, .. }) => {
                entries.pop();
            }
            (Self::ForgetsToChargeTheRate, fact) => {
                if let Fact::Passed(release) = fact {
                    *fact = Fact::Flushed(release.clone());
                }
            }
            (Self::TakesOnlyTheSlotOfAnEjected, fact) => {
                if let Fact::Ejected { n } = fact {
                    *fact = Fact::SlotsReturned { ns: vec![*n] };
                }
            }
            _ => {}
        }
    }
}

pub(crate) struct Engine {
    pub(crate) room: Room,
    pub(crate) presence: Presence,
    pub(crate) log: Vec<Event>,
    plant: Plant,
}

impl Engine {
    pub(crate) fn new(settings: Settings, now: TimeMs, plant: Plant) -> Self {
        let room = RoomId::parse("sale").unwrap();
        let fact = Fact::RoomOpened { room, generation: 1, settings: Box::new(settings) };
        let event = Event { seq: 1, at: now, fact };
        let room = Room::open(&event).unwrap();
        Self { room, presence: Presence::new(now), log: vec![event], plant }
    }

    /// Rehearses commands: nothing of it may stay, and what it told is what happens.
    pub(crate) fn rehearse(
        &mut self,
        commands: &[&Command],
        now: TimeMs,
        entropy: &[u8; 32],
    ) -> Result<Vec<Event>, String> {
        let (room, presence) = (self.room.fingerprint(), self.presence.clone());
        let told = self.room.rehearse(&mut self.presence, |room, presence| {
            let mut told = Vec::new();
            for (command, later) in commands.iter().zip(0..) {
                let ran = run(room, presence, command, now.plus_ms(later * 700), entropy);
                told.extend(ran.events);
            }
            told
        });
        if self.room.fingerprint() != room {
            return Err(format!("a rehearsal changed the room: {told:?}"));
        }
        if self.presence != presence {
            return Err(format!("a rehearsal changed who is here: {told:?}"));
        }
        Ok(told)
    }

    /// Runs one command and keeps what happened.
    pub(crate) fn run(&mut self, command: &Command, now: TimeMs, entropy: &[u8; 32]) -> Ran {
        let ran = if self.plant == Plant::Nothing {
            run(&mut self.room, &mut self.presence, command, now, entropy)
        } else {
            self.run_edited(command, now, entropy)
        };
        self.log.extend(ran.events.iter().cloned());
        ran
    }

    /// Whether no bug is planted.
    pub(crate) fn is_sound(&self) -> bool {
        self.plant == Plant::Nothing
    }

    fn run_edited(&mut self, command: &Command, now: TimeMs, entropy: &[u8; 32]) -> Ran {
        let mut events = Vec::new();
        let draws_by_itself = matches!(command, Command::Tick { .. } | Command::Purge);
        if self.room.draw_is_due(now) && !draws_by_itself {
            let tick = Command::Tick { retain_ms: u64::MAX };
            let _ = self.step(&tick, now, entropy, &mut events);
        }
        let result = self.step(command, now, entropy, &mut events);
        Ran { events, result }
    }

    fn step(
        &mut self,
        command: &Command,
        now: TimeMs,
        entropy: &[u8; 32],
        events: &mut Vec<Event>,
    ) -> Result<Outcome, Refusal> {
        let mut decision = decide(&self.room, &self.presence, command, now, entropy)?;
        self.plant.edit(&mut decision.facts);
        for fact in decision.facts {
            let event = Event { seq: self.room.head() + 1, at: now, fact };
            self.room.apply(&event);
            self.presence.follow(&self.room, &event);
            events.push(event);
        }
        Ok(decision.outcome)
    }
}

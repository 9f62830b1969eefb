//! What a ticket costs in memory, measured as the growth of this process: the only test of its
//! binary, so that nothing else allocates beside it.

use std::fs;

use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::id::{Place, RoomId};
use qm_core::room::{
    Claim, Client, Command, Event, Fact, Family, Join, Outcome, Presence, Room, Settings, run,
};
use qm_core::time::TimeMs;

const TICKETS: u64 = 1_000_000;
const OCTETS_MAX: u64 = 160;
const PAGE: u64 = 4096;

/// Resident octets of this process. Pages are 4 KiB on every machine the tests run on; on one
/// with larger pages the measure is too small, never too large.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<u64>().ok()? * PAGE)
}

/// Distinct and spread like a real digest.
fn owner(number: u64) -> Digest16 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&mixed.to_be_bytes());
    octets[8..].copy_from_slice(&number.to_be_bytes());
    Digest16(octets)
}

fn join(number: u64) -> Command {
    let address = AddressDigest(number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let client = Client { family: Family::V4, address, agent: AgentDigest(number % 50) };
    let (claim, fresh_owner) = (Claim::default(), Some(owner(number)));
    Command::Join(Join { claim, fresh_owner, client, pre_queue_max: 0 })
}

#[test]
fn a_million_tickets_of_distinct_owners_and_addresses() {
    let start = TimeMs(1_700_000_000_000);
    let id = RoomId::parse("sale").unwrap();
    let settings = Box::new(Settings::new(&id, start));
    let fact = Fact::RoomOpened { room: id, generation: 1, settings };
    let mut room = Room::open(&Event { seq: 1, at: start, fact }).unwrap();
    let mut presence = Presence::new(start);
    let Some(before) = resident() else { return };
    for number in 1..=TICKETS {
        let now = start.plus_ms(number / 10);
        let ran = run(&mut room, &mut presence, &join(number), now, &[7; 32]);
        let place = Place::Ticket(number);
        assert_eq!(ran.result, Ok(Outcome::Placed { place, owner_index: None }));
        // However long the line is, a join writes one event.
        assert_eq!(ran.events.len(), 1);
    }
    let octets = (resident().unwrap() - before) / TICKETS;
    assert_eq!(room.waiting(), TICKETS);
    assert!(octets <= OCTETS_MAX, "{octets} octets a ticket");
}

//! The short code of a ticket that a visitor can read aloud to support (`ref`): eight characters of
//! Crockford's base32 as `XXXX-XXXX`. It is the ticket number enciphered by a Feistel network whose
//! rounds are HMACs over room and generation: no two tickets of a room share a code, the code tells
//! no order, and a look-up deciphers it instead of keeping an index. It changes with `SECRET`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::KeyRing;
use super::key::{KeyedMac, mac};
use crate::id::RoomId;

const ALPHABET: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J',
    'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
];

/// Half of a code's 40 bits.
const HALF_BITS: u32 = 20;
const HALF_MASK: u64 = (1 << HALF_BITS) - 1;

/// Rounds of the network: four make a permutation that looks random to who lacks the key.
const ROUNDS: [u8; 4] = [0, 1, 2, 3];

impl KeyRing {
    /// The short code of a ticket.
    #[must_use]
    pub fn short_code(&self, room: &RoomId, generation: u64, ticket: u64) -> String {
        let round = Rounds { key: &self.current.short_code, room, generation };
        let (mut left, mut right) = (ticket >> HALF_BITS & HALF_MASK, ticket & HALF_MASK);
        for number in ROUNDS {
            (left, right) = (right, left ^ round.value(number, right));
        }
        let bits = left << HALF_BITS | right;
        grouped(
            (0..8)
                .rev()
                .filter_map(|place| ALPHABET.get((bits >> (5 * place)) as usize & 31).copied()),
        )
    }

    /// The tickets that a code in canonical form may stand for: one for each secret in use. The
    /// caller keeps those that the room gave out.
    #[must_use]
    pub fn tickets_of_short_code(&self, room: &RoomId, generation: u64, code: &str) -> Vec<u64> {
        let value = |letter: char| ALPHABET.iter().position(|known| *known == letter);
        let letters = code.chars().filter_map(value);
        let bits = letters.fold(0, |bits: u64, value| bits << 5 | value as u64);
        let keys = core::iter::once(&self.current).chain(&self.previous);
        keys.map(|keys| {
            let round = Rounds { key: &keys.short_code, room, generation };
            let (mut left, mut right) = (bits >> HALF_BITS & HALF_MASK, bits & HALF_MASK);
            for number in ROUNDS.into_iter().rev() {
                (left, right) = (right ^ round.value(number, left), left);
            }
            left << HALF_BITS | right
        })
        .collect()
    }

    /// Reads a short code as people type it after hearing it: any case, blanks and dashes anywhere,
    /// `O` for zero, `I` and `L` for one. Returns the canonical form.
    #[must_use]
    pub fn parse_short_code(text: &str) -> Option<String> {
        if text.len() > 64 {
            return None;
        }
        let typed = text.chars().filter(|c| !c.is_whitespace() && !is_dash(*c));
        let read = typed.map(|c| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        });
        let is_code = read.clone().count() == 8 && read.clone().all(|c| ALPHABET.contains(&c));
        is_code.then(|| grouped(read))
    }
}

struct Rounds<'a> {
    key: &'a KeyedMac,
    room: &'a RoomId,
    generation: u64,
}

impl Rounds<'_> {
    fn value(&self, number: u8, half: u64) -> u64 {
        let text = format!("{}|{}|{number}|{half}", self.room, self.generation);
        let [a, b, c, ..] = mac(self.key, text.as_bytes());
        u64::from_be_bytes([0, 0, 0, 0, 0, a, b, c]) & HALF_MASK
    }
}

fn grouped(letters: impl Iterator<Item = char>) -> String {
    let mut code = String::with_capacity(9);
    for (at, letter) in letters.enumerate() {
        if at == 4 {
            code.push('-');
        }
        code.push(letter);
    }
    code
}

/// The dashes keyboards and phones put in.
fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

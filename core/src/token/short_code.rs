//! The short code of a ticket that a visitor can read aloud to support (`ref`): eight characters of
//! Crockford's base32 as `XXXX-XXXX`. It is computed from the ticket, so only a look-up needs an
//! index; 40 bits are few, so a look-up may find more than one ticket. It changes with `SECRET`.

use alloc::format;
use alloc::string::String;

use super::KeyRing;
use super::key::mac;
use crate::id::RoomId;

const ALPHABET: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J',
    'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
];

impl KeyRing {
    /// The short code of a ticket.
    #[must_use]
    pub fn short_code(&self, room: &RoomId, generation: u64, ticket: u64) -> String {
        let text = format!("{room}|{generation}|{ticket}");
        let [a, b, c, d, e, ..] = mac(&self.current.short_code, text.as_bytes());
        let bits = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        grouped(
            (0..8)
                .rev()
                .filter_map(|place| ALPHABET.get((bits >> (5 * place)) as usize & 31).copied()),
        )
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

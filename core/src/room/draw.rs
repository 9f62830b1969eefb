//! The draw (PRE-03, PRE-04): a shuffle that anybody can recompute from the recorded seed and the
//! frozen entry list. `docs/draw.md` describes it with a program; the two must agree.
//!
//! Every user gets an independent random key a round, so a user who holds more places never has a
//! better first one, and arrival order plays no part (PRE-06).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::address::AddressDigest;

/// One frozen entry of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawEntry {
    /// The pre-queue reference.
    pub q: u64,
    /// The user: the digest of the address (HOL-32).
    pub user: AddressDigest,
}

fn entry_key(seed: &[u8; 32], reference: u64) -> [u8; 32] {
    let hash = Sha256::new().chain_update("qm:draw:entry").chain_update(seed);
    hash.chain_update(reference.to_be_bytes()).finalize().into()
}

fn round_key(seed: &[u8; 32], round: u32, user: AddressDigest) -> [u8; 32] {
    let hash = Sha256::new().chain_update("qm:draw:round").chain_update(seed);
    hash.chain_update(round.to_be_bytes()).chain_update(user.0.to_be_bytes()).finalize().into()
}

/// The references in drawn order: round by round over users, each round in the order of its keys.
#[must_use]
pub fn drawn_order(seed: &[u8; 32], entries: &[DrawEntry]) -> Vec<u64> {
    let mut by_user: Vec<_> =
        entries.iter().map(|entry| (entry.user, entry_key(seed, entry.q), entry.q)).collect();
    by_user.sort_unstable();
    let mut order = Vec::with_capacity(by_user.len());
    let mut round = 0;
    let mut last_user = None;
    for (user, _, reference) in by_user {
        round = if last_user == Some(user) { round + 1 } else { 0 };
        last_user = Some(user);
        order.push((round, round_key(seed, round, user), reference));
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, reference)| reference).collect()
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn entries(list: &[(u64, u64)]) -> Vec<DrawEntry> {
        list.iter().map(|(q, user)| DrawEntry { q: *q, user: AddressDigest(*user) }).collect()
    }

    #[test]
    fn the_worked_example_of_the_manual() {
        let seed = core::array::from_fn(|i| u8::try_from(i).unwrap());
        let list = entries(&[(11, 1), (12, 1), (13, 2), (14, 3), (15, 3)]);
        let order = drawn_order(&seed, &list);
        assert_eq!(order, vec![11, 15, 13, 12, 14]);
    }

    #[test]
    fn arrival_order_and_the_order_of_the_list_play_no_part() {
        let list = entries(&[(11, 1), (12, 1), (13, 2), (14, 3), (15, 3)]);
        let mut reversed = list.clone();
        reversed.reverse();
        assert_eq!(drawn_order(&[7; 32], &list), drawn_order(&[7; 32], &reversed));
    }

    #[test]
    fn holding_more_places_does_not_improve_the_first_one() {
        // User 1 holds 16 places, users 2..=9 one each: over many seeds each user should win the
        // first ticket about as often (1000 / 9 = 111; 6 standard deviations are 60).
        let mut list = entries(&[]);
        list.extend((0..16).map(|q| DrawEntry { q: q + 1, user: AddressDigest(1) }));
        list.extend((2..10).map(|user| DrawEntry { q: 100 + user, user: AddressDigest(user) }));
        let wins = (0u32..1000)
            .filter(|i| {
                let mut seed = [0; 32];
                seed[..4].copy_from_slice(&i.to_be_bytes());
                drawn_order(&seed, &list)[0] <= 16
            })
            .count();
        assert!((51..=171).contains(&wins), "{wins} of 1000");
    }

    #[test]
    fn no_second_place_before_anybodys_first() {
        let list = entries(&[(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)]);
        for seed in 0u8..50 {
            let user = |q: u64| list.iter().find(|e| e.q == q).unwrap().user.0;
            let mut seen = [0u32; 4];
            let rounds: Vec<_> = drawn_order(&[seed; 32], &list)
                .into_iter()
                .map(|q| {
                    let count = &mut seen[usize::try_from(user(q)).unwrap()];
                    *count += 1;
                    *count
                })
                .collect();
            assert_eq!(rounds, [1, 1, 1, 2, 2, 3]);
        }
    }
}

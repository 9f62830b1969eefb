//! Who waits, in order: a bitmap over ticket numbers with a Fenwick tree over its words. It answers
//! "how many wait up to here" in O(log n) for about a fifth of an octet a ticket, and keeps numbers
//! that left the middle of the line (ejected, gone) from being counted.

use alloc::vec::Vec;

const WORD: u64 = 64;

/// The set of waiting ticket numbers. Numbers are added in rising order; one
/// that left may be put back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    words: Vec<u64>,
    /// Fenwick tree over the popcounts of `words`; `tree[i]` covers words `i+1-lowbit(i+1) ..= i`.
    tree: Vec<u32>,
    count: u64,
    /// No word before this one has a member.
    head_word: usize,
}

fn low_bit(index: usize) -> usize {
    index & index.wrapping_neg()
}

fn word_of(number: u64) -> usize {
    usize::try_from(number / WORD).unwrap_or(usize::MAX)
}

fn bit_of(number: u64) -> u64 {
    1 << (number % WORD)
}

impl Waiting {
    /// How many wait.
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.words.get(word_of(number)).is_some_and(|word| word & bit_of(number) != 0)
    }

    /// Adds a number above all that were ever added, or puts one back.
    pub(crate) fn push(&mut self, number: u64) {
        let word = word_of(number);
        while self.words.len() <= word {
            let end = self.words.len();
            let covered = self.prefix(end) - self.prefix(end + 1 - low_bit(end + 1));
            self.words.push(0);
            self.tree.push(u32::try_from(covered).unwrap_or(u32::MAX));
        }
        if let Some(slot) = self.words.get_mut(word) {
            *slot |= bit_of(number);
            self.count += 1;
            // A line that ran empty left the mark behind the word it goes on in.
            self.head_word = self.head_word.min(word);
            self.add(word, 1);
        }
    }

    /// Takes a number out; false when it was not waiting.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let word = word_of(number);
        let Some(slot) = self.words.get_mut(word) else { return false };
        if *slot & bit_of(number) == 0 {
            return false;
        }
        *slot &= !bit_of(number);
        self.count -= 1;
        self.add(word, -1);
        while self.words.get(self.head_word) == Some(&0) {
            self.head_word += 1;
        }
        true
    }

    /// How many waiting numbers are at most `number`: the 1-based place of a waiting one.
    pub(crate) fn rank(&self, number: u64) -> u64 {
        let word = word_of(number);
        let here = self.words.get(word).map_or(0, |bits| {
            let up_to = bit_of(number) | (bit_of(number) - 1);
            u64::from((bits & up_to).count_ones())
        });
        self.prefix(word.min(self.words.len())) + here
    }

    /// Waiting numbers from the front on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().enumerate().skip(self.head_word).flat_map(|(index, word)| {
            let base = u64::try_from(index).unwrap_or(u64::MAX).saturating_mul(WORD);
            BitsOf(*word).map(move |bit| base + bit)
        })
    }

    /// Members in the words before `end`.
    fn prefix(&self, end: usize) -> u64 {
        let mut sum = 0;
        let mut index = end;
        while index > 0 {
            sum += u64::from(self.tree.get(index - 1).copied().unwrap_or(0));
            index -= low_bit(index);
        }
        sum
    }

    fn add(&mut self, word: usize, delta: i32) {
        let mut index = word + 1;
        while let Some(node) = self.tree.get_mut(index - 1) {
            *node = node.saturating_add_signed(delta);
            index += low_bit(index);
        }
    }
}

struct BitsOf(u64);

impl Iterator for BitsOf {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(u64::from(bit))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_goes_on_after_it_ran_empty() {
        let mut waiting = Waiting::default();
        for number in 1..200 {
            waiting.push(number);
            assert_eq!(waiting.iter().collect::<Vec<_>>(), [number]);
            waiting.remove(number);
            assert_eq!(waiting.iter().next(), None);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(
            steps in prop::collection::vec((any::<bool>(), 0u64..700), 1..400),
        ) {
            let (mut fast, mut plain, mut next) = (Waiting::default(), BTreeSet::new(), 1);
            for (push, value) in steps {
                if push {
                    next += value % 90;
                    fast.push(next);
                    plain.insert(next);
                    next += 1;
                } else {
                    prop_assert_eq!(fast.remove(value), plain.remove(&value));
                }
                prop_assert_eq!(fast.len(), plain.len() as u64);
            }
            for number in 0..next + 70 {
                prop_assert_eq!(fast.contains(number), plain.contains(&number));
                prop_assert_eq!(fast.rank(number), plain.range(..=number).count() as u64);
            }
            prop_assert_eq!(fast.iter().collect::<Vec<_>>(), plain.into_iter().collect::<Vec<_>>());
        }
    }
}

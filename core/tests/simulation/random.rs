//! A small seeded generator: the same seed gives the same run on every machine.

use qm_core::digest::Digest16;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x0051_3A17)
    }

    /// The next number of splitmix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from `from` to `to`, both inside.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True this many times in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())]
    }

    pub(crate) fn octets(&mut self) -> [u8; 32] {
        let mut octets = [0; 32];
        for part in octets.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_be_bytes());
        }
        octets
    }

    pub(crate) fn digest(&mut self) -> Digest16 {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.octets()[..16]);
        Digest16(octets)
    }
}

//! Pseudorandom numbers that are the same on every machine.

/// A generator seeded by a name (splitmix64).
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// Creates a generator (FNV-1a of the name).
    pub(crate) fn of(name: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self { state: name.bytes().fold(0xcbf2_9ce4_8422_2325, mix) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `n`; 0 for `n` = 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % n).unwrap_or(0)
    }

    /// Returns one of several items.
    pub(crate) fn pick<T: Copy>(&mut self, some: &[T]) -> Option<T> {
        some.get(self.below(some.len())).copied()
    }
}

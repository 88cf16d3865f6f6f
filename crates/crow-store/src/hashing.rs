//! Short hashes of texts, the same in every version.

/// FNV-1a; texts with the same hash must be compared.
pub(crate) fn short_hash(text: &str) -> i64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const FACTOR: u64 = 0x0100_0000_01b3;
    text.bytes().fold(START, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FACTOR)).cast_signed()
}

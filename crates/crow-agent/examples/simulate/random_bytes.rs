//! The random bytes of this program, which the seed decides as well: the keys of hash maps decide the order of what is in
//! them, and the SDK keeps the open requests of a connection in one.

use std::cell::RefCell;

use crow_testkit::SeededRandom;

thread_local! {
    static RANDOM: RefCell<SeededRandom> = const { RefCell::new(SeededRandom::new(0)) };
}

/// Lets a seed decide the random bytes that this thread gets from now on.
pub(crate) fn seed_random_bytes(seed: u64) {
    RANDOM.set(SeededRandom::new(seed));
}

/// Replaces the function of the C library from which the standard library and other crates take random bytes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the function is called from outside of Rust's rules")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller passes a buffer of this length.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    RANDOM.with_borrow_mut(|random| {
        for part in bytes.chunks_mut(size_of::<u64>()) {
            part.copy_from_slice(&random.next_number().to_le_bytes()[..part.len()]);
        }
    });
    length.cast_signed()
}

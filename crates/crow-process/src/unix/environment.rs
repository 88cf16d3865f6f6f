//! The environment as other processes see it: `/proc/PID/environ` shows the memory block that a program was started
//! with, keys included, to every program of the same user.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char},
};

#[expect(unsafe_code, reason = "no crate of ours names it on every system")]
// SAFETY: the C library defines it with this type.
unsafe extern "C" {
    /// The variables, as the C library and the standard library read them.
    static mut environ: *mut *mut c_char;
}

/// Moves every variable out of the memory block that other processes can read, and overwrites the block. Variables
/// are read and inherited as before.
///
/// # Safety
///
/// No other thread may exist, and nothing may hold a pointer to a variable.
#[expect(unsafe_code, reason = "the block belongs to the C library")]
pub unsafe fn hide_environment() {
    // SAFETY: `environ` is a list that ends with a null pointer, of strings in writable memory that end with a null
    // byte; nothing else uses either meanwhile, as the caller promises.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let visible = *entry;
            let copy = CStr::from_ptr(visible).to_owned();
            let n_bytes = copy.count_bytes();
            // The copy lives as long as the process: the C library returns pointers into it.
            *entry = copy.into_raw();
            visible.write_bytes(0, n_bytes);
            entry = entry.add(1);
        }
    }
}

/// Does nothing: the variables have their usual names.
pub fn complete_environment(_variables: &mut BTreeMap<String, String>) {}

//! Limits that the system enforces on this process: Windows has none of these.

/// The user ID that this process acts for: Windows identifies users in another way.
pub fn effective_uid() -> u32 {
    0
}

/// Does nothing: no signal ends the process.
pub fn ignore_file_size_signal() {}

/// Does nothing: the system limits open files by memory only.
pub fn raise_descriptor_limit() {}

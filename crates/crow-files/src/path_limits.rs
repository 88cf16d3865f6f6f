//! Limits on paths.

/// Linux's limit for a path, longer than on other systems.
pub const PATH_BYTES_MAX: usize = 4096;

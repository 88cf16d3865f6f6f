//! Files on Windows: handles instead of paths, reparse points, access control lists. A file in the user's profile is
//! private, because it inherits the access control list of the profile.

pub(crate) mod file_modes;
pub(crate) mod links;
pub(crate) mod nofollow;
pub(crate) mod private_files;
pub(crate) mod replaced_file;
pub(crate) mod reserved_files;

mod nt_calls;

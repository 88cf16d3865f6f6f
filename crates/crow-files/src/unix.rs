//! Files on Linux, macOS and other Unix systems: permission bits, owners, descriptors and links.

pub(crate) mod file_modes;
pub(crate) mod links;
pub(crate) mod nofollow;
pub(crate) mod private_files;
pub(crate) mod replaced_file;
pub(crate) mod reserved_files;

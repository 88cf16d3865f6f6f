//! Files that others may change or read: opened by descriptor, read up to a limit, replaced atomically, private where
//! they hold secrets.
//!
//! Must not know any tool, session or permission: it takes resolved paths and evaluates nothing. It blocks.

mod bounded_read;
mod file_modes;
mod guarded_open;
mod links;
mod private_files;
mod read;
mod replacement;

pub mod nofollow;

pub use bounded_read::{AllowedRoot, BoundedReadError, hash_content, list_names, read_bounded_text};
pub use file_modes::{is_executable, is_program, make_executable, make_public, permission_bits};
pub use guarded_open::{
    LinkPolicy, OpenOutcome, open_guarded, open_guarded_with, open_resolved, set_guarded_flags,
};
pub use links::{PATH_BYTES_MAX, create_link, resolve_links};
pub use private_files::{
    FileExposure, create_private_dir, create_private_file, file_exposure, is_accessible_to_others,
    is_file_at, make_private, open_private_file, open_to_read, private_file_options, restrict_permissions,
};
pub use read::{ReadError, is_missing, open_file, read_file};
pub use replacement::{
    FileFingerprint, FileReplacement, FileSnapshot, open_or_create_parent, read_snapshot, remove_file,
    replace_file,
};

//! Files that others may change or read: opened by descriptor, read up to a limit, replaced atomically, private where
//! they hold secrets.
//!
//! Must not know any tool, session or permission: it takes resolved paths and evaluates nothing. It blocks.
//!
//! Each system has a module with the same functions; the others use it by the name `system`.

mod bounded_read;
mod dir_entry;
mod directory_links;
mod file_exposure;
mod guarded_open;
mod path_limits;
mod private_files;
mod read;
mod replacement;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub mod nofollow;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub use self::{
    bounded_read::{AllowedRoot, BoundedReadError, hash_content, list_names, read_bounded_text},
    directory_links::links_in,
    file_exposure::FileExposure,
    guarded_open::{
        LinkPolicy, OpenOutcome, open_guarded, open_guarded_with, open_resolved, set_guarded_flags,
    },
    path_limits::PATH_BYTES_MAX,
    private_files::create_private_file,
    read::{ReadError, is_missing, open_file, read_file},
    replacement::{
        FileFingerprint, FileReplacement, FileSnapshot, open_or_create_parent, read_snapshot, remove_file,
        replace_file,
    },
    system::{
        file_modes::{is_executable, is_program, make_executable, make_public, permission_bits},
        links::{create_link, resolve_existing, resolve_links, resolve_present},
        private_files::{
            create_private_dir, file_exposure, is_accessible_to_others, is_file_at, make_private,
            open_private_file, open_to_read, private_file_options, restrict_permissions,
        },
        reserved_files::FileReservation,
    },
};

//! Opens resolved paths without following links: between the evaluation of a path and its opening another process may
//! put a link in its way. Must not know any tool and evaluates nothing.

pub use crate::{
    dir_entry::{EntryKind, ListedEntry},
    system::nofollow::{DirEntries, DirHandle, open_file, read_metadata},
};

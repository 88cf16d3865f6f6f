//! Creates files that only their owner may read.

use std::{io, path::Path};

use crate::system::private_files::private_file_options;

/// Creates an empty file for its owner only; it must not exist.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    let mut options = private_file_options();
    options.write(true).create_new(true).open(path).map(drop)
}

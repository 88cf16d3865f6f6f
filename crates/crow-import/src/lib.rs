//! Reads what the Python version left: its databases and its configuration directory.
//!
//! Reads only, and must not know where anything goes: sessions are handed to the store in its terms, and files are
//! copied to a directory that the caller names.

mod database;
mod directory;
#[cfg(test)]
mod tests;

pub use database::PYTHON_FORMAT;
pub use directory::{
    PythonDatabase, PythonDirectory, PythonDirectoryError, comment_out_keys, find_python_directory,
};

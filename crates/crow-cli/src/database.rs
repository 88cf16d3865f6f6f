//! The options with which the program opens its database.

use crow_store::StoreOptions;

/// Returns the options that open databases of ours, and import those of the Python version.
pub(crate) fn store_options() -> StoreOptions {
    StoreOptions::default().with_foreign_formats(std::slice::from_ref(&crow_import::PYTHON_FORMAT))
}

/// Returns the options that open databases of ours only: a database of the Python version stays as it is.
pub(crate) fn own_store_options() -> StoreOptions {
    StoreOptions::default()
}

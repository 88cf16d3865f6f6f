//! The environment as a value; only `settings.rs` reads it.

use std::collections::BTreeMap;

/// The environment at the start of the program.
pub(crate) type Environment = BTreeMap<String, String>;

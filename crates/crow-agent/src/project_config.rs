//! The configuration of a session besides its tools: rules, MCP servers, skills and prompt files, of the user and of a
//! trusted repository.
//!
//! Untrusted content must never be used: content of a repository becomes part of
//! [`ProjectConfig`](config::ProjectConfig) only from the bytes that were hashed and approved, never from a later read.

mod config;
mod loader;
mod scan;
mod skill_files;
mod survey;
mod trust_command;
mod trust_question;
mod trust_records;
mod wording;

pub(crate) use self::loader::{ConfigLoaderInit, ProjectConfigLoader};
pub(crate) use self::scan::repository_root;
pub(crate) use self::survey::known_skills;
pub(crate) use self::trust_command::TrustAction;
pub use self::trust_command::{
    RepositoryFileTrust, RepositoryTrust, find_repository_root, forget_trust, list_trust,
};
pub use self::trust_records::TrustedRepository;

#[cfg(test)]
pub(crate) use self::tests::bare_settings;

#[cfg(test)]
mod tests;

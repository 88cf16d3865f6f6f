//! A repository's and a user's own files that configure a session: rules, servers, hooks, skills, prompt files, the
//! trust in them, what the user always allows, instructions and the templates of prompts.
//!
//! What reads files blocks; [`ProjectConfigLoader`] and [`GrantStore`] are what one session has of it, ask its client and
//! wait without blocking. Must not know a turn or a model.
//!
//! Untrusted content must never be used: content of a repository becomes part of [`ProjectConfig`] only from the bytes
//! that were hashed and approved, never from a later read.

mod config;
mod config_host;
mod config_loader;
mod directory_description;
mod grant_records;
mod grant_store;
mod instructions;
mod project_records;
mod repository_config;
mod repository_trust;
mod scan;
mod skill_files;
mod survey;
mod system_prompt;
mod trust_question;
mod trust_records;
mod trust_review;
mod wording;

#[cfg(test)]
mod tests;

pub use config::{ApprovedFiles, ProjectConfig};
pub use config_host::ConfigHost;
pub use config_loader::{ConfigLoaderInit, ProjectConfigLoader};
pub use directory_description::describe_directory;
pub use grant_records::{
    ProjectPermissions, change_grants, list_permissions, project_root, read_grants, set_permissions,
};
pub use grant_store::GrantStore;
pub use instructions::INSTRUCTIONS_FILE;
pub use repository_config::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};
pub use repository_trust::{
    RepositoryFileTrust, RepositoryTrust, find_repository_root, forget_trust, list_trust,
};
pub use scan::{ProjectConfigFile, repository_root};
pub use skill_files::{PromptFile, Skill};
pub use survey::{ConfigSources, ConfigSurvey, known_skills};
pub use system_prompt::{RenderedPrompt, SystemPromptFacts, render_compaction_prompt, render_system_prompt};
pub use trust_question::TrustQuestion;
pub use trust_records::TrustedRepository;
pub use trust_review::TrustReview;

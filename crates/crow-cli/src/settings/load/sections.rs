//! The sections of the configuration file.

use std::collections::BTreeMap;

use crow_core::{HookConfig, TreeLimits};
use crow_model::ProviderSettings;
use crow_tools::Shell;
use crow_workflow::WorkflowConfig;

use super::super::file::ConfigField;
use super::{
    agents::AgentsSection, legacy::LegacyModelSettings, permissions::PermissionsSection,
    servers::McpServersSection,
};

/// The top-level sections during loading: models need the providers, independent of their order in the file.
#[derive(Default)]
pub(super) struct ConfigSections<'a> {
    pub(super) providers: BTreeMap<String, ProviderSection>,
    pub(super) models: Vec<&'a ConfigField>,
    pub(super) servers: McpServersSection,
    pub(super) agents: AgentsSection,
    pub(super) tree_limits: TreeLimits,
    pub(super) db_uri: Option<(u64, String)>,
    pub(super) database_variables: Vec<String>,
    pub(super) legacy: LegacyModelSettings,
    pub(super) skills_dir: Option<String>,
    pub(super) system_prompt_path: Option<String>,
    pub(super) max_tokens: Option<u64>,
    pub(super) retries_max: Option<u32>,
    pub(super) requests_max: Option<u32>,
    pub(super) tools_max: Option<usize>,
    pub(super) compact_tokens_max: Option<u64>,
    pub(super) permissions: PermissionsSection,
    pub(super) workflow: WorkflowConfig,
    pub(super) use_acp_terminal: Option<bool>,
    pub(super) session_logs: Option<bool>,
    pub(super) fullscreen: Option<bool>,
    pub(super) vi_keys: Option<bool>,
    pub(super) fallback_to_mcp_terminal: Option<bool>,
    pub(super) shell: Option<Shell>,
    pub(super) hooks: Vec<HookConfig>,
}

impl ConfigSections<'_> {
    /// Returns the variables that hold keys of providers, servers and agents.
    pub(super) fn secret_variables(&self) -> impl Iterator<Item = &String> {
        let providers = self.providers.values().flat_map(|provider| &provider.secret_variables);
        providers.chain(&self.servers.secret_variables).chain(&self.agents.secret_variables)
    }
}

/// A provider, and the variables of its key.
pub(super) struct ProviderSection {
    pub(super) settings: ProviderSettings,
    pub(super) secret_variables: Vec<String>,
}

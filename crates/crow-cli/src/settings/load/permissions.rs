//! `permissions`: the default mode, the rules, and the sandbox.

use crow_core::{Mode, NetworkAccess, PermissionRule, PermissionRules, SandboxMode, escape_hidden_start};

use super::{
    super::{
        ConfigError,
        file::{ConfigField, ConfigNode, ConfigValue},
        known_keys,
    },
    loader::ConfigLoader,
};

/// Rules per list. A pattern takes memory, and time at every tool call.
const RULES_MAX: usize = 500;

/// Characters of a rule that are quoted in a message.
const QUOTED_CHARS_MAX: usize = 80;

/// The section `permissions`.
#[derive(Debug, Default)]
pub(super) struct PermissionsSection {
    pub(super) mode: Option<Mode>,
    pub(super) rules: PermissionRules,
    pub(super) sandbox: Option<SandboxMode>,
    pub(super) network: NetworkAccess,
}

impl ConfigLoader<'_> {
    pub(super) fn read_permissions(
        &mut self,
        field: &ConfigField,
    ) -> Result<PermissionsSection, ConfigError> {
        let mut permissions = PermissionsSection::default();
        for field in
            self.read_map(&field.key, &field.node, "a map with mode, allow, deny, sandbox and network")?
        {
            match field.key.as_str() {
                "mode" => {
                    let Some(text) = self.read_text("permissions.mode", &field.node)? else { continue };
                    let expected = "permissions.mode: expected ask, accept-edits, plan or auto";
                    permissions.mode = Some(
                        Mode::parse(&text).ok_or_else(|| self.error_at(field.line, expected.to_owned()))?,
                    );
                }
                "allow" => permissions.rules.allow = self.read_rules("permissions.allow", &field.node)?,
                "deny" => permissions.rules.deny = self.read_rules("permissions.deny", &field.node)?,
                "sandbox" => permissions.sandbox = self.read_sandbox("permissions.sandbox", field)?,
                "network" => {
                    permissions.network = match self.read_flag("permissions.network", &field.node)? {
                        Some(false) => NetworkAccess::Denied,
                        Some(true) | None => NetworkAccess::Allowed,
                    };
                }
                _ => self.check_known("permissions", field, known_keys::PERMISSIONS),
            }
        }
        Ok(permissions)
    }

    pub(super) fn read_sandbox(
        &mut self,
        key_path: &str,
        field: &ConfigField,
    ) -> Result<Option<SandboxMode>, ConfigError> {
        let Some(text) = self.read_text(key_path, &field.node)? else { return Ok(None) };
        let expected =
            || self.error_at(field.line, format!("{key_path}: expected off, unapproved or always"));
        SandboxMode::parse(&text).map(Some).ok_or_else(expected)
    }

    /// Reads a list of rules. An invalid rule is an error: skipping it would allow too much.
    fn read_rules(&mut self, key_path: &str, node: &ConfigNode) -> Result<Vec<PermissionRule>, ConfigError> {
        let items = match &node.value {
            ConfigValue::Null => return Ok(Vec::new()),
            ConfigValue::List(items) => items,
            ConfigValue::Scalar(_) | ConfigValue::Map(_) => {
                return Err(self.expected_error(key_path, node, "a list of rules"));
            }
        };
        let mut rules = Vec::new();
        for item in items {
            if rules.len() == RULES_MAX {
                return Err(self.error_at(item.line, format!("{key_path}: at most {RULES_MAX} rules")));
            }
            let text = self.read_text(key_path, item)?.unwrap_or_default();
            let rule = PermissionRule::parse(&text);
            let escaped = escape_hidden_start(&text, QUOTED_CHARS_MAX);
            let invalid =
                |error| self.error_at(item.line, format!("{key_path}: the rule `{escaped}` {error}"));
            rules.push(rule.map_err(invalid)?);
        }
        Ok(rules)
    }
}

//! `permissions`: the mode a session starts in, the rules, and how commands are held.

use crow_core::{Mode, Network, Rule, Rules, Sandbox, visible_start};

use super::{
    super::{
        ConfigError,
        file::{Field, Node, Value},
        known,
    },
    Loader,
};

/// Rules of one list. Each that has a pattern takes memory, and time at every call of a tool.
const RULES_MAX: usize = 500;

/// Characters of a rule that a message about it repeats.
const WRONG_CHARS_MAX: usize = 80;

/// What the key says.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    pub(super) mode: Option<Mode>,
    pub(super) rules: Rules,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) network: Network,
}

impl Loader<'_> {
    /// Reads the whole key.
    pub(super) fn permissions(&mut self, field: &Field) -> Result<Permissions, ConfigError> {
        let mut permissions = Permissions::default();
        for field in self.map(&field.key, &field.node, "a map with mode, allow, deny, sandbox and network")? {
            match field.key.as_str() {
                "mode" => {
                    let Some(text) = self.text("permissions.mode", &field.node)? else { continue };
                    let expected = "permissions.mode: expected ask, accept-edits, plan or auto";
                    permissions.mode =
                        Some(Mode::parse(&text).ok_or_else(|| self.wrong(field.line, expected.to_owned()))?);
                }
                "allow" => permissions.rules.allow = self.rules("permissions.allow", &field.node)?,
                "deny" => permissions.rules.deny = self.rules("permissions.deny", &field.node)?,
                "sandbox" => permissions.sandbox = self.sandbox("permissions.sandbox", field)?,
                "network" => {
                    permissions.network = match self.flag("permissions.network", &field.node)? {
                        Some(false) => Network::Closed,
                        Some(true) | None => Network::Open,
                    };
                }
                _ => self.check_known("permissions", field, known::PERMISSIONS),
            }
        }
        Ok(permissions)
    }

    pub(super) fn sandbox(&mut self, place: &str, field: &Field) -> Result<Option<Sandbox>, ConfigError> {
        let Some(text) = self.text(place, &field.node)? else { return Ok(None) };
        let expected = || self.wrong(field.line, format!("{place}: expected off, unapproved or always"));
        Sandbox::parse(&text).map(Some).ok_or_else(expected)
    }

    /// Reads a list of rules. One that cannot be read is an error: left out, it would allow too much.
    fn rules(&mut self, place: &str, node: &Node) -> Result<Vec<Rule>, ConfigError> {
        let items = match &node.value {
            Value::Null => return Ok(Vec::new()),
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => return Err(self.expected(place, node, "a list of rules")),
        };
        let mut rules = Vec::new();
        for item in items {
            if rules.len() == RULES_MAX {
                return Err(self.wrong(item.line, format!("{place}: at most {RULES_MAX} rules")));
            }
            let text = self.text(place, item)?.unwrap_or_default();
            let rule = Rule::parse(&text);
            let shown = visible_start(&text, WRONG_CHARS_MAX);
            let wrong = |bad| self.wrong(item.line, format!("{place}: the rule `{shown}` {bad}"));
            rules.push(rule.map_err(wrong)?);
        }
        Ok(rules)
    }
}

//! `permissions`: the mode a session starts in, and the rules.

use crow_core::{Mode, Rule, Rules};

use super::{
    super::{
        ConfigError,
        file::{Field, Node, Value},
        known,
    },
    Loader,
};

impl Loader<'_> {
    /// Reads the mode and the rules.
    pub(super) fn permissions(&mut self, field: &Field) -> Result<(Option<Mode>, Rules), ConfigError> {
        let (mut mode, mut rules) = (None, Rules::default());
        for field in self.map(&field.key, &field.node, "a map with mode, allow and deny")? {
            match field.key.as_str() {
                "mode" => {
                    let Some(text) = self.text("permissions.mode", &field.node)? else { continue };
                    let expected = "permissions.mode: expected ask, accept-edits, plan or auto";
                    mode =
                        Some(Mode::parse(&text).ok_or_else(|| self.wrong(field.line, expected.to_owned()))?);
                }
                "allow" => rules.allow = self.rules("permissions.allow", &field.node)?,
                "deny" => rules.deny = self.rules("permissions.deny", &field.node)?,
                _ => self.check_known("permissions", field, known::PERMISSIONS),
            }
        }
        Ok((mode, rules))
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
            let text = self.text(place, item)?.unwrap_or_default();
            let rule = Rule::parse(&text);
            let wrong = |bad| self.wrong(item.line, format!("{place}: the rule `{text}` {bad}"));
            rules.push(rule.map_err(wrong)?);
        }
        Ok(rules)
    }
}

//! `hooks`: commands that run at events of a turn, in the format other agents share.

use std::time::Duration;

use crow_core::{HookConfig, HookEvent, HookMatcher, escape_hidden_start};

use super::{
    super::{
        ConfigError,
        file::{ConfigField, ConfigNode, ConfigScalar, ConfigValue},
        known_keys,
    },
    loader::ConfigLoader,
};

/// Enough for a linter; the user waits for it.
const TIMEOUT_S: u64 = 60;

/// The limit of a command of the model.
const TIMEOUT_S_MAX: u64 = 600;

/// Each may take its full timeout, one after the other.
const HOOKS_MAX: usize = 32;

/// Characters of a matcher that are quoted in a message.
const QUOTED_CHARS_MAX: usize = 80;

/// Every hook may be in its own group, and both may have a matcher.
const ENTRIES_MAX: usize = 2 * HOOKS_MAX;

/// The hooks of one event.
#[derive(Default)]
struct EventHooks {
    hooks: Vec<HookConfig>,
    /// Hooks and groups of hooks.
    n_entries: usize,
}

const HOOK_LIST: &str = "a list of hooks";

impl ConfigLoader<'_> {
    /// Reads the hooks. An invalid one is an error: skipping it would disable a check.
    pub(super) fn read_hooks(&mut self, field: &ConfigField) -> Result<Vec<HookConfig>, ConfigError> {
        let mut hooks = Vec::new();
        for field in self.read_map(&field.key, &field.node, "a map from events to lists of hooks")? {
            let Some(event) = HookEvent::parse(&field.key) else {
                self.report_unknown_event(field)?;
                continue;
            };
            let mut event_hooks = EventHooks::default();
            for node in self.hook_nodes(event, &field.node)? {
                self.read_hook(event, node, &HookMatcher::default(), &mut event_hooks)?;
            }
            hooks.append(&mut event_hooks.hooks);
        }
        Ok(hooks)
    }

    /// Skips an event of other agents; a mistyped event is an error, since its hooks would never run.
    fn report_unknown_event(&mut self, field: &ConfigField) -> Result<(), ConfigError> {
        let key = &field.key;
        let events = HookEvent::ALL.map(HookEvent::as_str);
        if let Some(nearest) = known_keys::nearest_name(key, events.into_iter()) {
            return Err(
                self.error_at(field.line, format!("hooks: unknown event {key}; did you mean {nearest}?"))
            );
        }
        self.warn_at(
            field.line,
            format!("hooks: unknown event {key}, its hooks never run; known events: {}", events.join(", ")),
        );
        Ok(())
    }

    fn hook_nodes<'n>(
        &self,
        event: HookEvent,
        node: &'n ConfigNode,
    ) -> Result<&'n [ConfigNode], ConfigError> {
        match &node.value {
            ConfigValue::Null => Ok(&[]),
            ConfigValue::List(items) => Ok(items),
            ConfigValue::Scalar(_) | ConfigValue::Map(_) => {
                Err(self.expected_error(&format!("hooks.{}", event.as_str()), node, HOOK_LIST))
            }
        }
    }

    /// Reads a hook, or a group of hooks that share a matcher.
    fn read_hook(
        &mut self,
        event: HookEvent,
        node: &ConfigNode,
        outer: &HookMatcher,
        event_hooks: &mut EventHooks,
    ) -> Result<(), ConfigError> {
        let key_path = format!("hooks.{}", event.as_str());
        // Counted before the matcher is parsed, which takes memory and time.
        event_hooks.n_entries += 1;
        if event_hooks.hooks.len() >= HOOKS_MAX || event_hooks.n_entries > ENTRIES_MAX {
            return Err(
                self.error_at(node.line, format!("{key_path}: at most {HOOKS_MAX} hooks for one event"))
            );
        }
        let (mut matcher, mut timeout) = (outer.clone(), TIMEOUT_S);
        let (mut command, mut group) = (None, None);
        for field in self.read_map(&key_path, node, "a map with matcher and command")? {
            let key = format!("{key_path}.{}", field.key);
            match field.key.as_str() {
                "matcher" => {
                    let text = self.read_literal(&key, &field.node)?.unwrap_or_default();
                    let escaped = escape_hidden_start(&text, QUOTED_CHARS_MAX);
                    let invalid = |error| self.error_at(field.line, format!("{key}: `{escaped}` {error}"));
                    matcher = HookMatcher::parse(&text).map_err(invalid)?;
                }
                "command" => command = self.read_literal(&key, &field.node)?,
                "timeout" => timeout = self.read_seconds(&key, &field.node)?,
                "hooks" => group = Some(self.hook_nodes(event, &field.node)?),
                "type" => {
                    if self.read_literal(&key, &field.node)?.is_some_and(|kind| kind != "command") {
                        let message = format!("{key}: only hooks of type command are supported");
                        return Err(self.error_at(field.line, message));
                    }
                }
                _ => self.check_known(&key_path, field, known_keys::HOOK),
            }
        }
        match (command, group) {
            (Some(command), None) => {
                event_hooks.hooks.push(HookConfig {
                    event,
                    matcher,
                    command,
                    timeout: Duration::from_secs(timeout),
                });
            }
            (None, Some(nodes)) => {
                for node in nodes {
                    self.read_hook(event, node, &matcher, event_hooks)?;
                }
            }
            (None, None) => {
                return Err(self.error_at(node.line, format!("{key_path}: a hook needs a command")));
            }
            (Some(_), Some(_)) => {
                let message = format!("{key_path}: a hook has either a command or hooks, not both");
                return Err(self.error_at(node.line, message));
            }
        }
        Ok(())
    }

    /// Reads a text without expanding variables: they belong to the shell.
    fn read_literal(&self, key_path: &str, node: &ConfigNode) -> Result<Option<String>, ConfigError> {
        let text = self.read_scalar(key_path, node)?.map(ConfigScalar::literal_text);
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    fn read_seconds(&mut self, key_path: &str, node: &ConfigNode) -> Result<u64, ConfigError> {
        let expected = "a whole number of seconds from 1 to 600";
        match self.read_number(key_path, node, expected)?.unwrap_or(TIMEOUT_S) {
            seconds @ 1..=TIMEOUT_S_MAX => Ok(seconds),
            _ => Err(self.expected_error(key_path, node, expected)),
        }
    }
}

//! `hooks`: commands for certain moments of a turn, in the spelling that other agents share.

use std::time::Duration;

use crow_core::{Hook, HookEvent, Matcher, visible_start};

use super::{
    super::{
        ConfigError,
        file::{Field, Node, Value},
        known,
    },
    Loader,
};

/// Enough for a linter; a person waits for it before anything goes on.
const TIMEOUT_S: u64 = 60;

/// As long as a command of the model's own may run.
const TIMEOUT_S_MAX: u64 = 600;

/// Each may take its whole time, one after the other.
const HOOKS_MAX: usize = 32;

/// Characters of a matcher that a message about it repeats.
const WRONG_CHARS_MAX: usize = 80;

/// Every hook may be in a group of its own; each of both may bring a matcher.
const ENTRIES_MAX: usize = 2 * HOOKS_MAX;

/// What one event has.
#[derive(Default)]
struct OfEvent {
    hooks: Vec<Hook>,
    /// Hooks and groups of them.
    n_entries: usize,
}

const LISTS: &str = "a list of hooks";

impl Loader<'_> {
    /// Reads the hooks. One that cannot be read is an error: left out, it would guard nothing.
    pub(super) fn hooks(&mut self, field: &Field) -> Result<Vec<Hook>, ConfigError> {
        let mut hooks = Vec::new();
        for field in self.map(&field.key, &field.node, "a map from events to lists of hooks")? {
            let Some(event) = HookEvent::parse(&field.key) else {
                self.unknown_event(field)?;
                continue;
            };
            let mut found = OfEvent::default();
            for node in self.hook_list(event, &field.node)? {
                self.hook(event, node, &Matcher::default(), &mut found)?;
            }
            hooks.append(&mut found.hooks);
        }
        Ok(hooks)
    }

    /// An event of other agents is passed over; one that is mistyped would never guard what it should.
    fn unknown_event(&mut self, field: &Field) -> Result<(), ConfigError> {
        let key = &field.key;
        let events = HookEvent::ALL.map(HookEvent::as_str);
        if let Some(nearest) = known::nearest(key, events.into_iter()) {
            return Err(
                self.wrong(field.line, format!("hooks: there is no event {key}; did you mean {nearest}?"))
            );
        }
        self.warn(
            field.line,
            format!("hooks: there is no event {key}, its hooks never run; there is: {}", events.join(", ")),
        );
        Ok(())
    }

    fn hook_list<'n>(&self, event: HookEvent, node: &'n Node) -> Result<&'n [Node], ConfigError> {
        match &node.value {
            Value::Null => Ok(&[]),
            Value::List(items) => Ok(items),
            Value::Scalar(_) | Value::Map(_) => {
                Err(self.expected(&format!("hooks.{}", event.as_str()), node, LISTS))
            }
        }
    }

    /// Reads a hook, or a group of them that share a matcher.
    fn hook(
        &mut self,
        event: HookEvent,
        node: &Node,
        outer: &Matcher,
        found: &mut OfEvent,
    ) -> Result<(), ConfigError> {
        let place = format!("hooks.{}", event.as_str());
        // Before its matcher is read: each takes memory and time.
        found.n_entries += 1;
        if found.hooks.len() >= HOOKS_MAX || found.n_entries > ENTRIES_MAX {
            return Err(self.wrong(node.line, format!("{place}: at most {HOOKS_MAX} hooks for one event")));
        }
        let (mut matcher, mut timeout) = (outer.clone(), TIMEOUT_S);
        let (mut command, mut group) = (None, None);
        for field in self.map(&place, node, "a map with matcher and command")? {
            let key = format!("{place}.{}", field.key);
            match field.key.as_str() {
                "matcher" => {
                    let text = self.literal(&key, &field.node)?.unwrap_or_default();
                    let shown = visible_start(&text, WRONG_CHARS_MAX);
                    let wrong = |bad| self.wrong(field.line, format!("{key}: `{shown}` {bad}"));
                    matcher = Matcher::parse(&text).map_err(wrong)?;
                }
                "command" => command = self.literal(&key, &field.node)?,
                "timeout" => timeout = self.seconds(&key, &field.node)?,
                "hooks" => group = Some(self.hook_list(event, &field.node)?),
                "type" => {
                    if self.literal(&key, &field.node)?.is_some_and(|kind| kind != "command") {
                        let what = format!("{key}: only commands can be hooks");
                        return Err(self.wrong(field.line, what));
                    }
                }
                _ => self.check_known(&place, field, known::HOOK),
            }
        }
        match (command, group) {
            (Some(command), None) => {
                found.hooks.push(Hook { event, matcher, command, timeout: Duration::from_secs(timeout) });
            }
            (None, Some(nodes)) => {
                for node in nodes {
                    self.hook(event, node, &matcher, found)?;
                }
            }
            (None, None) => return Err(self.wrong(node.line, format!("{place}: a hook needs a command"))),
            (Some(_), Some(_)) => {
                let what = format!("{place}: a hook has either a command or more hooks");
                return Err(self.wrong(node.line, what));
            }
        }
        Ok(())
    }

    /// Reads a text as it is written: its variables are the shell's.
    fn literal(&self, place: &str, node: &Node) -> Result<Option<String>, ConfigError> {
        let text = self.scalar(place, node)?.map(super::Scalar::literal);
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    fn seconds(&mut self, place: &str, node: &Node) -> Result<u64, ConfigError> {
        let what = "a whole number of seconds from 1 to 600";
        match self.number(place, node, what)?.unwrap_or(TIMEOUT_S) {
            seconds @ 1..=TIMEOUT_S_MAX => Ok(seconds),
            _ => Err(self.expected(place, node, what)),
        }
    }
}

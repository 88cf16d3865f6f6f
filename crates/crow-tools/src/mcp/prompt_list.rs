//! A server's list of prompts: names, commands and parameters, with limited sizes.

use std::{collections::HashSet, sync::Arc};

use rmcp::{Peer, RoleClient};
use serde_json::Value;

use super::{
    pagination::{self, McpListKind},
    tool_list::strip_control_chars,
};
use crate::title::to_title;

/// A list that a user reads while typing.
const PROMPTS_MAX: usize = 64;

/// More than a user types after a command.
const ARGUMENTS_MAX: usize = 16;

/// Longer than any real name; it is shown and typed.
const NAME_BYTES_MAX: usize = 128;

/// Prefix of a name that does not begin with a letter, as a command must.
const NAME_PREFIX: &str = "mcp_";

/// A prompt in a server's list.
#[derive(Debug, PartialEq)]
pub(super) struct ListedPrompt {
    /// The server's name for it.
    pub(super) name: String,
    /// Its command, without the server's name.
    pub(super) command_name: String,
    pub(super) description: String,
    pub(super) arguments: Vec<PromptParameter>,
}

/// A parameter of a prompt.
#[derive(Debug, PartialEq)]
pub(super) struct PromptParameter {
    pub(super) name: String,
    pub(super) is_required: bool,
}

/// Lists a server's prompts.
pub(super) async fn fetch_prompts(peer: &Peer<RoleClient>) -> Result<Vec<Arc<ListedPrompt>>, String> {
    let (mut prompts, mut seen_names) = (Vec::new(), HashSet::new());
    pagination::for_each_entry(peer, McpListKind::Prompts, |prompt| {
        let Some(prompt) = parse_prompt(prompt) else { return };
        if prompts.len() < PROMPTS_MAX && seen_names.insert(prompt.command_name.clone()) {
            prompts.push(Arc::new(prompt));
        }
    })
    .await?;
    Ok(prompts)
}

fn parse_prompt(prompt: &Value) -> Option<ListedPrompt> {
    let name = entry_name(prompt)?;
    let arguments = prompt["arguments"].as_array().into_iter().flatten().take(ARGUMENTS_MAX);
    let arguments = arguments.filter_map(|argument| {
        let name =
            entry_name(argument).map(|name| strip_control_chars(&name)).filter(|name| !name.is_empty())?;
        Some(PromptParameter { name, is_required: argument["required"].as_bool().unwrap_or(false) })
    });
    let description = ["description", "title"].into_iter().find_map(|key| prompt[key].as_str());
    Some(ListedPrompt {
        command_name: to_command_name(&name),
        description: to_title(description.unwrap_or("A prompt of an MCP server")),
        arguments: arguments.collect(),
        name,
    })
}

fn entry_name(entry: &Value) -> Option<String> {
    entry["name"].as_str().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX).map(str::to_owned)
}

/// Converts a name to a valid command name.
pub(super) fn to_command_name(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let command_name: String = name.chars().take(NAME_BYTES_MAX).map(fit).collect();
    if command_name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        command_name
    } else {
        NAME_PREFIX.to_owned() + &command_name
    }
}

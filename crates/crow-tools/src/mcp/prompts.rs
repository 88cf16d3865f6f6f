//! A server's prompts as slash commands: their names, arguments and messages.

mod arguments;

use std::{collections::HashSet, sync::Arc};

use crow_core::{CommandInfo, ContentPart, slash};
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, GetPromptRequest, GetPromptRequestParams},
};
use serde_json::Value;

use super::{
    call::{McpRequestOptions, send_request},
    call_result::ContentCollector,
    pagination::{self, McpListKind},
    server::McpServerHandle,
    tool_list::strip_control_chars,
};
use crate::tool::to_title;

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
    name: String,
    /// Its command, without the server's name.
    command_name: String,
    description: String,
    arguments: Vec<PromptParameter>,
}

/// A parameter of a prompt.
#[derive(Debug, PartialEq)]
struct PromptParameter {
    name: String,
    is_required: bool,
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
fn to_command_name(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let command_name: String = name.chars().take(NAME_BYTES_MAX).map(fit).collect();
    if command_name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        command_name
    } else {
        NAME_PREFIX.to_owned() + &command_name
    }
}

/// Returns a server's prompts as commands.
pub(super) fn prompt_commands(server: &McpServerHandle) -> Vec<CommandInfo> {
    let prefix = to_command_name(&server.name);
    let prompts = server.catalog().prompts;
    let commands = prompts.iter().map(|prompt| CommandInfo {
        name: format!("{prefix}:{}", prompt.command_name),
        description: prompt.description.clone(),
        hint: Some(usage_hint(&prompt.arguments)).filter(|hint| !hint.is_empty()),
    });
    commands.collect()
}

/// Whether a command may be a prompt of this server.
pub(super) fn owns_command(server: &McpServerHandle, command: &slash::SlashCommand<'_>) -> bool {
    command.name.split_once(':').is_some_and(|(prefix, _)| prefix == to_command_name(&server.name))
}

fn usage_hint(arguments: &[PromptParameter]) -> String {
    let shown = arguments.iter().map(|argument| match argument.is_required {
        true => format!("<{}>", argument.name),
        false => format!("[{}]", argument.name),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Requests a prompt from a server. `Err` is a sentence for the user.
pub(super) async fn get_prompt(
    server: &McpServerHandle,
    command: &slash::SlashCommand<'_>,
    options: McpRequestOptions<'_>,
) -> Result<Vec<ContentPart>, String> {
    let name = command.name;
    let prompts = server.catalog().prompts;
    let prompt_name = name.split_once(':').map_or(name, |(_, prompt)| prompt);
    let Some(prompt) = prompts.iter().find(|prompt| prompt.command_name == prompt_name) else {
        let names: Vec<String> =
            prompt_commands(server).iter().map(|command| format!("/{}", command.name)).collect();
        let available = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!(
            "The MCP server {} has no prompt {prompt_name:?}. Its prompts: {available}.",
            server.name
        ));
    };
    let parsed = arguments::parse_arguments(&prompt.arguments, command.arguments);
    let parsed = parsed.map_err(|missing| {
        let usage = usage_hint(&prompt.arguments);
        format!("/{name} needs {}. Usage: /{name} {usage}", missing.join(" and "))
    })?;
    let mut params = GetPromptRequestParams::new(prompt.name.clone());
    params.arguments = Some(parsed.values).filter(|values| !values.is_empty());
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let answer = send_request(server, request, options).await.map_err(|reason| {
        let mut chars = reason.chars();
        let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        format!("{first}{}.", chars.as_str().trim_end_matches('.'))
    })?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let parts = messages_to_parts(&answer, parsed.trailing_text);
    if parts.is_empty() {
        return Err(format!("The MCP server {} returned no text for /{name}.", server.name));
    }
    Ok(parts)
}

/// Converts the messages to one prompt: all of it has the user's role, so an assistant's messages are quoted.
fn messages_to_parts(answer: &Value, trailing_text: &str) -> Vec<ContentPart> {
    let mut collector = ContentCollector::default();
    for message in answer["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        for block in blocks {
            match (message["role"].as_str(), block["text"].as_str()) {
                (Some("assistant"), Some(text)) => {
                    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
                    collector.add_text(&format!("The assistant answered:\n{quoted}"));
                }
                (_, _) => collector.add_value(block),
            }
        }
    }
    if !collector.is_empty() {
        collector.add_text(trailing_text);
    }
    collector.into_parts()
}

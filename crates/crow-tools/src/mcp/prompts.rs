//! A server's prompts as slash commands: their names, arguments and messages.

mod arguments;

use crow_core::{CommandInfo, ContentPart, slash};
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams};
use serde_json::Value;

use super::{
    call::{McpRequestOptions, send_request},
    call_result::ContentCollector,
    prompt_list::{PromptParameter, to_command_name},
    server::McpServerHandle,
};

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

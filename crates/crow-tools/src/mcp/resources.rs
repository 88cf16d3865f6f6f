//! The resources of all servers as two tools: one lists them, one reads one.

use std::{fmt::Write as _, sync::Arc};

use crow_core::{ToolAccess, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult, ToolSpec};
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ResourceContents},
};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    call::{LIST_TIMEOUT, McpRequestOptions, send_request},
    call_result::ContentCollector,
    pagination::{self, ListPage, McpListKind},
    server::{McpServerExit, McpServerHandle},
    tool_list::strip_control_chars,
};
use crate::{
    Tool, ToolCx, ToolFuture, Workspace, title::to_title, tool::text_argument, tool_error::CANCELLED,
};

/// The name of the read operation in rules.
pub(super) const READ_METHOD: &str = "resources/read";

/// The name of the list operation in rules.
const LIST_METHOD: &str = "resources/list";

/// Entries shown of one page.
const ENTRIES_MAX: usize = 100;

/// Longer than any real URI; one line of the list.
const ENTRY_CHARS_MAX: usize = 500;

/// The beginning of a text, about 12,000 tokens; the model can read further.
const TEXT_BYTES_MAX: usize = 50_000;

/// Whether a server has resources.
pub(super) async fn has_resources(peer: &Peer<RoleClient>) -> bool {
    for list in [McpListKind::Resources, McpListKind::Templates] {
        if pagination::fetch_page(peer, list, None).await.is_ok_and(|page| !page.entries.is_empty()) {
            return true;
        }
    }
    false
}

/// Returns the tools, if a server has resources.
pub(super) fn resource_tools(servers: &[Arc<McpServerHandle>]) -> Vec<Arc<dyn Tool>> {
    let servers: Vec<Arc<McpServerHandle>> =
        servers.iter().filter(|server| server.catalog().has_resources).cloned().collect();
    if servers.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    // With one server its name says nothing.
    let required = |others: &[&str]| -> Vec<String> {
        let server = (names.len() > 1).then_some("server");
        server.iter().chain(others).map(|name| (*name).to_owned()).collect()
    };
    let server = json!({"type": "string", "enum": names, "description": "The MCP server"});
    let list = ToolSpec {
        name: "list_mcp_resources".to_owned(),
        description: "Lists the resources that an MCP server offers: data that `read_mcp_resource` reads."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "server": server,
                "cursor": {"type": "string", "description": "Goes on where a list was cut"},
            },
            "required": required(&[]),
        }),
    };
    let read = ToolSpec {
        name: "read_mcp_resource".to_owned(),
        description: "Reads a resource of an MCP server by its address.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "server": server,
                "uri": {"type": "string", "description": "The address, as listed or made from a template"},
                "offset": {"type": "integer", "minimum": 0, "description": "Byte of the text to start at"},
            },
            "required": required(&["uri"]),
        }),
    };
    vec![
        Arc::new(ListResourcesTool { servers: servers.clone(), spec: list }),
        Arc::new(ReadResourceTool { servers, spec: read }),
    ]
}

fn find_server<'a>(
    servers: &'a [Arc<McpServerHandle>],
    name: &str,
) -> Result<&'a Arc<McpServerHandle>, ToolResult> {
    servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        ToolResult::failure(format!(
            "there is no such MCP server; servers with resources: {}",
            names.join(", ")
        ))
    })
}

/// Returns the name of the server that a call is about: the only one if the call names none.
fn server_argument<'a>(servers: &'a [Arc<McpServerHandle>], arguments: &'a Map<String, Value>) -> &'a str {
    match (text_argument(arguments, "server"), servers) {
        ("", [only]) => &only.name,
        (name, _) => name,
    }
}

struct ListResourcesTool {
    servers: Vec<Arc<McpServerHandle>>,
    spec: ToolSpec,
}

impl Tool for ListResourcesTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    // One server per call, so that the rules for the server apply to its list too.
    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let server = server_argument(&self.servers, arguments);
        ToolCallInfo {
            title: to_title(&format!("List resources of {server}")),
            kind: ToolKind::Search,
            locations: Vec::new(),
            access: ToolAccess::Calls { server: server.to_owned(), tool: LIST_METHOD.to_owned() },
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let server = match find_server(&self.servers, server_argument(&self.servers, arguments)) {
                Ok(server) => server,
                Err(result) => return result,
            };
            let cursor = arguments.get("cursor").and_then(Value::as_str).map(str::to_owned);
            let Some(lines) = cx.cancel.run_until_cancelled(render_resource_list(server, cursor)).await
            else {
                return ToolResult::failure(CANCELLED);
            };
            let mut collector = ContentCollector::default();
            collector.add_text(&lines);
            collector.into_tool_result(ToolCallStatus::Completed)
        })
    }
}

/// Renders a page of a server's list; the first page includes the templates.
async fn render_resource_list(server: &McpServerHandle, cursor: Option<String>) -> String {
    let mut lines = format!("{}:\n", server.name);
    let is_first_page = cursor.is_none();
    let fetched = async {
        let link = server.acquire_link().await.map_err(|end: McpServerExit| end.full_reason())?;
        let page = pagination::fetch_page(&link.peer, McpListKind::Resources, cursor).await?;
        let templates = match is_first_page {
            true => {
                pagination::fetch_page(&link.peer, McpListKind::Templates, None).await.unwrap_or_default()
            }
            false => ListPage::default(),
        };
        Ok::<_, String>((page, templates.entries))
    };
    let fetched =
        timeout(LIST_TIMEOUT, fetched).await.unwrap_or_else(|_| Err("it did not answer".to_owned()));
    match fetched {
        Ok((page, templates)) => {
            write_entries(&mut lines, &page.entries, "uri");
            if let Some(next) = page.next_cursor {
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "  (more: pass server={:?} and cursor={next:?})", server.name);
            }
            if !templates.is_empty() {
                lines.push_str("  templates, to be filled in:\n");
                write_entries(&mut lines, &templates, "uriTemplate");
            }
        }
        Err(reason) => {
            let _ = writeln!(lines, "  (could not be listed: {reason})");
        }
    }
    lines
}

fn write_entries(lines: &mut String, entries: &[Value], uri_key: &str) {
    for entry in entries.iter().take(ENTRIES_MAX) {
        let text = |key: &str| entry[key].as_str().filter(|text| !text.is_empty());
        let Some(uri) = text(uri_key) else { continue };
        let mut line = uri.to_owned();
        let details: Vec<&str> = ["name", "mimeType"].into_iter().filter_map(text).collect();
        if !details.is_empty() {
            let _ = write!(line, " ({})", details.join(", "));
        }
        if let Some(description) = text("description") {
            let _ = write!(line, ": {description}");
        }
        let line = strip_control_chars(&line).replace(['\n', '\t'], " ");
        let _ = writeln!(lines, "  {}", line.chars().take(ENTRY_CHARS_MAX).collect::<String>());
    }
    if entries.len() > ENTRIES_MAX {
        let _ = writeln!(lines, "  ({} more are not shown)", entries.len() - ENTRIES_MAX);
    }
}

struct ReadResourceTool {
    servers: Vec<Arc<McpServerHandle>>,
    spec: ToolSpec,
}

impl Tool for ReadResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let (server, uri) = (server_argument(&self.servers, arguments), text_argument(arguments, "uri"));
        ToolCallInfo {
            title: to_title(&format!("{server}: read {uri}")),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: ToolAccess::Calls { server: server.to_owned(), tool: READ_METHOD.to_owned() },
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let server = match find_server(&self.servers, server_argument(&self.servers, arguments)) {
                Ok(server) => server,
                Err(result) => return result,
            };
            let params = ReadResourceRequestParams::new(text_argument(arguments, "uri"));
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            match send_request(
                server,
                request,
                McpRequestOptions { cancel: cx.cancel, progress: &|_| (), session: None },
            )
            .await
            {
                Ok(answer) => {
                    let offset = arguments.get("offset").and_then(Value::as_u64).unwrap_or(0);
                    render_resource(&serde_json::to_value(answer).unwrap_or_default(), offset)
                }
                Err(reason) => ToolResult::failure(reason),
            }
        })
    }
}

/// Renders a resource: texts from `offset` on, images as images.
fn render_resource(answer: &Value, offset: u64) -> ToolResult {
    let (mut collector, mut texts) = (ContentCollector::default(), String::new());
    for content in answer["contents"].as_array().into_iter().flatten() {
        match content["text"].as_str() {
            Some(text) if texts.is_empty() => text.clone_into(&mut texts),
            Some(text) => {
                texts.push('\n');
                texts.push_str(text);
            }
            None => match serde_json::from_value::<ResourceContents>(content.clone()) {
                Ok(resource) => collector.add_resource(resource),
                Err(_) => collector.add_value(content),
            },
        }
    }
    let start = texts.floor_char_boundary(usize::try_from(offset).unwrap_or(usize::MAX));
    let end = texts.floor_char_boundary(start.saturating_add(TEXT_BYTES_MAX));
    collector.add_text(&texts[start..end]);
    if end < texts.len() {
        collector.add_text(&format!("(cut: {} bytes in all; continue with offset={end})", texts.len()));
    } else if start > 0 && start == texts.len() {
        collector.add_text(&format!("(the text has {} bytes)", texts.len()));
    }
    collector.into_tool_result(ToolCallStatus::Completed)
}

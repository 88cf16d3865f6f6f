//! A server's list of tools: names, descriptions and schemas, with limited sizes.

use std::{collections::HashSet, sync::Arc};

use crow_core::{McpServer, ToolSpec};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value, json};

use super::pagination::{self, McpListKind};

/// More than any real server has; how many of them a request offers is decided for all servers together.
const TOOLS_MAX: usize = 1024;

/// About 1,000 tokens, for a tool with a long description.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// About 8,000 tokens; a larger schema would fill the context window with one tool.
const SCHEMA_BYTES_MAX: usize = 32 * 1024;

/// Longer than any real name; it is shown in permission requests.
const NAME_BYTES_MAX: usize = 256;

/// A tool in a server's list.
#[derive(Debug, PartialEq)]
pub(super) struct ListedTool {
    /// The server's name for it.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
}

/// The tools of a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ToolListing {
    pub(super) tools: Vec<Arc<ListedTool>>,
    pub(super) n_omitted: usize,
    /// The names of all tools, including disabled ones; limited like the tools.
    pub(super) names: HashSet<String>,
}

/// Lists a server's tools, page by page, without those that the configuration disables.
pub(super) async fn fetch_tools(peer: &Peer<RoleClient>, server: &McpServer) -> Result<ToolListing, String> {
    let mut listing = ToolListing::default();
    pagination::for_each_entry(peer, McpListKind::Tools, |tool| {
        let Some(listed) = parse_tool(tool).filter(|listed| !listing.names.contains(&listed.name)) else {
            return;
        };
        let is_disabled = !server.has_tool(&listed.name);
        if !is_disabled && listing.tools.len() == TOOLS_MAX {
            listing.n_omitted += 1;
            return;
        }
        listing.names.insert(listed.name.clone());
        if !is_disabled {
            listing.tools.push(Arc::new(listed));
        }
    })
    .await?;
    Ok(listing)
}

/// Parses one tool; `None` if it has no name.
fn parse_tool(tool: &Value) -> Option<ListedTool> {
    let name = tool["name"].as_str().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX)?;
    let mut description = strip_control_chars(tool["description"].as_str().unwrap_or_default());
    if description.len() > DESCRIPTION_BYTES_MAX {
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        description.push('…');
    }
    let parameters = normalize_schema(&tool["inputSchema"]).unwrap_or_else(|| {
        description.push_str(" (Its parameters are not known.)");
        json!({"type": "object", "properties": {}})
    });
    let spec = ToolSpec { name: name.to_owned(), description, parameters };
    Some(ListedTool { name: name.to_owned(), spec })
}

/// Converts a schema to one that providers accept: of type object, with properties, of limited size.
fn normalize_schema(schema: &Value) -> Option<Value> {
    let mut object: Map<String, Value> = schema.as_object()?.clone();
    match object.get("type").map(Value::as_str) {
        None => drop(object.insert("type".to_owned(), json!("object"))),
        Some(Some("object")) => {}
        Some(_) => return None,
    }
    if !object.get("properties").is_some_and(Value::is_object) {
        object.insert("properties".to_owned(), json!({}));
    }
    let schema = Value::Object(object);
    (schema.to_string().len() <= SCHEMA_BYTES_MAX).then_some(schema)
}

/// Removes characters that could make the user see something else than the model.
pub(super) fn strip_control_chars(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

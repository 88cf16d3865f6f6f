//! What a server says its tools are, as far as it can be passed on: names, words and schemas of bounded size.

use std::{collections::HashSet, sync::Arc};

use crow_core::ToolSpec;
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult},
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::{Map, Value, json};

use super::connect::cause;
use crate::tool::title;

/// All tools together are told with every request, and providers take no more than this.
const TOOLS_MAX: usize = 128;

/// Many more than a server of `TOOLS_MAX` tools needs; a server may send pages for ever.
const PAGES_MAX: usize = 40;

/// About 1,000 tokens, for a tool that explains itself at length.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// About 8,000 tokens; a schema beyond that would fill the window with one tool.
const SCHEMA_BYTES_MAX: usize = 32 * 1024;

/// Longer than any name that is meant; it is shown to whoever is asked.
const NAME_BYTES_MAX: usize = 256;

/// A tool as a server lists it.
#[derive(Debug, PartialEq)]
pub(super) struct Listed {
    /// Its name there.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
}

/// All that a server lists.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listing {
    pub(super) tools: Vec<Arc<Listed>>,
    pub(super) n_left_out: usize,
}

/// Asks a server for its tools, page by page.
pub(super) async fn fetch(peer: &Peer<RoleClient>) -> Result<Listing, String> {
    let (mut found, mut names, mut cursor) = (Listing::default(), HashSet::new(), None);
    for _ in 0..PAGES_MAX {
        let (tools, next) = page(peer, cursor.take()).await?;
        for tool in &tools {
            let Some(listed) = read(tool).filter(|listed| !names.contains(&listed.name)) else { continue };
            if found.tools.len() == TOOLS_MAX {
                found.n_left_out += 1;
            } else {
                names.insert(listed.name.clone());
                found.tools.push(Arc::new(listed));
            }
        }
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(found)
}

/// A page's tools and where the next page is.
type Page = (Vec<Value>, Option<String>);

/// As JSON, not as the SDK's types: one tool that it does not understand would cost all of them.
async fn page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<Page, String> {
    let request = ListToolsRequest {
        method: Default::default(),
        params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
        extensions: Default::default(),
    };
    let request = ClientRequest::ListToolsRequest(request);
    let asked = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let answer = match asked {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(ServerResult::ListToolsResult(page)) => serde_json::to_value(page).unwrap_or_default(),
        Ok(ServerResult::CustomResult(page)) => page.0,
        Ok(_) => Value::Null,
        // It has none, and says it in its own way.
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            json!({"tools": []})
        }
        Err(ServiceError::McpError(error)) => {
            return Err(format!("it refused to list its tools: {}", title(&error.message)));
        }
        Err(ServiceError::TransportSend(error)) => return Err(cause(error.error.as_ref())),
        Err(_) => return Err("it was gone before it listed its tools".to_owned()),
    };
    let tools = answer["tools"].as_array().ok_or("its list of tools is none")?.clone();
    Ok((tools, answer["nextCursor"].as_str().filter(|next| !next.is_empty()).map(str::to_owned)))
}

/// Reads one tool; what has no name is none.
fn read(tool: &Value) -> Option<Listed> {
    let name = tool["name"].as_str().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX)?;
    let mut description = plain(tool["description"].as_str().unwrap_or_default());
    if description.len() > DESCRIPTION_BYTES_MAX {
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        description.push('…');
    }
    let parameters = schema(&tool["inputSchema"]).unwrap_or_else(|| {
        description.push_str(" (Its parameters are not known.)");
        json!({"type": "object", "properties": {}})
    });
    let spec = ToolSpec { name: name.to_owned(), description, parameters };
    Some(Listed { name: name.to_owned(), spec })
}

/// Makes a schema one that providers take: of an object, with its properties, of bounded size.
fn schema(schema: &Value) -> Option<Value> {
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

/// Drops what could show a person something other than what the model reads.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

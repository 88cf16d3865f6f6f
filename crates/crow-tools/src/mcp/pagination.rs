//! Lists of a server, page by page. Must not know the content of their entries.

use std::collections::HashSet;

use rmcp::{
    Peer, RoleClient,
    model::{
        ClientRequest, ErrorCode, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
        ListToolsRequest, PaginatedRequestParams, ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::Value;

use super::request_error::root_cause;
use crate::title::to_title;

/// Many more than a server of limited lists needs; a server may send pages forever.
const PAGES_MAX: usize = 40;

/// Longer than any real cursor; cursors are stored while a list is read.
const CURSOR_BYTES_MAX: usize = 16 * 1024;

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl McpListKind {
    /// The key of the entries in a response.
    fn result_key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn to_request(self, cursor: Option<String>) -> ClientRequest {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            }),
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            }),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            }),
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            }),
        }
    }
}

/// One page of a list; `next_cursor` requests the next one.
#[derive(Default)]
pub(super) struct ListPage {
    pub(super) entries: Vec<Value>,
    pub(super) next_cursor: Option<String>,
}

/// Requests one page. As JSON instead of the SDK's types: one unknown entry would make the whole page fail.
pub(super) async fn fetch_page(
    peer: &Peer<RoleClient>,
    kind: McpListKind,
    cursor: Option<String>,
) -> Result<ListPage, String> {
    let key = kind.result_key();
    let request = kind.to_request(cursor);
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let answer = match sent {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(ServerResult::CustomResult(page)) => page.0,
        Ok(page) => serde_json::to_value(page).unwrap_or_default(),
        // The server does not have this list.
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            return Ok(ListPage::default());
        }
        Err(ServiceError::McpError(error)) => {
            return Err(format!("it rejected the request for its {key}: {}", to_title(&error.message)));
        }
        Err(ServiceError::TransportSend(error)) => return Err(root_cause(error.error.as_ref())),
        Err(_) => return Err(format!("it ended before it listed its {key}")),
    };
    let entries = answer[key].as_array().ok_or_else(|| format!("its list of {key} is invalid"))?.clone();
    let next_cursor = answer["nextCursor"].as_str();
    let next_cursor = next_cursor.filter(|next| !next.is_empty() && next.len() <= CURSOR_BYTES_MAX);
    Ok(ListPage { entries, next_cursor: next_cursor.map(str::to_owned) })
}

/// Requests all pages and passes each entry on.
pub(super) async fn for_each_entry(
    peer: &Peer<RoleClient>,
    kind: McpListKind,
    mut on_entry: impl FnMut(&Value),
) -> Result<(), String> {
    let (mut cursor, mut seen) = (None, HashSet::new());
    for _ in 0..PAGES_MAX {
        let ListPage { entries, next_cursor } = fetch_page(peer, kind, cursor.take()).await?;
        entries.iter().for_each(&mut on_entry);
        match next_cursor {
            // A repeated page has nothing new.
            Some(next_cursor) if seen.insert(next_cursor.clone()) => cursor = Some(next_cursor),
            Some(_) | None => break,
        }
    }
    Ok(())
}

//! Attaches the content of links in a prompt: the text of files and images from the web. A file that the policy does
//! not let the model read without a question stays a link.

mod images;

use std::collections::BTreeSet;
use std::path::Path;

use crow_core::{ContentPart, CrowPart, ToolAccess, escape_hidden, link};

use crate::permission_gate;
use crate::turn_context::{SessionState, TurnCx};

/// Files of one prompt that are read; more links usually mean a directory.
const FILES_MAX: usize = 32;

/// Total size of the files, about 32,000 tokens.
const BYTES_MAX: usize = 128 * 1024;

/// Adds to each link its content, or the reason why it is missing.
pub(crate) async fn with_contents(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    parts: Vec<ContentPart>,
) -> Vec<ContentPart> {
    images::tell_unseen(cx, &parts);
    let parts = images::with_images(cx, state, parts).await;
    attach_linked_files(cx, parts).await
}

/// Adds to each link to a file the file's text, or the reason why it is missing, marked as added by Crow.
async fn attach_linked_files(cx: &TurnCx<'_>, parts: Vec<ContentPart>) -> Vec<ContentPart> {
    let mut remaining_bytes = BYTES_MAX;
    let mut uris = BTreeSet::new();
    let mut expanded = Vec::with_capacity(parts.len());
    for part in parts {
        let attachment = match &part {
            ContentPart::Link { uri, .. } if uris.len() < FILES_MAX && uris.insert(uri.clone()) => {
                read_linked_file(cx, uri, &mut remaining_bytes).await.map(|text| linked_file_part(uri, text))
            }
            ContentPart::Link { .. } | ContentPart::Text(_) | ContentPart::Image { .. } => None,
            ContentPart::Resource { .. } | ContentPart::FromCrow { .. } => None,
        };
        expanded.push(part);
        expanded.extend(attachment);
    }
    expanded
}

fn linked_file_part(uri: &str, text: String) -> ContentPart {
    let uri = escape_hidden(uri);
    let file = uri.strip_prefix("file:").unwrap_or(&uri).to_owned();
    ContentPart::FromCrow { kind: CrowPart::LinkedFile(file), text }
}

/// Returns the text of a file within the remaining size; `None` if the link is not a file on this machine.
async fn read_linked_file(cx: &TurnCx<'_>, uri: &str, remaining_bytes: &mut usize) -> Option<String> {
    let (path, lines) = link::parse_file_link(uri)?;
    if path.contains('\0') {
        return None;
    }
    let resolved = crow_files::resolve_links(Path::new(&path));
    if let Err(reason) = permission_gate::check_read_allowed(cx, &resolved) {
        return Some(format!("Not read: {reason}. The tool `read` asks the person."));
    }
    let access = ToolAccess::Reads(vec![resolved.display().to_string()]);
    Some(match crow_tools::read_resource_link(cx.tool_cx(&access), &path, lines).await {
        Ok(text) if text.len() <= *remaining_bytes => {
            *remaining_bytes -= text.len();
            text
        }
        Ok(_) => {
            "Not put here: the other files of this prompt are large already. Read it with `read`.".to_owned()
        }
        Err(reason) => reason,
    })
}

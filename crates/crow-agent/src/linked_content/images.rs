//! Images in a prompt that are links to the web. Each one is fetched once, under the policy of `web_fetch`, and is
//! stored in the prompt as data. For an image that cannot be fetched the model gets a note.

use std::collections::BTreeMap;

use crow_core::{
    ContentPart, CrowPart, PermissionDecision, SandboxSupport, SessionUpdate, ToolArguments, ToolCall,
    ToolCallContent, ToolCallInfo, ToolCallStatus, ToolResult, escape_hidden_start, link,
};
use crow_tools::{ToolCx, ToolRegistry};
use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::call_approval::{PreparedCall, approve_call, rejection_reason};
use crate::calls::announce_call;
use crate::permission_gate::PermissionGate;
use crate::turn_context::{SessionState, TurnCx};
use crate::{confirm, hooks};

/// The tool whose policy applies to images.
const FETCH: &str = "web_fetch";

/// Images of one prompt that are fetched: models compare a few.
const IMAGES_MAX: usize = 8;

/// Total size in Base64: some providers reject requests of more than 20 MB.
const BYTES_MAX: usize = 12 * 1024 * 1024;

/// Characters of an address in a message.
const URI_CHARS_MAX: usize = 200;

type FetchedImage = Result<ContentPart, String>;

/// Adds to each link to a web image the image, or the reason why it is missing.
pub(super) async fn with_images(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    parts: Vec<ContentPart>,
) -> Vec<ContentPart> {
    let mut links: Vec<String> = Vec::new();
    for uri in parts.iter().filter_map(image_link) {
        if !links.contains(uri) {
            links.push(uri.clone());
        }
    }
    if links.is_empty() {
        return parts;
    }
    let mut images = match text_only_model(cx) {
        None => fetch(cx, state, links).await,
        // An image that the model cannot read is not fetched.
        Some(model) => {
            links.into_iter().map(|uri| (uri, Err(format!("the model {model} reads text only")))).collect()
        }
    };
    let mut expanded = Vec::with_capacity(parts.len());
    for part in parts {
        // The image follows the first link to it.
        let image = image_link(&part).and_then(|uri| images.remove_entry(uri));
        expanded.push(part);
        expanded.extend(image.map(|(uri, image)| image.unwrap_or_else(|reason| missing(cx, &uri, &reason))));
    }
    expanded
}

/// Returns the name of the session's model if it reads text only.
fn text_only_model(cx: &TurnCx<'_>) -> Option<String> {
    cx.current_model().ok().filter(|model| !model.reads_images).map(|model| model.name)
}

/// Notifies the user that the model does not see the attached images.
pub(super) fn tell_unseen(cx: &TurnCx<'_>, parts: &[ContentPart]) {
    let n_images = parts.iter().filter(|part| matches!(part, ContentPart::Image { .. })).count();
    if let Some(model) = text_only_model(cx).filter(|_| n_images > 0) {
        let images = if n_images == 1 { "the image" } else { "the images" };
        let notice = format!(
            "The model {model} reads text only and gets a note instead of {images}. Type /model to switch to another."
        );
        cx.client.send_update(cx.session, SessionUpdate::Notice(notice));
    }
}

fn image_link(part: &ContentPart) -> Option<&String> {
    match part {
        ContentPart::Link { uri, mime, .. } => {
            Some(uri).filter(|uri| link::is_web_image(uri, mime.as_deref()))
        }
        ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    }
}

/// Fetches images, in parallel after the permission of each one is known.
async fn fetch(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    links: Vec<String>,
) -> BTreeMap<String, FetchedImage> {
    let tool_set = cx.current_tools();
    let tools = &tool_set.tools;
    let gate = PermissionGate::new(cx, tools, &[], state, SandboxSupport::Full);
    let mut requests = Vec::with_capacity(links.len());
    for (index, uri) in links.into_iter().enumerate() {
        let mut request = ImageRequest::new(cx, state, tools, uri);
        let permission = match index < IMAGES_MAX {
            true => request.permit(cx, tools, &gate).await,
            false => Err(format!("the prompt links to more than {IMAGES_MAX} images")),
        };
        requests.push((request, permission));
    }
    state.warned = gate.warned;
    let fetches = requests.into_iter().map(|(request, permission)| async move {
        let fetched = match permission {
            Ok(()) => tools.fetch_image(&request.uri, cx.cancel).await,
            Err(reason) => Err(reason),
        };
        (request, fetched)
    });
    let mut remaining_bytes = BYTES_MAX;
    let mut images = BTreeMap::new();
    for (request, fetched) in join_all(fetches).await {
        let fetched = fetched.and_then(|image| within(&mut remaining_bytes, image));
        request.settle(cx, &fetched);
        images.insert(request.uri, fetched);
    }
    images
}

fn within(remaining_bytes: &mut usize, image: ContentPart) -> FetchedImage {
    let ContentPart::Image { data, .. } = &image else { return Ok(image) };
    *remaining_bytes = remaining_bytes
        .checked_sub(data.len())
        .ok_or_else(|| "the other images of this prompt are large already".to_owned())?;
    Ok(image)
}

/// Notifies the user and the model why an image is missing.
fn missing(cx: &TurnCx<'_>, uri: &str, reason: &str) -> ContentPart {
    let display_uri = escape_hidden_start(uri, URI_CHARS_MAX);
    let notice = format!("The image {display_uri} was left out: {reason}. The model only gets its address.");
    cx.client.send_update(cx.session, SessionUpdate::Notice(notice));
    let text = format!("The image was not fetched: {reason}.");
    ContentPart::FromCrow { kind: CrowPart::MissingImage(display_uri), text }
}

/// A request for one image, in the form of a call without a reply.
struct ImageRequest {
    uri: String,
    call: ToolCall,
    info: ToolCallInfo,
    /// True if the client shows the call, because the user was asked.
    is_announced: bool,
}

impl ImageRequest {
    fn new(cx: &TurnCx<'_>, state: &SessionState, tools: &ToolRegistry, uri: String) -> Self {
        let arguments = Map::from_iter([("url".to_owned(), Value::String(uri.clone()))]);
        let call = ToolCall {
            id: confirm::synthetic_call_id(cx, state.transcript.next_seq()),
            provider_id: String::new(),
            name: FETCH.to_owned(),
            arguments: ToolArguments::Valid(arguments),
        };
        Self { uri, info: tools.call_info(&call, cx.workspace), call, is_announced: false }
    }

    /// Checks the permission to fetch the image, as for a call of `web_fetch`.
    async fn permit(
        &mut self,
        cx: &TurnCx<'_>,
        tools: &ToolRegistry,
        gate: &PermissionGate,
    ) -> Result<(), String> {
        let rejection = |result: ToolResult| rejection_reason(&result);
        hooks::before_call(cx, &self.call).await.map_err(rejection)?;
        if matches!(gate.evaluate_call(cx, &self.call, &self.info), PermissionDecision::Ask { .. }) {
            announce_call(cx, tools, &self.call, &self.info);
            self.is_announced = true;
        }
        let tool_cx = ToolCx { call: Some(self.call.id), ..cx.tool_cx(&self.info.access) };
        let prepared = PreparedCall { call: &self.call, info: &self.info, tool_cx };
        let permission = approve_call(cx, tools, prepared, gate).await;
        permission.map(drop).map_err(rejection)
    }

    fn settle(&self, cx: &TurnCx<'_>, fetched: &FetchedImage) {
        if !self.is_announced {
            return;
        }
        let (status, content) = match fetched {
            Ok(ContentPart::Image { mime, data }) => (
                ToolCallStatus::Completed,
                vec![ToolCallContent::Image { mime: mime.clone(), data: data.clone() }],
            ),
            Ok(
                ContentPart::Text(_)
                | ContentPart::Link { .. }
                | ContentPart::Resource { .. }
                | ContentPart::FromCrow { .. },
            ) => (ToolCallStatus::Completed, Vec::new()),
            Err(reason) => (ToolCallStatus::Failed, vec![ToolCallContent::Text(reason.clone())]),
        };
        let update = SessionUpdate::CallChanged { call: self.call.id, status, content: Some(content) };
        cx.client.send_update(cx.session, update);
    }
}

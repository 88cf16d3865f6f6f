//! Images that a prompt names by an address on the web. Each is fetched once, under the policy of `web_fetch`, and stands in
//! the prompt as data from then on. One that cannot be had is a note for the model, and the prompt goes on.

use std::collections::BTreeMap;

use crow_core::{
    Arguments, Call, Confinement, Content, CrowPart, Facets, Outcome, Part, SandboxSupport, Status, Update,
    Verdict, link, visible_start,
};
use crow_tools::{ToolCx, Tools};
use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::calls::{Gate, announce, permit};
use crate::run_turn::{Conversation, TurnCx};
use crate::{confirm, hooks};

/// The tool by whose name images are judged.
const FETCH: &str = "web_fetch";

/// Images of one prompt that are fetched: models compare a few.
const IMAGES_MAX: usize = 8;

/// Base64 of all of them: some providers refuse requests of more than 20 MB.
const BYTES_MAX: usize = 12 * 1024 * 1024;

/// Characters of an address in a sentence.
const URI_CHARS_MAX: usize = 200;

type FetchedImage = Result<Part, String>;

/// Adds to each link to an image on the web the image, or why it is missing.
pub(super) async fn with_images(cx: &TurnCx<'_>, talk: &mut Conversation, parts: Vec<Part>) -> Vec<Part> {
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
        None => fetch(cx, talk, links).await,
        // Nothing is fetched that is not looked at.
        Some(model) => {
            links.into_iter().map(|uri| (uri, Err(format!("the model {model} reads text only")))).collect()
        }
    };
    let mut whole = Vec::with_capacity(parts.len());
    for part in parts {
        // The first link to an image brings it along.
        let image = image_link(&part).and_then(|uri| images.remove_entry(uri));
        whole.push(part);
        whole.extend(image.map(|(uri, image)| image.unwrap_or_else(|why| missing(cx, &uri, &why))));
    }
    whole
}

/// The model of the session, where it reads text only.
fn text_only_model(cx: &TurnCx<'_>) -> Option<String> {
    cx.model().ok().filter(|model| !model.reads_images).map(|model| model.name)
}

/// Tells the person that the model does not see the images that they sent.
pub(super) fn tell_unseen(cx: &TurnCx<'_>, parts: &[Part]) {
    let n_images = parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    if let Some(model) = text_only_model(cx).filter(|_| n_images > 0) {
        let images = if n_images == 1 { "the image" } else { "the images" };
        let notice = format!(
            "the model {model} reads text only: it gets a note instead of {images}; /model switches to another"
        );
        cx.client.tell(cx.session, Update::Notice(notice));
    }
}

fn image_link(part: &Part) -> Option<&String> {
    match part {
        Part::Link { uri, mime, .. } => Some(uri).filter(|uri| link::is_web_image(uri, mime.as_deref())),
        Part::Text(_) | Part::Image { .. } | Part::Resource { .. } | Part::FromCrow { .. } => None,
    }
}

/// Fetches images, side by side once it is known which of them may be.
async fn fetch(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    links: Vec<String>,
) -> BTreeMap<String, FetchedImage> {
    let set = cx.tools();
    let tools = &set.tools;
    let gate = Gate::new(cx, tools, &[], talk, SandboxSupport::Full);
    let mut requests = Vec::with_capacity(links.len());
    for (index, uri) in links.into_iter().enumerate() {
        let mut request = ImageRequest::new(cx, talk, tools, uri);
        let permitted = match index < IMAGES_MAX {
            true => request.permit(cx, tools, &gate).await,
            false => Err(format!("the prompt links to more than {IMAGES_MAX} images")),
        };
        requests.push((request, permitted));
    }
    talk.told = gate.told;
    let fetching = requests.into_iter().map(|(request, permitted)| async move {
        let fetched = match permitted {
            Ok(()) => tools.fetch_image(&request.uri, cx.cut).await,
            Err(why) => Err(why),
        };
        (request, fetched)
    });
    let mut room = BYTES_MAX;
    let mut images = BTreeMap::new();
    for (request, fetched) in join_all(fetching).await {
        let fetched = fetched.and_then(|image| within(&mut room, image));
        request.settle(cx, &fetched);
        images.insert(request.uri, fetched);
    }
    images
}

fn within(room: &mut usize, image: Part) -> FetchedImage {
    let Part::Image { data, .. } = &image else { return Ok(image) };
    *room = room
        .checked_sub(data.len())
        .ok_or_else(|| "the other images of this prompt are large already".to_owned())?;
    Ok(image)
}

/// Tells the person and the model why an image is missing.
fn missing(cx: &TurnCx<'_>, uri: &str, why: &str) -> Part {
    let shown = visible_start(uri, URI_CHARS_MAX);
    let notice = format!("the image {shown} was left out: {why}; the model gets its address only");
    cx.client.tell(cx.session, Update::Notice(notice));
    let text = format!("The image was not fetched: {why}.");
    Part::FromCrow { what: CrowPart::MissingImage(shown), text }
}

/// The fetching of one image, in the form of a call that no reply made.
struct ImageRequest {
    uri: String,
    call: Call,
    facets: Facets,
    /// The client shows the call, because it was asked about it.
    is_announced: bool,
}

impl ImageRequest {
    fn new(cx: &TurnCx<'_>, talk: &Conversation, tools: &Tools, uri: String) -> Self {
        let arguments = Map::from_iter([("url".to_owned(), Value::String(uri.clone()))]);
        let call = Call {
            id: confirm::call(cx, talk),
            provider_id: String::new(),
            name: FETCH.to_owned(),
            arguments: Arguments::Valid(arguments),
        };
        Self { uri, facets: tools.facets(&call, cx.workspace), call, is_announced: false }
    }

    /// Finds out whether the image may be fetched, as of a call of `web_fetch`.
    async fn permit(&mut self, cx: &TurnCx<'_>, tools: &Tools, gate: &Gate) -> Result<(), String> {
        let refused = |outcome: Outcome| match outcome.for_model.into_iter().next() {
            Some(Part::Text(why)) => why.strip_prefix("not run: ").unwrap_or(&why).to_owned(),
            Some(Part::Image { .. } | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. })
            | None => "it may not be fetched".to_owned(),
        };
        hooks::before_call(cx, &self.call).await.map_err(refused)?;
        if matches!(gate.judge(cx, &self.call, &self.facets), Verdict::Ask { .. }) {
            announce(cx, tools, &self.call, &self.facets);
            self.is_announced = true;
        }
        let tool_cx = ToolCx {
            workspace: cx.workspace,
            editor: Some(cx.editor),
            touch: &self.facets.touch,
            call: Some(self.call.id),
            confinement: Confinement::Free,
            cut: cx.cut,
            progress: &|_| (),
            keeper: None,
        };
        let permitted = permit(cx, tools, &self.call, (&self.facets, tool_cx), gate).await;
        permitted.map(drop).map_err(refused)
    }

    fn settle(&self, cx: &TurnCx<'_>, fetched: &FetchedImage) {
        if !self.is_announced {
            return;
        }
        let (status, content) = match fetched {
            Ok(Part::Image { mime, data }) => {
                (Status::Done, vec![Content::Image { mime: mime.clone(), data: data.clone() }])
            }
            Ok(Part::Text(_) | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. }) => {
                (Status::Done, Vec::new())
            }
            Err(why) => (Status::Failed, vec![Content::Text(why.clone())]),
        };
        let update = Update::CallChanged { call: self.call.id, status, content: Some(content) };
        cx.client.tell(cx.session, update);
    }
}

//! Converts the content of prompts, and the responses at the end of their turns.

use agent_client_protocol as sdk;
use crow_core::{
    ContentPart, Failure, FailureKind, ImageError, TokenUsage, TurnEnd, escape_hidden_start, link,
    read_image_part,
};
use sdk::v1::schema as wire;

use crate::incoming::{PromptBlock, PromptResult};

/// The maximum length of a name or a media type from the client.
const NAME_CHARS_MAX: usize = 200;

/// Converts the end of a turn. In this version a failed turn is an error, not a stop reason.
pub(crate) fn prompt_response(result: PromptResult) -> Result<wire::PromptResponse, Failure> {
    let reason = match result.end {
        TurnEnd::Completed => wire::StopReason::EndTurn,
        TurnEnd::OutputLimit => wire::StopReason::MaxTokens,
        TurnEnd::RequestLimit | TurnEnd::Repetition => wire::StopReason::MaxTurnRequests,
        TurnEnd::Refused => wire::StopReason::Refusal,
        TurnEnd::Cancelled => wire::StopReason::Cancelled,
        TurnEnd::Failed(failure) => return Err(failure),
    };
    Ok(wire::PromptResponse::new(reason).usage(result.session_usage.map(usage)))
}

/// Converts a usage. The protocol's input has no tokens of a cache.
fn usage(usage: TokenUsage) -> wire::Usage {
    let TokenUsage { input, output, cached, cache_written, .. } = usage;
    let n_cached = cached.saturating_add(cache_written);
    wire::Usage::new(usage.total_tokens(), input.saturating_sub(n_cached), output)
        .cached_read_tokens((cached > 0).then_some(cached))
        .cached_write_tokens((cache_written > 0).then_some(cache_written))
}

pub(crate) fn content_block(part: ContentPart) -> wire::ContentBlock {
    match part {
        ContentPart::Text(text) => text.into(),
        ContentPart::Image { mime, data } => wire::ContentBlock::Image(wire::ImageContent::new(data, mime)),
        ContentPart::Link { uri, name, mime } => {
            wire::ContentBlock::ResourceLink(wire::ResourceLink::new(name, uri).mime_type(mime))
        }
        ContentPart::Resource { uri, text, mime } => text_resource(uri, text, mime),
        ContentPart::FromCrow { kind: what, text } => text_resource(what.uri(), text, None),
    }
}

fn text_resource(uri: String, text: String, mime: Option<String>) -> wire::ContentBlock {
    let text = wire::TextResourceContents::new(text, uri).mime_type(mime);
    let contents = wire::EmbeddedResourceResource::TextResourceContents(text);
    wire::ContentBlock::Resource(wire::EmbeddedResource::new(contents))
}

/// Parses the content blocks of a prompt. None becomes a [`ContentPart::FromCrow`], whatever its URI.
pub(crate) fn prompt_blocks(blocks: Vec<wire::ContentBlock>) -> Result<Vec<PromptBlock>, Failure> {
    let parts = blocks.into_iter().map(prompt_block).collect::<Result<Vec<_>, _>>()?;
    let has_content = |spoken: &PromptBlock| !matches!(spoken, PromptBlock::Part(ContentPart::Text(text)) if text.trim().is_empty());
    if parts.iter().any(has_content) {
        Ok(parts)
    } else {
        Err(Failure::new(FailureKind::InvalidValue, "the prompt is empty"))
    }
}

fn prompt_block(block: wire::ContentBlock) -> Result<PromptBlock, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            FailureKind::InvalidValue,
            format!("the prompt contains {what}, which Crow cannot read; send it as text or as a link"),
        )
    };
    Ok(PromptBlock::Part(match block {
        wire::ContentBlock::Text(text) => ContentPart::Text(text.text),
        wire::ContentBlock::Image(image) => match image.uri {
            Some(uri) if image.data.is_empty() => {
                return Ok(PromptBlock::ImageUri { uri, mime: image.mime_type });
            }
            Some(_) | None => {
                read_image_part(&image.mime_type, &image.data).map_err(|error| image_failure(&error))?
            }
        },
        wire::ContentBlock::ResourceLink(link) => {
            ContentPart::Link { uri: link.uri, name: link.name, mime: link.mime_type }
        }
        wire::ContentBlock::Resource(resource) => match resource.resource {
            wire::EmbeddedResourceResource::TextResourceContents(text) => {
                ContentPart::Resource { uri: text.uri, text: text.text, mime: text.mime_type }
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) if is_named_only(&blob) => {
                return Ok(PromptBlock::ImageUri { uri: blob.uri, mime: blob.mime_type.unwrap_or_default() });
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) => embedded_resource(blob)?,
            _ => return Err(unsupported("a kind of resource that this version does not support")),
        },
        wire::ContentBlock::Audio(_) => return Err(unsupported("audio")),
        _ => return Err(unsupported("a kind of content that this version does not support")),
    }))
}

/// Whether an embedded resource is a web image without its bytes.
fn is_named_only(blob: &wire::BlobResourceContents) -> bool {
    blob.blob.is_empty() && link::is_web_image(&blob.uri, blob.mime_type.as_deref())
}

/// Converts an embedded binary resource: an image if models accept it; of anything else the model gets the type and
/// size.
fn embedded_resource(blob: wire::BlobResourceContents) -> Result<ContentPart, Failure> {
    let mime = blob.mime_type.as_deref().unwrap_or("unknown type");
    match read_image_part(mime, &blob.blob) {
        Ok(image) => Ok(image),
        Err(ImageError::UnsupportedType(_)) => {
            let n_bytes = blob.blob.len() / 4 * 3;
            let name = blob.uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("a resource");
            let [name, mime] = [name, mime].map(|text| escape_hidden_start(text, NAME_CHARS_MAX));
            let name = format!("{name} ({mime}, about {n_bytes} bytes, not shown)");
            Ok(ContentPart::Link { uri: blob.uri, name, mime: blob.mime_type })
        }
        Err(
            error @ (ImageError::InvalidBase64
            | ImageError::UnknownFormat
            | ImageError::Damaged
            | ImageError::TooLarge(..)),
        ) => Err(image_failure(&error)),
    }
}

fn image_failure(error: &ImageError) -> Failure {
    let reason = format!("an image of the prompt cannot be used: it {error}; send another one, or none");
    Failure::new(FailureKind::InvalidValue, reason)
}

#[cfg(test)]
mod tests;

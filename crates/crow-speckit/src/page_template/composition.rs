//! Composes layers into one text, starting with the nearest that replaces all below it. Reads no files.

use crate::markdown::byte_order_mark_len;
use crate::registry::LayerStrategy;
use crate::{PromptKind, SpeckitError};

use super::layer_stack::{LayerSource, TemplateLayer};

/// The placeholder of a wrapping layer for the layer below.
const CORE_PLACEHOLDER: &str = "{CORE_TEMPLATE}";

/// The separator between two layers.
const SEPARATOR: &str = "\n\n";

/// The same as for one file: a layer with a thousand placeholders must not exhaust the memory.
const COMPOSED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A part of a prompt of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPart {
    /// Its format.
    pub kind: PromptKind,
    /// Its text.
    pub text: String,
}

impl PromptPart {
    pub(crate) fn from_markdown(text: String) -> Self {
        Self { kind: PromptKind::Markdown, text }
    }
}

/// Composes layers, highest precedence first, from their texts. Layers above the base are Markdown.
pub(crate) fn compose_layers(
    name: &str,
    layers: Vec<(&TemplateLayer, PromptPart)>,
) -> Result<Vec<PromptPart>, SpeckitError> {
    let is_base = |(layer, _): &(&TemplateLayer, PromptPart)| layer.strategy == LayerStrategy::Replace;
    let Some(base_index) = layers.iter().position(is_base) else {
        let reason = format!("{name} has layers that extend it but no base layer; add one that replaces");
        return Err(SpeckitError::Invalid(reason));
    };
    let mut parts = Vec::new();
    for (layer, part) in layers.into_iter().take(base_index + 1).rev() {
        parts = match layer.strategy {
            LayerStrategy::Replace => vec![part],
            LayerStrategy::Prepend | LayerStrategy::Append | LayerStrategy::Wrap => {
                join_layer(layer, part.text, parts)?
            }
        };
    }
    Ok(parts)
}

fn join_layer(
    layer: &TemplateLayer,
    text: String,
    base_parts: Vec<PromptPart>,
) -> Result<Vec<PromptPart>, SpeckitError> {
    let n_copies = match layer.strategy {
        LayerStrategy::Replace => 0,
        LayerStrategy::Prepend | LayerStrategy::Append => 1,
        LayerStrategy::Wrap => text.matches(CORE_PLACEHOLDER).count(),
    };
    let n_bytes: usize = base_parts.iter().map(|part| part.text.len()).sum();
    if n_bytes.saturating_mul(n_copies).saturating_add(text.len()) > COMPOSED_BYTES_MAX {
        return Err(layer_error(
            layer,
            &format!("with it, the composed text has more than {COMPOSED_BYTES_MAX} bytes"),
        ));
    }
    let mut parts = Vec::new();
    match layer.strategy {
        LayerStrategy::Replace => push_part(&mut parts, PromptPart::from_markdown(text)),
        LayerStrategy::Prepend => {
            push_part(&mut parts, PromptPart::from_markdown(text + SEPARATOR));
            base_parts.into_iter().for_each(|part| push_part(&mut parts, part));
        }
        LayerStrategy::Append => {
            base_parts.into_iter().for_each(|part| push_part(&mut parts, part));
            push_part(&mut parts, PromptPart::from_markdown(format!("{SEPARATOR}{text}")));
        }
        LayerStrategy::Wrap if n_copies == 0 => {
            return Err(layer_error(layer, &format!("it wraps another layer but has no {CORE_PLACEHOLDER}")));
        }
        LayerStrategy::Wrap => {
            for (index, segment) in text.split(CORE_PLACEHOLDER).enumerate() {
                if index > 0 {
                    base_parts.iter().cloned().for_each(|part| push_part(&mut parts, part));
                }
                push_part(&mut parts, PromptPart::from_markdown(segment.to_owned()));
            }
        }
    }
    Ok(parts)
}

/// Adds a part; adjacent Markdown parts are merged.
fn push_part(parts: &mut Vec<PromptPart>, part: PromptPart) {
    match parts.last_mut() {
        _ if part.text.is_empty() => {}
        Some(last) if last.kind == PromptKind::Markdown && part.kind == PromptKind::Markdown => {
            last.text.push_str(&part.text);
        }
        _ => parts.push(part),
    }
}

fn layer_error(layer: &TemplateLayer, reason: &str) -> SpeckitError {
    match &layer.source {
        LayerSource::Project(path) | LayerSource::User(path) => SpeckitError::invalid_file(path, reason),
        LayerSource::BuiltIn(_) => SpeckitError::Invalid(reason.to_owned()),
    }
}

/// Splits off the front matter, without its fences.
pub(crate) fn split_front_matter(text: &str) -> (Option<&str>, &str) {
    let is_fence = |line: &str| line.trim_end_matches(['\r', '\n']) == "---";
    let mark_len = byte_order_mark_len(text);
    let mut lines = text[mark_len..].split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return (None, text) };
    let start = mark_len + first.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return (Some(&text[start..end]), &text[end + line.len()..]);
        }
        end += line.len();
    }
    (None, text)
}

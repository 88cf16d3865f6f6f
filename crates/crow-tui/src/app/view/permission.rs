//! A permission request as rows: all of its parts.

use crow_acp::AgentPermissionRequest;

use super::{content, rows::RowContext};
use crate::{
    app::request_parts::{RequestPart, split_request},
    text::{DiffTexts, RowIndent, StyledRow, StyledSpan, wrap_spans},
};

/// Renders a permission request: nothing of what will happen is left out.
pub(super) fn render_request(request: &AgentPermissionRequest, context: RowContext<'_>) -> Vec<StyledRow> {
    split_request(request).iter().flat_map(|part| render_part(part, context)).collect()
}

fn render_part(part: &RequestPart, context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    match part {
        RequestPart::Title { heading, title } => {
            let spans = [
                StyledSpan::styled(*heading, theme.warning().bold()),
                StyledSpan::plain(format!(" {title}")),
            ];
            let indent = RowIndent { first: Vec::new(), rest: vec![StyledSpan::plain(content::INDENT)] };
            wrap_spans(&spans, context.width, &indent)
        }
        RequestPart::Text(text) => {
            content::render_paragraph(text, theme.secondary(), [content::INDENT; 2], context)
        }
        RequestPart::Change { path, old, new, extent } => {
            let texts = DiffTexts { path, old: old.as_deref(), new };
            content::whole_change(texts, *extent, context).collect()
        }
        RequestPart::Image(mime) => {
            vec![StyledRow::from_text(format!("{}[image {mime}]", content::INDENT))]
        }
        RequestPart::Command(command) => {
            content::render_paragraph(command, theme.inline_code(), [content::INDENT; 2], context)
        }
        RequestPart::Argument(text) => {
            content::render_paragraph(text, theme.secondary(), [content::INDENT, "    "], context)
        }
    }
}

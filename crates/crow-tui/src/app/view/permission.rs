//! A permission request as rows: whatever is sent to the tool is in them.

use crow_acp::{AgentPermissionRequest, PermissionSubject};
use crow_core::{ToolCallContent, ToolKind};
use serde_json::Value;

use super::{content, rows::RowContext};
use crate::text::{DiffExtent, DiffTexts, RowIndent, StyledRow, StyledSpan, reveal_controls, wrap_spans};

/// Arguments of an edit whose texts are in its change.
const CHANGE_ARGUMENTS: [&str; 3] = ["old_string", "new_string", "content"];

/// The arguments of a call that no row shows yet.
struct UnshownArguments<'a> {
    left: Vec<(&'a str, &'a Value)>,
}

impl<'a> UnshownArguments<'a> {
    fn new(request: &'a AgentPermissionRequest) -> Self {
        let left = match &request.input {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(input)) => input.iter().map(|(name, value)| (name.as_str(), value)).collect(),
            Some(input) => vec![("input", input)],
        };
        Self { left }
    }

    fn find_text(&self, name: &str) -> Option<&'a str> {
        self.left.iter().find(|(other, _)| *other == name).and_then(|(_, value)| value.as_str())
    }

    fn mark_shown(&mut self, name: &str) {
        self.left.retain(|(other, _)| *other != name);
    }

    /// Marks the path of a file, which the title ends with.
    fn mark_in_title(&mut self, title: &str) {
        let is_in_title =
            |(_, value): &(&str, &Value)| value.as_str().is_some_and(|value| ends_with_word(title, value));
        if let Some(index) = self.left.iter().position(is_in_title) {
            self.left.remove(index);
        }
    }
}

fn ends_with_word(title: &str, word: &str) -> bool {
    !word.is_empty() && title.strip_suffix(word).is_some_and(|before| before.ends_with(' '))
}

/// Renders a permission request: nothing of what will happen is left out.
pub(super) fn render_request(request: &AgentPermissionRequest, context: RowContext<'_>) -> Vec<StyledRow> {
    let is_edit = request.kind == ToolKind::Edit;
    let mut arguments = UnshownArguments::new(request);
    // Another tool may mean something else by this name.
    let command = arguments.find_text("command").filter(|_| request.kind == ToolKind::Execute);
    let title = match command {
        Some(_) => "Run a command".to_owned(),
        None => {
            if matches!(request.kind, ToolKind::Read | ToolKind::Edit) {
                arguments.mark_in_title(&request.title);
            }
            reveal_controls(&request.title).replace('\n', " ")
        }
    };
    let mut rows = render_title(request.subject, &title, context);
    for part in &request.content {
        rows.extend(render_part(part, context));
        if let ToolCallContent::Diff { old, new, .. } = part
            && is_edit
        {
            mark_in_change(&mut arguments, old.as_deref(), new);
        }
    }
    if let Some(command) = command {
        arguments.mark_shown("command");
        let command = reveal_controls(command);
        let style = context.theme.inline_code();
        rows.extend(content::render_paragraph(&command, style, [content::INDENT; 2], context));
    }
    if is_edit {
        rows.extend(render_argument_change(&mut arguments, context));
    }
    for (name, value) in arguments.left {
        rows.extend(render_argument(name, value, context));
    }
    rows
}

fn render_title(subject: PermissionSubject, title: &str, context: RowContext<'_>) -> Vec<StyledRow> {
    let heading = match subject {
        PermissionSubject::Call => "Allow this?",
        PermissionSubject::Proposal => "Do this?",
        PermissionSubject::Continue => "Continue?",
    };
    let spans =
        [StyledSpan::styled(heading, context.theme.warning().bold()), StyledSpan::plain(format!(" {title}"))];
    let indent = RowIndent { first: Vec::new(), rest: vec![StyledSpan::plain(content::INDENT)] };
    wrap_spans(&spans, context.width, &indent)
}

fn render_part(part: &ToolCallContent, context: RowContext<'_>) -> Vec<StyledRow> {
    match part {
        ToolCallContent::Text(text) => {
            let style = context.theme.secondary();
            content::render_paragraph(&reveal_controls(text), style, [content::INDENT; 2], context)
        }
        ToolCallContent::Diff { path, old, new } => {
            // Line breaks of Windows are no change of a line.
            let (old, new) = (old.as_ref().map(|old| old.replace("\r\n", "\n")), new.replace("\r\n", "\n"));
            let texts = DiffTexts { path, old: old.as_deref(), new: &new };
            content::whole_change(texts, DiffExtent::AllChanges, context).collect()
        }
        ToolCallContent::Image { mime, .. } => {
            vec![StyledRow::from_text(format!("{}[image {}]", content::INDENT, reveal_controls(mime)))]
        }
    }
}

/// Marks the texts of an edit that its change contains.
fn mark_in_change(arguments: &mut UnshownArguments<'_>, old: Option<&str>, new: &str) {
    for name in CHANGE_ARGUMENTS {
        let change = if name == "old_string" { old.unwrap_or_default() } else { new };
        if arguments.find_text(name).is_some_and(|text| change.contains(text)) {
            arguments.mark_shown(name);
        }
    }
}

/// Renders the change that the texts of an edit make.
fn render_argument_change(arguments: &mut UnshownArguments<'_>, context: RowContext<'_>) -> Vec<StyledRow> {
    let [old, new, content] = CHANGE_ARGUMENTS.map(|name| arguments.find_text(name));
    let texts = match (old, new, content) {
        (Some(old), Some(new), None) if old != new => DiffTexts { path: "", old: Some(old), new },
        (None, None, Some(content)) => DiffTexts { path: "", old: None, new: content },
        (Some(_) | None, Some(_) | None, Some(_) | None) => return Vec::new(),
    };
    CHANGE_ARGUMENTS.iter().for_each(|name| arguments.mark_shown(name));
    content::whole_change(texts, DiffExtent::AllLines, context).collect()
}

fn render_argument(name: &str, value: &Value, context: RowContext<'_>) -> Vec<StyledRow> {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = reveal_controls(&format!("{name}: {value}"));
    content::render_paragraph(&text, context.theme.secondary(), [content::INDENT, "    "], context)
}

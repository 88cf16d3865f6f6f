//! A permission request as parts: whatever is sent to the tool is in one of them, so a client that shows all of them
//! leaves nothing out.

use crow_acp::{AgentPermissionRequest, PermissionSubject};
use crow_core::{ToolCallContent, ToolKind};
use serde_json::Value;

use crate::text::{DiffExtent, reveal_controls};

/// Arguments of an edit whose texts are in its change.
const CHANGE_ARGUMENTS: [&str; 3] = ["old_string", "new_string", "content"];

/// A part of a permission request. Its text has no character that is invisible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestPart {
    /// The first part: what is asked, and of which call.
    Title {
        heading: &'static str,
        title: String,
    },
    /// An explanation.
    Text(String),
    /// The change of a file; without the old text, the file is new.
    Change {
        path: String,
        old: Option<String>,
        new: String,
        extent: DiffExtent,
    },
    /// The media type of an image.
    Image(String),
    Command(String),
    /// The name and the value of another argument.
    Argument(String),
}

/// Splits a request into the parts to show, in their order.
pub fn split_request(request: &AgentPermissionRequest) -> Vec<RequestPart> {
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
    let mut parts = vec![RequestPart::Title { heading: heading(request.subject), title }];
    for content in &request.content {
        parts.push(content_part(content));
        if let ToolCallContent::Diff { old, new, .. } = content
            && is_edit
        {
            arguments.mark_in_change(old.as_deref(), new);
        }
    }
    if let Some(command) = command {
        arguments.mark_shown("command");
        parts.push(RequestPart::Command(reveal_controls(command)));
    }
    if is_edit {
        parts.extend(arguments.take_change());
    }
    parts.extend(arguments.left.into_iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        RequestPart::Argument(reveal_controls(&format!("{name}: {value}")))
    }));
    parts
}

fn heading(subject: PermissionSubject) -> &'static str {
    match subject {
        PermissionSubject::Call => "Allow this?",
        PermissionSubject::Proposal => "Do this?",
        PermissionSubject::Continue => "Continue?",
    }
}

fn content_part(content: &ToolCallContent) -> RequestPart {
    // Line breaks of Windows are no change of a line.
    let reveal_text = |text: &str| reveal_controls(&text.replace("\r\n", "\n"));
    match content {
        ToolCallContent::Text(text) => RequestPart::Text(reveal_controls(text)),
        ToolCallContent::Diff { path, old, new } => RequestPart::Change {
            path: reveal_controls(path),
            old: old.as_deref().map(reveal_text),
            new: reveal_text(new),
            extent: DiffExtent::AllChanges,
        },
        ToolCallContent::Image { mime, .. } => RequestPart::Image(reveal_controls(mime)),
    }
}

/// The arguments of a call that no part shows yet.
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

    /// Marks the texts of an edit that its change contains.
    fn mark_in_change(&mut self, old: Option<&str>, new: &str) {
        for name in CHANGE_ARGUMENTS {
            let change = if name == "old_string" { old.unwrap_or_default() } else { new };
            if self.find_text(name).is_some_and(|text| change.contains(text)) {
                self.mark_shown(name);
            }
        }
    }

    /// Takes the change that the texts of an edit make.
    fn take_change(&mut self) -> Option<RequestPart> {
        let (old, new) = match CHANGE_ARGUMENTS.map(|name| self.find_text(name)) {
            [Some(old), Some(new), None] if old != new => (Some(old), new),
            [None, None, Some(content)] => (None, content),
            [Some(_) | None, Some(_) | None, Some(_) | None] => return None,
        };
        CHANGE_ARGUMENTS.iter().for_each(|name| self.mark_shown(name));
        Some(RequestPart::Change {
            path: String::new(),
            old: old.map(reveal_controls),
            new: reveal_controls(new),
            extent: DiffExtent::AllLines,
        })
    }
}

fn ends_with_word(title: &str, word: &str) -> bool {
    !word.is_empty() && title.strip_suffix(word).is_some_and(|before| before.ends_with(' '))
}

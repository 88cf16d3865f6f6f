//! `str_replace_based_edit_tool`: `read`, `write` and `edit` under the name and with the arguments that Anthropic's models
//! know. It only converts the arguments.

use crow_core::{
    ToolCallInfo, ToolSpec,
    edit::{EditOccurrences, TextChange},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    PreviewFuture, Tool, ToolCx, ToolFuture, Workspace,
    edit::{self, FileEdit},
    read::ReadTool,
    tool::{into_preview_future, into_tool_future, parse_arguments, text_argument},
    tool_error::ToolError,
    write::{self, WriteTool, change_call_info},
};

pub(crate) struct StrReplaceTool {
    spec: ToolSpec,
    read: ReadTool,
    write: WriteTool,
}

#[derive(Deserialize)]
struct StrReplaceArgs {
    command: String,
    path: String,
    view_range: Option<Vec<i64>>,
    file_text: Option<String>,
    old_str: Option<String>,
    new_str: Option<String>,
    insert_line: Option<usize>,
    insert_text: Option<String>,
}

/// The action of a call, with the arguments of the tool that carries it out.
enum FileAction {
    View(Map<String, Value>),
    Create(Map<String, Value>),
    Edit(FileEdit),
}

impl StrReplaceTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "str_replace_based_edit_tool".into(),
            description: "Views, creates and edits files. `view` shows a file with line numbers, which are not part of it, or \
                          the lines of `view_range`. `create` writes a new file with `file_text`. `str_replace` replaces \
                          `old_str`, which must be in the file exactly once, by `new_str`. `insert` puts `insert_text` \
                          after line `insert_line`. View a file before you edit it."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"], "description": "What to do"},
                    "path": {"type": "string", "description": "The file, absolute or relative to the working folder"},
                    "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last line to view, from 1; -1 is the last of the file"},
                    "file_text": {"type": "string", "description": "For `create`: all of the file"},
                    "old_str": {"type": "string", "description": "For `str_replace`: the text to replace"},
                    "new_str": {"type": "string", "description": "For `str_replace`: the text to put there; nothing if left out"},
                    "insert_line": {"type": "integer", "minimum": 0, "description": "For `insert`: the line before, 0 for the start"},
                    "insert_text": {"type": "string", "description": "For `insert`: the lines"}
                },
                "required": ["command", "path"]
            }),
        };
        Self { spec, read: ReadTool::new(), write: WriteTool::new() }
    }
}

impl StrReplaceArgs {
    fn into_action(self) -> Result<FileAction, ToolError> {
        let needs = |parameter: &str| {
            ToolError(format!(
                "`str_replace_based_edit_tool` was not run: `{}` needs `{parameter}`",
                self.command
            ))
        };
        let file_path = self.path;
        let change =
            |change| FileAction::Edit(FileEdit { file_path: file_path.clone(), changes: vec![change] });
        match self.command.as_str() {
            "view" => view_arguments(&file_path, self.view_range.as_deref()).map(FileAction::View),
            "create" => {
                let content = self.file_text.ok_or_else(|| needs("file_text"))?;
                Ok(FileAction::Create(to_object(json!({"file_path": file_path, "content": content}))))
            }
            "str_replace" => {
                let old = self.old_str.filter(|old| !old.is_empty()).ok_or_else(|| needs("old_str"))?;
                let new = self.new_str.unwrap_or_default();
                Ok(change(TextChange::Replace { old, new, occurrences: EditOccurrences::One }))
            }
            "insert" => {
                let after_line = self.insert_line.ok_or_else(|| needs("insert_line"))?;
                let text = self.insert_text.or(self.new_str).ok_or_else(|| needs("insert_text"))?;
                Ok(change(TextChange::Insert { after_line, text }))
            }
            command => Err(ToolError(format!(
                "`str_replace_based_edit_tool` was not run: there is no command `{command}`; it takes `view`, `create`, \
                 `str_replace` and `insert`"
            ))),
        }
    }
}

/// Converts the range of a view to the arguments of `read`.
fn view_arguments(file_path: &str, range: Option<&[i64]>) -> Result<Map<String, Value>, ToolError> {
    let invalid = || {
        ToolError(
            "`view_range` has two numbers: the first line, from 1, and the last, or -1 for the end of the file"
                .to_owned(),
        )
    };
    let arguments = match range {
        None => json!({"file_path": file_path}),
        Some([first, -1]) if *first >= 1 => json!({"file_path": file_path, "offset": first}),
        Some([first, last]) if *first >= 1 && last >= first => {
            json!({"file_path": file_path, "offset": first, "limit": last - first + 1})
        }
        Some(_) => return Err(invalid()),
    };
    Ok(to_object(arguments))
}

fn to_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

impl Tool for StrReplaceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        let path = text_argument(arguments, "path");
        match text_argument(arguments, "command") {
            "view" => self.read.call_info(&to_object(json!({"file_path": path})), workspace),
            "create" => change_call_info(workspace, "Write", path),
            _ => change_call_info(workspace, "Edit", path),
        }
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> PreviewFuture<'a> {
        into_preview_future(async move {
            let args: StrReplaceArgs = parse_arguments(arguments)?;
            match args.into_action()? {
                FileAction::View(_) => Ok(Vec::new()),
                FileAction::Create(arguments) => write::preview_write(&arguments, &cx).await,
                FileAction::Edit(edit) => edit::preview_edit(&cx, edit).await,
            }
        })
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let args: StrReplaceArgs = parse_arguments(arguments)?;
            match args.into_action()? {
                FileAction::View(arguments) => Ok(self.read.run(&arguments, cx).await),
                FileAction::Create(arguments) => Ok(self.write.run(&arguments, cx).await),
                FileAction::Edit(edit) => edit::edit_file(&cx, edit).await,
            }
        })
    }
}

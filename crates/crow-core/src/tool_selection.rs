//! Selects the tools that a model gets, and shortens their descriptions for small models.

use serde_json::Value;

use crate::{EditToolKind, ToolSpec};

/// Models with a smaller context window get the core tools: all others would take a tenth of it and more.
const CORE_BELOW_WINDOW: u64 = 40_000;

/// The core tools, of which a model gets those that its edit tool does not replace: each with its short description and
/// the parameters that it keeps.
const CORE_TOOLS: [CoreTool; 8] = [
    CoreTool {
        name: "read",
        description: "Shows the lines of a file with their numbers. Use it first, for each file that the request names.",
        parameters: &["file_path", "offset", "limit"],
        required: &["file_path"],
    },
    CoreTool {
        name: "write",
        description: "Writes a file. Mode `overwrite` replaces everything in it, `append` adds lines to its end.",
        parameters: &["file_path", "mode", "content"],
        required: &["file_path", "mode", "content"],
    },
    CoreTool {
        name: "edit",
        description: "Replaces lines of a file: old_string, which must be in it exactly once, by new_string, such as `port = 80` by \
                      `port = 81`. Read the file first.",
        parameters: &["file_path", "old_string", "new_string"],
        required: &["file_path", "old_string", "new_string"],
    },
    CoreTool {
        name: "apply_patch",
        description: "Changes files: `*** Begin Patch`, then for each file `*** Add File: PATH` and `+` lines, \
                      `*** Delete File: PATH`, or `*** Update File: PATH` and hunks: `@@`, then lines that begin with a \
                      space, `-` or `+`; then `*** End Patch`.",
        parameters: &["input"],
        required: &["input"],
    },
    CoreTool {
        name: "str_replace_based_edit_tool",
        description: "Views, creates and edits files. `old_str` must be in the file exactly once.",
        parameters: &[
            "command",
            "path",
            "view_range",
            "file_text",
            "old_str",
            "new_str",
            "insert_line",
            "insert_text",
        ],
        required: &["command", "path"],
    },
    CoreTool {
        name: "terminal",
        description: "Runs a shell command: builds, tests, git, or a calculation such as `echo $((7 * 6))`. `cd` ends with it.",
        parameters: &["command"],
        required: &["command"],
    },
    CoreTool {
        name: "grep",
        description: "Searches the text inside all files for a regular expression. To see a file whose name you know, use \
                      `read`.",
        parameters: &["pattern"],
        required: &["pattern"],
    },
    CoreTool {
        name: "glob",
        description: "Lists and counts the files with a name, such as **/*.rs.",
        parameters: &["pattern"],
        required: &["pattern"],
    },
];

struct CoreTool {
    name: &'static str,
    description: &'static str,
    parameters: &'static [&'static str],
    required: &'static [&'static str],
}

/// A choice among Crow's own tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolProfile {
    /// The core tools if its context window is small, otherwise all.
    #[default]
    Auto,
    /// All.
    Full,
    /// The core tools, with short descriptions.
    Core,
    /// Those with these names.
    Named(Vec<String>),
}

/// The tools that a model gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSelection {
    /// The choice among Crow's own tools.
    pub profile: ToolProfile,
    /// Tools that it does not get, also those of MCP servers.
    pub excluded: Vec<String>,
    /// The tool by which it changes files; `None` is that of its family.
    pub edit_tool: Option<EditToolKind>,
}

/// The tools among which a model's are selected.
#[derive(Debug, Clone, Copy)]
pub struct SelectableTools<'a> {
    /// All that are offered to a model without a selection.
    pub all: &'a [ToolSpec],
    /// Crow's own tools among them.
    pub own: &'a [ToolSpec],
    /// Crow's own tools that are offered only in place of others, or by name.
    pub alternatives: &'a [&'a ToolSpec],
}

/// A model for which tools are selected.
#[derive(Debug, Clone, Copy)]
pub struct SelectingModel {
    /// Its context window in tokens.
    pub context_window: u64,
    /// The edit tool of its family.
    pub family_tool: EditToolKind,
}

impl ToolSelection {
    /// Whether a model with this context window gets the core tools.
    pub fn is_core(&self, context_window: u64) -> bool {
        match self.profile {
            ToolProfile::Auto => context_window < CORE_BELOW_WINDOW,
            ToolProfile::Core => true,
            ToolProfile::Full | ToolProfile::Named(_) => false,
        }
    }

    /// Returns the tool by which a model of a family changes files.
    pub fn edit_tool(&self, family_tool: EditToolKind) -> EditToolKind {
        self.edit_tool.unwrap_or(family_tool)
    }

    /// Returns the names of the core tools for a model of a family.
    pub fn core_tool_names(&self, family_tool: EditToolKind) -> Vec<&'static str> {
        let edit_tool = self.edit_tool(family_tool);
        let is_other = |name: &str| EditToolKind::parse(name).is_some_and(|kind| kind != edit_tool);
        let names = CORE_TOOLS.iter().map(|tool| tool.name);
        names.filter(|name| !edit_tool.replaces(name) && !is_other(name)).collect()
    }

    /// Returns the names of the profile that none of these tools has.
    pub fn unknown_names<'s>(&'s self, own_tools: &[ToolSpec], alternatives: &[&ToolSpec]) -> Vec<&'s str> {
        let ToolProfile::Named(names) = &self.profile else { return Vec::new() };
        let is_known =
            |name: &&str| own_tools.iter().chain(alternatives.iter().copied()).any(|tool| tool.name == *name);
        names.iter().map(String::as_str).filter(|name| !is_known(name)).collect()
    }

    /// Selects the tools of a model; `None` if it gets all of them. The profile applies to Crow's own tools; those of MCP
    /// servers were configured on purpose.
    pub fn select_tools(&self, tools: SelectableTools<'_>, model: SelectingModel) -> Option<Vec<ToolSpec>> {
        let is_core = self.is_core(model.context_window);
        let edit_tool = self.edit_tool(model.family_tool);
        let is_named = matches!(self.profile, ToolProfile::Named(_));
        if !is_core && !is_named && self.excluded.is_empty() && edit_tool == EditToolKind::Edit {
            return None;
        }
        let is_own = |tool: &ToolSpec| tools.own.iter().any(|own| own.name == tool.name);
        let named_alternatives = tools.alternatives.iter().copied().filter(|_| is_named);
        let candidates = tools.all.iter().chain(named_alternatives);
        let selected = candidates.filter_map(|tool| match &self.profile {
            ToolProfile::Named(names) if is_own(tool) || tools.alternatives.contains(&tool) => {
                names.contains(&tool.name).then(|| tool.clone())
            }
            _ if !is_own(tool) => Some(tool.clone()),
            ToolProfile::Auto | ToolProfile::Full | ToolProfile::Core | ToolProfile::Named(_) => {
                let tool = replace_tool(tool, edit_tool, tools.alternatives)?;
                if is_core { shorten_core_tool(tool) } else { Some(tool.clone()) }
            }
        });
        Some(selected.filter(|tool| !self.excluded.contains(&tool.name)).collect())
    }

    /// Returns the names of Crow's own tools that a model with this selection cannot call. Those that its edit tool
    /// replaces still can be called: models write what other agents taught them.
    pub fn removed_names(
        &self,
        tools: SelectableTools<'_>,
        selected: &[ToolSpec],
        family_tool: EditToolKind,
    ) -> Vec<String> {
        let is_selected = |name: &str| selected.iter().any(|tool| tool.name == name);
        let is_named = matches!(self.profile, ToolProfile::Named(_));
        let edit_tool = self.edit_tool(family_tool);
        let own = tools.own.iter().filter(|tool| is_named || !edit_tool.replaces(&tool.name));
        let alternatives = tools.alternatives.iter().copied().filter(|_| is_named);
        let unselected = own.chain(alternatives).map(|tool| &tool.name).filter(|name| !is_selected(name));
        unselected.chain(&self.excluded).cloned().collect()
    }
}

/// Returns the tool that is offered in the place of one: itself, the model's edit tool, or none.
fn replace_tool<'a>(
    tool: &'a ToolSpec,
    edit_tool: EditToolKind,
    alternatives: &[&'a ToolSpec],
) -> Option<&'a ToolSpec> {
    if !edit_tool.replaces(&tool.name) {
        return Some(tool);
    }
    let replaced = EditToolKind::Edit.as_str();
    alternatives.iter().copied().find(|other| tool.name == replaced && other.name == edit_tool.as_str())
}

/// Returns a core tool with its short description; `None` for another tool.
fn shorten_core_tool(tool: &ToolSpec) -> Option<ToolSpec> {
    let core = CORE_TOOLS.iter().find(|core| core.name == tool.name)?;
    let mut parameters = tool.parameters.clone();
    if let Some(Value::Object(properties)) = parameters.get_mut("properties") {
        properties.retain(|name, _| core.parameters.contains(&name.as_str()));
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.shift_remove("description");
            property.shift_remove("default");
        }
    }
    if let Value::Object(schema) = &mut parameters {
        schema.insert("required".to_owned(), core.required.into());
    }
    Some(ToolSpec { name: tool.name.clone(), description: core.description.to_owned(), parameters })
}

#[cfg(test)]
mod tests;

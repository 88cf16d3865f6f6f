//! Selects the tools that a model gets, and shortens their descriptions for small models.

use serde_json::Value;

use crate::ToolSpec;

/// Models with a smaller context window get the core tools: all others would take a tenth of it and more.
const CORE_BELOW_WINDOW: u64 = 40_000;

/// The core tools: each with its short description and the parameters that it keeps.
const CORE_TOOLS: [CoreTool; 6] = [
    CoreTool {
        name: "read",
        description: "Reads a file with line numbers, which are not part of it. Read before you edit.",
        parameters: &["file_path", "offset", "limit"],
    },
    CoreTool {
        name: "write",
        description: "Writes a whole new or short file.",
        parameters: &["file_path", "content"],
    },
    CoreTool {
        name: "edit",
        description: "Replaces old_string, which must be in the file exactly once, by new_string.",
        parameters: &["file_path", "old_string", "new_string"],
    },
    CoreTool {
        name: "terminal",
        description: "Runs a shell command: builds, tests, git. `cd` ends with it.",
        parameters: &["command", "timeout"],
    },
    CoreTool {
        name: "grep",
        description: "Finds lines in files by a regular expression.",
        parameters: &["pattern", "path"],
    },
    CoreTool {
        name: "glob",
        description: "Finds files by name, such as src/**/*.rs.",
        parameters: &["pattern", "path"],
    },
];

struct CoreTool {
    name: &'static str,
    description: &'static str,
    parameters: &'static [&'static str],
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

    /// Returns the names of the profile that none of Crow's own tools has.
    pub fn unknown_names(&self, own_tools: &[ToolSpec]) -> Vec<&str> {
        let ToolProfile::Named(names) = &self.profile else { return Vec::new() };
        let is_known = |name: &&str| own_tools.iter().any(|tool| tool.name == *name);
        names.iter().map(String::as_str).filter(|name| !is_known(name)).collect()
    }

    /// Selects from tools; `None` if a model with this context window gets all of them. The profile applies to Crow's
    /// own tools; those of MCP servers were configured on purpose.
    pub fn select_tools(
        &self,
        tools: &[ToolSpec],
        own_tools: &[ToolSpec],
        context_window: u64,
    ) -> Option<Vec<ToolSpec>> {
        let is_core = self.is_core(context_window);
        if !is_core && self.excluded.is_empty() && !matches!(self.profile, ToolProfile::Named(_)) {
            return None;
        }
        let is_own = |tool: &ToolSpec| own_tools.iter().any(|own| own.name == tool.name);
        let remaining = tools.iter().filter(|tool| !self.excluded.contains(&tool.name));
        let selected = remaining.filter_map(|tool| match &self.profile {
            _ if !is_own(tool) => Some(tool.clone()),
            ToolProfile::Named(names) => names.contains(&tool.name).then(|| tool.clone()),
            _ if is_core => shorten_core_tool(tool),
            ToolProfile::Auto | ToolProfile::Full | ToolProfile::Core => Some(tool.clone()),
        });
        Some(selected.collect())
    }
}

/// Returns the names of the core tools.
pub fn core_tool_names() -> [&'static str; 6] {
    CORE_TOOLS.each_ref().map(|tool| tool.name)
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
    Some(ToolSpec { name: tool.name.clone(), description: core.description.to_owned(), parameters })
}

#[cfg(test)]
mod tests;

//! A set of tools with their definitions.

use std::sync::Arc;

use crow_core::ToolSpec;
use crow_tools::{Tool, ToolRegistry};

/// A set of tools with their definitions.
#[derive(Clone)]
pub(crate) struct ToolSet {
    pub(crate) tools: ToolRegistry,
    pub(crate) specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    pub(crate) fn new(tools: ToolRegistry) -> Self {
        let specs = tools.tool_specs().into();
        Self { tools, specs }
    }

    /// Returns the set with further tools, which are offered after the others.
    pub(crate) fn with_tools(&self, added: Vec<Arc<dyn Tool>>) -> Self {
        let n_before = self.tools.tool_specs().len();
        let tools = self.tools.with_tools(added);
        let added_specs = tools.tool_specs().into_iter().skip(n_before);
        let specs = self.specs.iter().cloned().chain(added_specs).collect();
        Self { tools, specs }
    }
}

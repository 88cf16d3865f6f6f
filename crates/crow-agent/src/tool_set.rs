//! A set of tools with their definitions.

use std::sync::Arc;

use crow_core::ToolSpec;
use crow_tools::ToolRegistry;

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
}

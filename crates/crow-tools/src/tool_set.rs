//! The tools of a request with their definitions.

use std::sync::Arc;

use crow_core::ToolSpec;

use crate::{Tool, ToolRegistry};

/// The tools that can be called, and the definitions that a request has.
#[derive(Clone)]
pub struct ToolSet {
    /// The tools.
    pub tools: ToolRegistry,
    /// The definitions, in the order of the request.
    pub specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    /// Returns a set whose requests have the definitions of all tools.
    pub fn new(tools: ToolRegistry) -> Self {
        let specs = tools.tool_specs().into();
        Self { tools, specs }
    }

    /// Returns the set with further tools, which are offered after the others.
    pub fn with_tools(&self, added: Vec<Arc<dyn Tool>>) -> Self {
        let n_before = self.tools.n_tools();
        let tools = self.tools.with_tools(added);
        let added_specs = tools.tool_specs().into_iter().skip(n_before);
        let specs = self.specs.iter().cloned().chain(added_specs).collect();
        Self { tools, specs }
    }

    /// Returns the same tools in the order of earlier requests, with new ones at the end: a provider finds a request in its
    /// cache only up to the first difference.
    pub fn in_order_of(self: &Arc<Self>, offered: &Arc<[ToolSpec]>) -> Arc<Self> {
        if Arc::ptr_eq(&self.specs, offered) || self.specs == *offered {
            return self.clone();
        }
        let mut specs = self.specs.to_vec();
        let position = |spec: &ToolSpec| offered.iter().position(|other| other.name == spec.name);
        specs.sort_by_key(|spec| position(spec).unwrap_or(usize::MAX));
        Arc::new(Self { tools: self.tools.clone(), specs: specs.into() })
    }
}

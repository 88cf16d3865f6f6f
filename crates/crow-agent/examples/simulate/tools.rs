//! The simulated tools. One reads, one changes and needs a permission.

use std::sync::Arc;

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec};
use crow_tools::{BuiltinToolConfig, Tool, ToolCx, ToolFuture, ToolRegistry, Workspace};
use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::panics::TOOL_PANIC;
use crate::world::World;

pub(crate) const TOOL_NAMES: [&str; 2] = ["look", "change"];

struct FakeTool {
    spec: ToolSpec,
    access: ToolAccess,
    world: Arc<World>,
}

/// Returns a registry without tools.
pub(crate) fn empty_registry() -> ToolRegistry {
    let builtin = ToolRegistry::with_builtin_tools(BuiltinToolConfig::default());
    let specs = builtin.tool_specs();
    let specs = specs.iter().chain(builtin.alternative_specs());
    let names: Vec<String> = specs.map(|spec| spec.name.clone()).collect();
    builtin.without_tools(&names)
}

/// Returns the tools of a process.
pub(crate) fn fake_tools(world: &Arc<World>, registry: &ToolRegistry) -> ToolRegistry {
    let accesses = [ToolAccess::Nothing, ToolAccess::Runs("change things".to_owned())];
    let mut added: Vec<Arc<dyn Tool>> = Vec::new();
    for (name, access) in TOOL_NAMES.into_iter().zip(accesses) {
        let parameters = json!({
            "type": "object",
            "properties": {"what": {"type": "string"}},
            "required": ["what"],
        });
        let spec = ToolSpec { name: name.to_owned(), description: format!("Does {name}."), parameters };
        added.push(Arc::new(FakeTool { spec, access, world: world.clone() }));
    }
    registry.with_tools(added)
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call_info(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        ToolCallInfo {
            title: self.spec.name.clone(),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: self.access.clone(),
        }
    }

    fn run<'a>(&'a self, _arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let world = &self.world;
            world.pass_boundary("tool").await;
            if world.draws_fault(Fault::ToolHangs) {
                cx.cancel.cancelled().await;
                return ToolResult::failure("stopped");
            }
            let is_panicking = world.draws_fault(Fault::ToolPanics);
            assert!(!is_panicking, "{TOOL_PANIC}");
            match world.draws_fault(Fault::ToolFails) {
                true => ToolResult::failure(world.next_words()),
                false => ToolResult::success(world.next_words()),
            }
        })
    }
}

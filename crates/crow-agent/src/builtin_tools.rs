//! Assembles Crow's own tools.

use std::sync::Arc;

use crow_children::ChildAgentsCell;
use crow_core::SessionId;
use crow_tools::ToolSet;

use crate::runtime::AgentRuntime;

/// Returns Crow's own tools, not bound to a session: for their definitions and the descriptions of calls.
pub(crate) fn unbound_tools(runtime: &AgentRuntime) -> Arc<ToolSet> {
    let assemble = || {
        let task_tools =
            crow_children::task_tools(&ChildAgentsCell::default(), &runtime.config().agent_servers);
        let builtin_tools =
            crow_history::memory_tools(&runtime.store, None).into_iter().chain(task_tools).collect();
        Arc::new(ToolSet::new(runtime.shared_tools.with_tools(builtin_tools)))
    };
    runtime.own_tools.get_or_init(assemble).clone()
}

/// Returns the tools of a session. A session at the maximum depth has no children, and its calls of the task tools are
/// refused: with equal tools, a child finds the prefix of its parent's requests in the provider's cache.
pub(crate) fn session_tools(
    runtime: &AgentRuntime,
    session: &SessionId,
    children: Option<&ChildAgentsCell>,
) -> Arc<ToolSet> {
    let own = crow_history::memory_tools(&runtime.store, Some(session));
    let children = children.cloned().unwrap_or_default();
    let task_tools = crow_children::task_tools(&children, &runtime.config().agent_servers);
    let tools = runtime.shared_tools.with_tools(own.into_iter().chain(task_tools).collect());
    Arc::new(ToolSet { tools, specs: unbound_tools(runtime).specs.clone() })
}

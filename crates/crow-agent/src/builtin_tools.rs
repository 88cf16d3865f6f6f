//! Assembles Crow's own tools.

use std::sync::Arc;

use crow_children::ChildAgentsCell;
use crow_core::SessionId;

use crate::runtime::AgentRuntime;
use crate::tool_set::ToolSet;

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

/// Returns the tools of a session. A session at the maximum depth has no children and gets no task tools.
pub(crate) fn session_tools(
    runtime: &AgentRuntime,
    session: &SessionId,
    children: Option<&ChildAgentsCell>,
) -> Arc<ToolSet> {
    let own = crow_history::memory_tools(&runtime.store, Some(session));
    let task_tools =
        children.map(|children| crow_children::task_tools(children, &runtime.config().agent_servers));
    let tools =
        runtime.shared_tools.with_tools(own.into_iter().chain(task_tools.into_iter().flatten()).collect());
    if children.is_none() {
        return Arc::new(ToolSet::new(tools));
    }
    Arc::new(ToolSet { tools, specs: unbound_tools(runtime).specs.clone() })
}

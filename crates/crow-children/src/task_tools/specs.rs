//! Definitions of the task tools.

use crow_core::{AgentServer, ToolSpec};
use serde_json::json;

use crate::shared::OWN_AGENT;

/// Returns the definitions of the task tools, for these agents and Crow itself.
pub fn task_specs(agents: &[AgentServer]) -> Vec<ToolSpec> {
    vec![task_spec(agents), send_spec(), read_spec(), cancel_spec()]
}

pub(crate) fn task_spec(agents: &[AgentServer]) -> ToolSpec {
    let others = agents.iter().map(|agent| agent.name.as_str()).filter(|name| *name != OWN_AGENT);
    let names: Vec<&str> = std::iter::once(OWN_AGENT).chain(others).collect();
    let agent = format!("Which agent: {}. {OWN_AGENT}, the default, is one like you", names.join(", "));
    ToolSpec {
        name: "task".into(),
        description: "Gives a piece of work to another agent, which works by itself in a session of its own and \
                      answers at its end. Several calls in one reply work side by side. The agent knows nothing of \
                      this conversation: say in the prompt all that it needs and what it should report. Use it for \
                      work that can be told in a few sentences and done without you, not for one search or one edit."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "What to do, with all that the agent has to know, and what to report"},
                "title": {"type": "string", "description": "A few words for the person who watches"},
                "agent": {"type": "string", "description": agent, "enum": names},
                "cwd": {"type": "string", "description": "The folder it works in; yours unless given"},
                "model": {"type": "string", "description": "Which model it asks; yours unless given"},
                "wait": {"type": "boolean", "description": "Whether this call lasts until the agent is done, the default. With false it comes back at once, and the end comes to you as a message"},
                "worktree": {"type": "boolean", "description": "Whether it gets a git worktree of its own, from the last commit; its changes are then on a branch that you can look at and merge. False unless given"}
            },
            "required": ["prompt"]
        }),
    }
}

pub(crate) fn send_spec() -> ToolSpec {
    ToolSpec {
        name: "task_send".into(),
        description: "Says more to the agent of a task: a further round when it is done, words for the round that runs \
                      when the agent takes them. It knows all that was said in its session."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "The name of the task"},
                "prompt": {"type": "string", "description": "What to say"},
                "wait": {"type": "boolean", "description": "Whether this call lasts until the round is done, the default"}
            },
            "required": ["task", "prompt"]
        }),
    }
}

pub(crate) fn read_spec() -> ToolSpec {
    ToolSpec {
        name: "task_read".into(),
        description:
            "Looks at a task: what its agent does and says at the moment, or what came of it. Do not call it \
                      again and again to wait: the end of a task comes to you as a message."
                .into(),
        parameters: task_id_schema("The name of the task"),
    }
}

pub(crate) fn cancel_spec() -> ToolSpec {
    ToolSpec {
        name: "task_cancel".into(),
        description: "Stops a running task, with all that its agent has started.".into(),
        parameters: task_id_schema("The name of the task"),
    }
}

fn task_id_schema(description: &str) -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {"task": {"type": "string", "description": description}},
        "required": ["task"]
    })
}

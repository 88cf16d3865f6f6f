//! `/speckit.taskstoissues`: decides where issues are created, and which calls may create them. The model creates them
//! with the user's own MCP server; this module checks that each one belongs to an open task and to the repository of
//! the remote.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crow_core::{ToolAccess, ToolCall, ToolSpec};
use crow_speckit::{
    Feature, GithubRepository, IssueFacts, TaskFacts, TaskId, TaskItem, WorkflowCommand, github_repository,
    task_facts,
};

use crate::speckit::project_context::ProjectContext;
use crate::speckit::project_files::run_blocking;
use crate::speckit::workflow_exit::WorkflowExit;
use crate::turn_context::TurnCx;

/// Names of the tool that creates an issue, newest first.
const WRITE_TOOLS: [&str; 2] = ["issue_write", "create_issue"];

/// Names of the tool that lists issues.
const LIST_TOOLS: [&str; 2] = ["list_issues", "search_issues"];

/// The repository in which issues are created, and the tools for it.
pub(super) struct IssueHome {
    repository: GithubRepository,
    server: String,
    /// The tools, as the model knows them.
    write_tool: String,
    list_tool: String,
    /// The tasks that may get an issue, in order.
    pub(super) tasks: Vec<TaskFacts>,
    created: Mutex<BTreeSet<TaskId>>,
}

impl IssueHome {
    /// Finds the repository, the server and the tasks.
    pub(super) async fn find(
        cx: &TurnCx<'_>,
        context: &ProjectContext,
        feature: &Feature,
        scope: &str,
    ) -> Result<Self, WorkflowExit> {
        let (project, feature, scope) = (context.project.clone(), feature.clone(), scope.to_owned());
        let (repository, tasks) = run_blocking(move || {
            let repository = github_repository(&project)?;
            let list = feature.read_task_list()?;
            let selected = list.select_tasks(&scope);
            let is_selected = |task: &&TaskItem| {
                !task.done && selected.as_ref().is_none_or(|selected| selected.contains(&task.id))
            };
            let tasks: Vec<TaskFacts> =
                list.tasks.iter().filter(is_selected).map(|task| task_facts(&list, task)).collect();
            Ok((repository, tasks))
        })
        .await
        .map_err(WorkflowExit::Refused)?;
        cx.toolbox.wait_until_connected(cx.cancel).await;
        let server_tools = cx.toolbox.served();
        let Some((server, write_tool)) = writer(&server_tools) else {
            let file = cx.runtime.config().config_dir.join("config.yaml");
            return Err(WorkflowExit::Refused(unserved(&file.display().to_string())));
        };
        let list_tool_name = LIST_TOOLS.iter().find_map(|name| {
            server_tools
                .iter()
                .find(|(server_name, tool_name, _)| server_name == server && tool_name == name)
                .map(|(_, _, spec)| spec.name.clone())
        });
        let (server, list_tool) = (server.to_owned(), list_tool_name.unwrap_or_default());
        Ok(Self {
            repository,
            server,
            write_tool: write_tool.name.clone(),
            list_tool,
            tasks,
            created: Mutex::default(),
        })
    }

    /// Returns the facts for the prompt.
    pub(super) fn facts(&self) -> IssueFacts {
        IssueFacts {
            owner: self.repository.owner.clone(),
            repo: self.repository.name.clone(),
            write_tool: self.write_tool.clone(),
            list_tool: self.list_tool.clone(),
        }
    }

    /// Returns the reason to deny a call: it is for another repository, or creates an issue that belongs to no task.
    pub(super) fn refused(&self, call: &ToolCall, access: &ToolAccess) -> Option<String> {
        let ToolAccess::Calls { server, tool } = access else { return None };
        let (command, repository) = (WorkflowCommand::TasksToIssues, &self.repository);
        let is_write = WRITE_TOOLS.contains(&tool.as_str());
        if *server != self.server {
            let reason = format!(
                "{command} only creates issues with {} of the server {}",
                self.write_tool, self.server
            );
            return is_write.then_some(reason);
        }
        let arguments = call.arguments.to_object();
        let text_argument = |key: &str| arguments.get(key).and_then(serde_json::Value::as_str);
        let matches = |key: &str, expected: &str| {
            text_argument(key).is_some_and(|text_argument| text_argument.eq_ignore_ascii_case(expected))
        };
        let differs = |key: &str, expected: &str| arguments.contains_key(key) && !matches(key, expected);
        if differs("owner", &repository.owner) || differs("repo", &repository.name) {
            return Some(format!("{command} only works with {repository}, the repository of the remote"));
        }
        if !is_write {
            return None;
        }
        if !matches("owner", &repository.owner) || !matches("repo", &repository.name) {
            return Some(format!(
                "specify the repository: owner {}, repo {}",
                repository.owner, repository.name
            ));
        }
        if text_argument("method").is_some_and(|method| method != "create") {
            return Some(format!("{command} only creates issues"));
        }
        let id = text_argument("title").and_then(task_of);
        let Some(id) = id.filter(|id| self.tasks.iter().any(|task| task.id == id.as_str())) else {
            return Some(
                "the title of an issue must be the id and the text of an open task: `T001: …`".to_owned(),
            );
        };
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.contains(&id).then(|| format!("{id} already has an issue"))
    }

    /// Stores that an issue was created.
    pub(super) fn done(&self, call: &ToolCall, access: &ToolAccess) {
        let arguments = call.arguments.to_object();
        let title = arguments.get("title").and_then(serde_json::Value::as_str);
        let is_write =
            matches!(access, ToolAccess::Calls { tool, .. } if WRITE_TOOLS.contains(&tool.as_str()));
        if let Some(id) = title.and_then(task_of).filter(|_| is_write) {
            self.created.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// The line in the report.
    pub(super) fn line(&self) -> String {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: Vec<&str> = created.iter().map(TaskId::as_str).collect();
        let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        format!("New issues in {}: {ids}; open tasks: {}", self.repository, self.tasks.len())
    }
}

/// Returns the task id at the beginning of a title.
fn task_of(title: &str) -> Option<TaskId> {
    let word = title.trim_start().trim_start_matches('[');
    TaskId::parse(word.split(|char: char| !char.is_alphanumeric()).next()?)
}

/// A tool of a server: the server, its name there, its definition.
pub(crate) type Served = (String, String, ToolSpec);

/// Finds the GitHub server: its tool to create issues has a parameter for the repository. Of several, one with GitHub
/// in its name is chosen.
fn writer(server_tools: &[Served]) -> Option<(&str, &ToolSpec)> {
    let takes_parameter = |spec: &ToolSpec, name: &str| spec.parameters["properties"].get(name).is_some();
    let is_github = |server: &str| server.to_ascii_lowercase().contains("github");
    let is_write = |(server, tool_name, spec): &&Served| {
        let has_issue_tool =
            tool_name == WRITE_TOOLS[0] || (tool_name == WRITE_TOOLS[1] && is_github(server));
        has_issue_tool && ["owner", "repo", "title"].iter().all(|name| takes_parameter(spec, name))
    };
    let candidates: Vec<&Served> = server_tools.iter().filter(is_write).collect();
    let chosen = candidates.iter().find(|(server, _, _)| is_github(server)).or_else(|| candidates.first())?;
    Some((&chosen.0, &chosen.2))
}

/// Explains how to configure a server.
fn unserved(file: &str) -> String {
    format!(
        "{} creates issues with your GitHub MCP server, and no connected server has a tool `issue_write`. Add one to \
         {file}, with a token that may write issues, and start a new session:\n\n```yaml\nmcpServers:\n  github:\n   \
         url: https://api.githubcopilot.com/mcp/\n    headers: {{ Authorization: \"Bearer ${{GITHUB_TOKEN}}\" \
         }}\n```\n\nNothing was sent.",
        WorkflowCommand::TasksToIssues
    )
}

//! The values available to a prompt. All names are always defined, so that a user's template fails only on misspelled
//! names.

use serde::Serialize;

/// The values available to a prompt; those a command does not use are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PromptFacts {
    /// The command that runs, such as `/speckit.plan`.
    pub command: String,
    /// The command's arguments, byte for byte.
    pub args: String,
    /// The project's root.
    pub project_root: String,
    /// The feature.
    pub feature: FeatureFacts,
    /// The paths of its files, relative to the root.
    pub paths: PathFacts,
    /// The documents next to spec and plan, in the order of the real scripts.
    pub docs: Vec<String>,
    /// The template of a file that the model, not Crow, creates.
    pub template: String,
    /// The constitution.
    pub constitution: ConstitutionFacts,
    /// The feature's checklists.
    pub checklists: Vec<ChecklistFacts>,
    /// The progress of the task list.
    pub tasks: TasksFacts,
    /// The date, as `2026-11-22`.
    pub today: String,
    /// The limits.
    pub limits: LimitFacts,
    /// The problems in what was written, one sentence each.
    pub problems: Vec<String>,
    /// The user's answer.
    pub answer: AnswerFacts,
    /// The repository for issues.
    pub issues: IssueFacts,
}

/// The repository for issues, and the tools to create them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IssueFacts {
    /// The repository's owner.
    pub owner: String,
    /// The name.
    pub repo: String,
    /// The tool that creates an issue.
    pub write_tool: String,
    /// The tool that lists issues; empty if there is none.
    pub list_tool: String,
}

/// A feature, identified by its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FeatureFacts {
    /// Its directory, relative to the root.
    pub dir: String,
    /// The last component of the directory, such as `001-photo-albums`.
    pub name: String,
    /// The prefix of the name, such as `001`.
    pub number: String,
}

/// Paths, relative to the root, of files that may not exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PathFacts {
    /// The spec.
    pub spec: String,
    /// The plan.
    pub plan: String,
    /// The task list.
    pub tasks: String,
    /// The research.
    pub research: String,
    /// The data model.
    pub data_model: String,
    /// The quickstart.
    pub quickstart: String,
    /// The directory of interfaces.
    pub contracts: String,
    /// The directory of checklists.
    pub checklists: String,
    /// The constitution.
    pub constitution: String,
}

/// The constitution of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConstitutionFacts {
    /// Whether it is filled in.
    pub state: ConstitutionState,
    /// Its text.
    pub text: String,
}

/// Whether a project has a constitution; many have only the unfilled template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstitutionState {
    /// There is no file.
    #[default]
    Missing,
    /// It is still the template.
    Unfilled,
    /// It contains rules.
    Filled,
}

/// The counts of a checklist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChecklistFacts {
    /// Its file name, such as `security.md`.
    pub name: String,
    /// The number of items.
    pub total: usize,
    /// The number of checked items.
    pub checked: usize,
}

/// The counts of a task list, with the current tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TasksFacts {
    /// The number of tasks.
    pub total: usize,
    /// The number of completed tasks.
    pub done: usize,
    /// Its phases, in order.
    pub phases: Vec<PhaseFacts>,
    /// The tasks to do now.
    pub current: Vec<TaskFacts>,
    /// Tasks that others are doing in the same directory tree.
    pub beside: Vec<TaskFacts>,
}

/// The counts of a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PhaseFacts {
    /// Its heading without `#`, such as `Phase 1: Setup`.
    pub title: String,
    /// The number of tasks.
    pub total: usize,
    /// The number of completed tasks.
    pub done: usize,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskFacts {
    /// Its id, such as `T012`.
    pub id: String,
    /// The description, with the lines that belong to it.
    pub text: String,
    /// The heading of its phase.
    pub phase: String,
    /// Its user stories, such as `US1`.
    pub stories: Vec<String>,
}

/// The limits of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LimitFacts {
    /// The number of markers for open questions in a spec.
    pub markers: usize,
    /// The number of questions to the user.
    pub questions: usize,
    /// The number of rounds in which the model may fix what a check found.
    pub repairs: usize,
}

/// The user's answer to a question, if it arrived as their next prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AnswerFacts {
    /// The question.
    pub question: String,
    /// The chosen option or the text; empty if the user wants no more questions.
    pub answer: String,
    /// The number of questions that may still be asked.
    pub left: usize,
}

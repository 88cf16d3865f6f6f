//! What a prompt may speak of. Every name is always there, so that a person's own template fails on a misspelt name only.

use serde::Serialize;

/// What a prompt may speak of; what a command has no use for stays empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PromptFacts {
    /// The command that runs, such as `/speckit.plan`.
    pub command: String,
    /// What the person typed behind it, byte for byte.
    pub args: String,
    /// Where the project begins.
    pub project_root: String,
    /// The feature it is about.
    pub feature: FeatureFacts,
    /// Where its files are, spelled from the root.
    pub paths: PathFacts,
    /// The documents that are there beside spec and plan, in the order of the real scripts.
    pub docs: Vec<String>,
    /// The page that a file begins as, where the model and not Crow makes that file.
    pub template: String,
    /// The ground rules.
    pub constitution: ConstitutionFacts,
    /// The review lists of the feature.
    pub checklists: Vec<ChecklistFacts>,
    /// How far the task list is.
    pub tasks: TasksFacts,
    /// The day, as `2026-11-22`.
    pub today: String,
    /// What is counted.
    pub limits: LimitFacts,
    /// What is wrong with what was written, one sentence each.
    pub problems: Vec<String>,
    /// What the person answered.
    pub answer: AnswerFacts,
    /// Where issues are made.
    pub issues: IssueFacts,
}

/// Where issues are made, and with which tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IssueFacts {
    /// Whose the repository is.
    pub owner: String,
    /// What it is called.
    pub repo: String,
    /// The tool that makes an issue.
    pub write_tool: String,
    /// The tool that lists issues; empty where there is none.
    pub list_tool: String,
}

/// A feature, by its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FeatureFacts {
    /// Its directory, spelled from the root.
    pub dir: String,
    /// The last part of that, such as `001-photo-albums`.
    pub name: String,
    /// The part before the words, such as `001`.
    pub number: String,
}

/// Where things are or will be, spelled from the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PathFacts {
    /// What is to be built.
    pub spec: String,
    /// How.
    pub plan: String,
    /// In which steps.
    pub tasks: String,
    /// What was decided.
    pub research: String,
    /// What is stored.
    pub data_model: String,
    /// How to see that it works.
    pub quickstart: String,
    /// The folder of interfaces.
    pub contracts: String,
    /// The folder of review lists.
    pub checklists: String,
    /// The ground rules.
    pub constitution: String,
}

/// The ground rules of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConstitutionFacts {
    /// Whether somebody wrote them.
    pub state: ConstitutionState,
    /// What the file says.
    pub text: String,
}

/// Whether a project has ground rules: a template that nobody filled is there in many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstitutionState {
    /// There is no file.
    #[default]
    Missing,
    /// It is a template still.
    Unfilled,
    /// It holds rules.
    Filled,
}

/// A review list, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChecklistFacts {
    /// Its file, such as `security.md`.
    pub name: String,
    /// Items in it.
    pub total: usize,
    /// Items that are ticked.
    pub checked: usize,
}

/// A task list, counted, with the tasks that it is about now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TasksFacts {
    /// Tasks in it.
    pub total: usize,
    /// Tasks that are done.
    pub done: usize,
    /// Its phases, in order.
    pub phases: Vec<PhaseFacts>,
    /// The tasks to be done now.
    pub current: Vec<TaskFacts>,
    /// Tasks that others do at the same time in the same files' tree.
    pub beside: Vec<TaskFacts>,
}

/// A phase, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PhaseFacts {
    /// Its heading without the marks, such as `Phase 1: Setup`.
    pub title: String,
    /// Tasks in it.
    pub total: usize,
    /// Tasks that are done.
    pub done: usize,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskFacts {
    /// Its id, such as `T012`.
    pub id: String,
    /// What is to be done, with the lines that belong to it.
    pub text: String,
    /// The heading it stands under.
    pub phase: String,
    /// The stories it serves, such as `US1`.
    pub stories: Vec<String>,
}

/// What is counted for a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LimitFacts {
    /// Marks for open points that a spec may keep.
    pub markers: usize,
    /// Questions to the person.
    pub questions: usize,
    /// Rounds in which the model may put right what a check found.
    pub repairs: usize,
}

/// What the person answered to a question, where the answer came as their next words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AnswerFacts {
    /// What was asked.
    pub question: String,
    /// What was chosen or said; empty where they want no more questions.
    pub answer: String,
    /// Questions that may still be asked.
    pub left: usize,
}

//! The type of a step's definition: everything in which the steps of the workflow differ. Knows no step.

use std::path::PathBuf;

use crate::check::{ProblemList, StepFiles};
use crate::step_layout::{LayoutRequest, StepLayout};
use crate::write_rules::{NO_FILES, WriteRules};
use crate::{
    CommandInvocation, ConvergenceGap, Feature, FeaturePrerequisite, SpeckitError, SpeckitProject,
    TasksError, WorkflowCommand,
};

/// A check before a step begins.
pub type ReadinessCheck = fn(&CommandInvocation, Option<&Feature>) -> Result<(), SpeckitError>;

/// A step of the workflow: what it needs, may write, offers, asks, checks, repairs and reports.
#[derive(Debug)]
pub struct StepDefinition {
    /// The command that starts it.
    pub command: WorkflowCommand,
    /// A one-line description.
    pub description: &'static str,
    /// A hint for the arguments.
    pub argument_hint: &'static str,

    /// The feature that it works on.
    pub feature: FeatureUse,
    /// The check of its arguments and of what it works on, after the prerequisites.
    pub check_ready: ReadinessCheck,
    /// Whether the user confirms that checklists with open items are ignored.
    pub confirms_checklists: bool,

    /// Checks that its files can be created. Writes nothing.
    pub check_layout: fn(&LayoutRequest<'_>) -> Result<(), SpeckitError>,
    /// Creates its files before the model is called.
    pub lay_out: fn(&LayoutRequest<'_>) -> Result<StepLayout, SpeckitError>,
    /// The file that Crow writes during the step.
    pub crow_file: fn(&SpeckitProject, Option<&Feature>) -> Option<PathBuf>,
    /// The files that the model may write.
    pub writes: WriteRules,
    /// Whether the model runs no commands that could change files.
    pub is_read_only: bool,

    /// The built-in prompt.
    pub prompt: &'static str,
    /// The page template in the prompt.
    pub template: Option<&'static str>,
    /// The tool that the model has in addition.
    pub tool: Option<StepTool>,
    /// The maximum number of questions to the user.
    pub questions_max: usize,
    /// Whether answers are written into the spec.
    pub records_answers: bool,
    /// The work of the model.
    pub work: StepWork,
    /// The effect of gaps of the code that the model reports.
    pub gaps: Option<GapWork>,

    /// Finds problems in what was written.
    pub check: fn(&StepFiles<'_>, &mut ProblemList) -> Result<(), SpeckitError>,
    /// The number of times that the model may fix them.
    pub repairs_max: usize,

    /// Summarizes the result, one line each; the second parameter is today's date.
    pub summarize: fn(&StepFiles<'_>, &str) -> Result<Vec<String>, SpeckitError>,
    /// Whether the report counts ticks that a new task list lost.
    pub counts_lost_ticks: bool,
    /// Whether the task list is shown as the plan.
    pub shows_tasks: bool,
    /// Whether it is the next step of a feature in its current state.
    pub is_due: fn(&Feature) -> Result<bool, SpeckitError>,
    /// The commands that usually follow, the most likely first.
    pub next: &'static [WorkflowCommand],
}

/// The feature that a step works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureUse {
    /// None.
    Unused,
    /// A new one.
    Creates,
    /// An existing one with these documents, in the order in which they are checked.
    Needs(&'static [FeaturePrerequisite]),
}

/// The work of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepWork {
    /// Pages of the project or the feature, or a report on them, in one turn.
    Pages,
    /// The tasks of the list, with a turn for each; they may change any code and use child agents.
    Tasks,
    /// Issues for open tasks, on a server.
    Issues,
}

/// The work of a step whose result is a report of gaps.
#[derive(Debug)]
pub struct GapWork {
    /// The problem if the model has reported nothing.
    pub missing_report: &'static str,
    /// Turns the reported gaps into tasks: from the task list and the gaps, which are `None` without a report.
    pub close_gaps: fn(&str, Option<&[ConvergenceGap]>) -> Result<GapClosure, TasksError>,
}

/// The effect of reported gaps.
#[derive(Debug)]
pub struct GapClosure {
    /// The new task list, if it changes.
    pub tasks_text: Option<String>,
    /// The line in the report.
    pub line: String,
    /// The steps that come next.
    pub next: &'static [WorkflowCommand],
}

/// A tool that a step adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTool {
    /// Reports the result of a task.
    ReportTask,
    /// Reports the gaps of the code.
    ReportGaps,
}

impl FeatureUse {
    /// Returns the prerequisites of an existing feature.
    pub fn prerequisites(self) -> Option<&'static [FeaturePrerequisite]> {
        match self {
            Self::Needs(prerequisites) => Some(prerequisites),
            Self::Unused | Self::Creates => None,
        }
    }
}

impl StepDefinition {
    /// Lists the problems in what the step wrote, phrased so that a model can act on them.
    pub fn find_problems(&self, files: &StepFiles<'_>) -> Result<Vec<String>, SpeckitError> {
        let mut problems = ProblemList::default();
        (self.check)(files, &mut problems)?;
        Ok(problems.into_lines())
    }

    /// Summarizes the result of the step from the files, one line each.
    pub fn list_results(&self, files: &StepFiles<'_>, today: &str) -> Result<Vec<String>, SpeckitError> {
        let Some(feature) = files.feature else { return (self.summarize)(files, today) };
        let mut lines = vec![format!("Feature: {}", files.project.display_path(&feature.dir))];
        lines.extend((self.summarize)(files, today)?);
        lines.extend(crate::unfilled_constitution_note(files.project)?);
        if self.counts_lost_ticks {
            lines.extend(files.baseline.describe_lost_ticks(feature)?);
        }
        Ok(lines)
    }
}

/// A step that reads only: the definitions name what they change.
pub(crate) const BASE_STEP: StepDefinition = StepDefinition {
    command: WorkflowCommand::Analyze,
    description: "",
    argument_hint: "focus (optional)",
    feature: FeatureUse::Unused,
    check_ready: |_, _| Ok(()),
    confirms_checklists: false,
    check_layout: |_| Ok(()),
    lay_out: |request| Ok(StepLayout { feature: request.feature.cloned(), ..StepLayout::default() }),
    crow_file: |_, _| None,
    writes: NO_FILES,
    is_read_only: false,
    prompt: "",
    template: None,
    tool: None,
    questions_max: 0,
    records_answers: false,
    work: StepWork::Pages,
    gaps: None,
    check: |_, _| Ok(()),
    repairs_max: 0,
    summarize: |_, _| Ok(Vec::new()),
    counts_lost_ticks: false,
    shows_tasks: false,
    is_due: |_| Ok(false),
    next: &[],
};

//! The scope of a step: its project, its feature, and the facts that are read from their files. Knows no session.

use std::path::Path;

use crow_core::Failure;
use crow_speckit::{
    AuxiliaryPrompt, FactsInput, Feature, PromptFacts, PromptKind, SpeckitError, StepBaseline,
    StepDefinition, StepFiles, StepLimits, TaskList, gather_facts, render_prompt,
};

use crate::blocking::{project_failure, run_blocking};
use crate::project_context::ProjectContext;
use crate::project_files::AnswerRecord;

/// The step, its project and its feature.
pub(crate) struct StepScope {
    pub(crate) context: ProjectContext,
    pub(crate) definition: &'static StepDefinition,
    pub(crate) feature: Option<Feature>,
    /// The user's text, without options.
    pub(crate) text: String,
}

impl StepScope {
    /// Renders a prompt within the step.
    pub(crate) async fn render_side_prompt(
        &self,
        prompt: AuxiliaryPrompt,
        change: impl FnOnce(&mut PromptFacts),
    ) -> Result<String, Failure> {
        let mut facts = self.prompt_facts().await?;
        change(&mut facts);
        run_blocking(move || render_prompt(prompt.built_in_text(), PromptKind::Jinja, &facts))
            .await
            .map_err(project_failure)
    }

    pub(crate) async fn prompt_facts(&self) -> Result<PromptFacts, Failure> {
        let (context, feature, definition) = (self.context.clone(), self.feature.clone(), self.definition);
        let (text, today) = (self.text.clone(), self.context.today());
        let limits = StepLimits { questions: definition.questions_max, repairs: definition.repairs_max };
        let facts = run_blocking(move || {
            let display_path = |path: &Path| context.display_path(path);
            let page = |name: &str| context.find_page(name);
            gather_facts(
                &context.project,
                feature.as_ref(),
                &FactsInput {
                    command: definition.command,
                    args: &text,
                    template: definition.template,
                    today: &today,
                    limits,
                },
                &display_path,
                &page,
            )
        });
        facts.await.map_err(project_failure)
    }

    /// Captures the state with which the result of the step is compared.
    pub(crate) async fn take_baseline(&self) -> Result<StepBaseline, Failure> {
        let (project, feature) = (self.context.project.clone(), self.feature.clone());
        run_blocking(move || StepBaseline::capture(&project, feature.as_ref())).await.map_err(project_failure)
    }

    /// Returns the problems of what was written.
    pub(crate) async fn find_problems(&self, baseline: &StepBaseline) -> Result<Vec<String>, Failure> {
        let definition = self.definition;
        self.read_files(baseline, move |files| definition.find_problems(files)).await
    }

    /// Returns the results on disk, one per line.
    pub(crate) async fn list_results(&self, baseline: &StepBaseline) -> Result<Vec<String>, Failure> {
        let (definition, today) = (self.definition, self.context.today());
        self.read_files(baseline, move |files| definition.list_results(files, &today)).await
    }

    /// Reads the files that the step worked on.
    async fn read_files(
        &self,
        baseline: &StepBaseline,
        read: impl FnOnce(&StepFiles<'_>) -> Result<Vec<String>, SpeckitError> + Send + 'static,
    ) -> Result<Vec<String>, Failure> {
        let (context, feature, baseline) = (self.context.clone(), self.feature.clone(), baseline.clone());
        let lines = run_blocking(move || {
            let pages = |name: &str| context.find_page(name);
            let (project, feature) = (&context.project, feature.as_ref());
            read(&StepFiles { project, feature, baseline: &baseline, pages: &pages })
        });
        lines.await.map_err(project_failure)
    }

    /// Reads the current task list.
    pub(crate) async fn read_task_list(&self) -> Result<TaskList, Failure> {
        Ok(TaskList::parse(&self.read_tasks_text().await?))
    }

    pub(crate) async fn read_tasks_text(&self) -> Result<String, Failure> {
        let Some(feature) = self.feature.clone() else { return Ok(String::new()) };
        run_blocking(move || Ok(feature.read_page("tasks.md")?.unwrap_or_default()))
            .await
            .map_err(project_failure)
    }

    /// Returns where answers are written, in the step that clarifies.
    pub(crate) fn answer_record(&self) -> Option<AnswerRecord> {
        let spec = self.feature.as_ref().filter(|_| self.definition.records_answers)?.spec_path();
        Some(AnswerRecord { spec, today: self.context.today() })
    }
}

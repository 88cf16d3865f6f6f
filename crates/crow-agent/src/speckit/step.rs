//! A step of the workflow at work: what it puts to the model, what it tells the person, and what it puts back.

use std::path::Path;

use crow_core::{
    CallId, CrowPart, Entry, Failure, FailureKind, Handoff, Part, PlanEntry, PlanPriority, PlanStatus,
    Prompt, ReportOutcome, SpeckitPart, TurnEnd, Update,
};
use crow_speckit::{
    Aside, Baseline, Change, Command, Done, Facts, Feature, Limits, Priority, PromptKind, SET_ASIDE,
    TaskFacts, TaskId, TaskList, came_to, check, flip, gather, plan_view, render,
};
use crow_store::{DeliveryId, SpeckitEvent};
use serde_json::json;
use tokio::sync::mpsc;

use crate::clock;
use crate::confirm::{call, visible};
use crate::handle::MoreWords;
use crate::hooks::HookMarks;
use crate::keeping::CallKeeper;
use crate::run_turn::{Claimed, Conversation, TurnCx, run_turn, store_failure};
use crate::speckit::ground::Ground;
use crate::speckit::issues::IssueHome;
use crate::speckit::record::{self, Record, off};
use crate::speckit::report;
use crate::speckit::scope::Scope;
use crate::speckit::source::Source;
use crate::speckit::tools::questions_max;
use crate::speckit::work::repairs_max;

/// A step at work.
pub(super) struct Step<'a> {
    pub(super) cx: TurnCx<'a>,
    pub(super) ground: Ground,
    pub(super) command: Command,
    pub(super) feature: Option<Feature>,
    /// What the person said, without the options.
    pub(super) text: String,
    pub(super) scope: Scope,
    /// Where its prompt comes from.
    pub(super) source: Source,
}

impl Step<'_> {
    /// Puts something to the model within the limits of the step; what it may not change is as it was when this ends.
    pub(super) async fn turn(
        &self,
        talk: &mut Conversation,
        parts: Vec<Part>,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        let mail = self.cx.children.mail().await.map_err(store_failure)?;
        self.cx.append_prompt(talk, parts, mail).await?;
        self.go(talk, more_words).await
    }

    /// Has the model go on within the limits of the step.
    pub(super) async fn go(
        &self,
        talk: &mut Conversation,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        // Each turn of a step is one for the person's hooks as well.
        let marks = HookMarks::default();
        let cx = TurnCx { scope: Some(&self.scope), hook_marks: &marks, ..self.cx };
        let end = run_turn(&cx, talk, more_words).await;
        if marks.is_ended() {
            self.scope.desk.state().has_stopped = true;
        }
        // Whatever became of the turn.
        let put_back = self.put_back().await;
        let end = end?;
        put_back?;
        Ok(end)
    }

    /// Tells whether the person, or a hook of theirs, ended the step.
    pub(super) fn has_stopped(&self) -> bool {
        self.scope.desk.state().has_stopped
    }

    /// Says how to go on with a step whose turn broke off.
    pub(super) async fn broken(&self, end: TurnEnd, talk: &mut Conversation) -> Result<TurnEnd, Failure> {
        let command = self.command;
        let text = match (command, &self.feature) {
            (Command::Specify, Some(feature)) => format!(
                "\n{command} was not finished. {} is there; say the same again to go on with it.\n",
                self.ground.project.shown(&feature.spec())
            ),
            _ => format!("\n{command} was not finished. Say it again to go on with what is there.\n"),
        };
        self.report((text, Vec::new()), ReportOutcome::Left, talk).await?;
        Ok(end)
    }

    /// Lets the model know something with what it is asked next.
    pub(super) async fn say(
        &self,
        talk: &mut Conversation,
        parts: Vec<Part>,
        claims: &[DeliveryId],
    ) -> Result<(), Failure> {
        let entry = Entry::Prompt(Prompt { id: talk.transcript.next_message(), parts });
        let claimed = self.cx.append_claiming(talk, entry.clone(), claims).await;
        if claimed.is_err() && !claims.is_empty() {
            self.cx.children.keep_mail();
        }
        match claimed? {
            Claimed::Yes => Ok(()),
            Claimed::BySomebodyElse => self.cx.append(talk, entry).await,
        }
    }

    /// Puts back what nobody may change in this step, and says so.
    pub(super) async fn put_back(&self) -> Result<(), Failure> {
        let background = self.cx.background();
        let put_back = self.scope.watched(move |watch| watch.end_turn(background)).await;
        for touched in put_back.map_err(failed)? {
            let (path, command) = (self.ground.project.shown(&touched.path), self.command);
            let what = match touched.change {
                _ if !touched.is_undone => "; it stays as it is now".to_owned(),
                Change::Changed => {
                    let aside = self.ground.project.specify(SET_ASIDE);
                    format!("; it is as it was, and what it said is in {}", self.ground.project.shown(&aside))
                }
                Change::Removed => "; it is back".to_owned(),
                Change::Created => {
                    let aside = self.ground.project.specify(SET_ASIDE);
                    format!("; it was new and is in {} now", self.ground.project.shown(&aside))
                }
            };
            self.note(&format!("{command} may not change {path}{what}."));
        }
        Ok(())
    }

    /// Says something to the person, in the place where the model's words come.
    pub(super) fn note(&self, text: &str) {
        let message = self.cx.kit.next_note();
        let text = format!("\n{}\n", visible(text.trim()));
        self.cx.client.tell(self.cx.session, Update::Text { message, text });
    }

    /// Names a call that no reply makes.
    pub(super) fn call(&self, talk: &Conversation) -> CallId {
        call(&self.cx, talk)
    }

    /// What the model is told first.
    pub(super) async fn opening(&self, current: Vec<TaskFacts>) -> Result<Part, Failure> {
        let (source, mut facts) = (self.source.clone(), self.facts().await?);
        facts.tasks.current = current;
        facts.issues = self.scope.issues.as_ref().map(IssueHome::facts).unwrap_or_default();
        let text = off(move || source.render(&facts)).await.map_err(failed)?;
        Ok(hidden(SpeckitPart::Step(self.command.as_str().to_owned()), text))
    }

    /// What the model is told in between.
    pub(super) async fn aside(
        &self,
        aside: Aside,
        change: impl FnOnce(&mut Facts),
    ) -> Result<String, Failure> {
        let mut facts = self.facts().await?;
        change(&mut facts);
        off(move || render(aside.built_in(), PromptKind::Jinja, &facts)).await.map_err(failed)
    }

    async fn facts(&self) -> Result<Facts, Failure> {
        let (ground, feature, command) = (self.ground.clone(), self.feature.clone(), self.command);
        let (text, today) = (self.text.clone(), clock::today());
        let limits = Limits { questions: questions_max(command), repairs: repairs_max(command) };
        let gathered = off(move || {
            let spelled = |path: &Path| ground.spelled(path);
            let page = |name: &str| ground.page(name);
            gather(&ground.project, feature.as_ref(), (command, &text, limits), (&spelled, &page), &today)
        });
        gathered.await.map_err(failed)
    }

    /// Takes down what the step is held against when it is over.
    pub(super) async fn baseline(&self) -> Result<Baseline, Failure> {
        let (project, feature) = (self.ground.project.clone(), self.feature.clone());
        off(move || Baseline::take(&project, feature.as_ref())).await.map_err(failed)
    }

    /// What is wrong with what was written.
    pub(super) async fn problems(&self, before: &Baseline) -> Result<Vec<String>, Failure> {
        let (ground, feature, command) = (self.ground.clone(), self.feature.clone(), self.command);
        let before = before.clone();
        let checked = off(move || {
            let page = |name: &str| ground.page(name);
            check(&ground.project, feature.as_ref(), (command, &before), &page)
        });
        checked.await.map_err(failed)
    }

    /// What is on disk now, a line each.
    pub(super) async fn came_to(&self, before: &Baseline) -> Result<Vec<String>, Failure> {
        let (project, feature, command) = (self.ground.project.clone(), self.feature.clone(), self.command);
        let (before, today) = (before.clone(), clock::today());
        let came_to = off(move || {
            let mut lines = came_to(&project, feature.as_ref(), (command, &today))?;
            if let Some(feature) = feature.filter(|_| command == Command::Tasks) {
                lines.extend(before.ticks_gone(&feature)?);
            }
            Ok(lines)
        });
        came_to.await.map_err(failed)
    }

    /// Tells the person what came of the step, and remembers it.
    pub(super) async fn report(
        &self,
        (text, next): (String, Vec<Handoff>),
        outcome: ReportOutcome,
        talk: &mut Conversation,
    ) -> Result<(), Failure> {
        let message = talk.transcript.next_message();
        let text = visible(&format!("{text}{}", report::next_line(&next)));
        // The model knows it from here on, and a replay shows it.
        self.say(talk, vec![hidden(SpeckitPart::Report, text.clone())], &[]).await?;
        self.cx.client.tell(self.cx.session, Update::Report { message, text, outcome, next });
        let event = SpeckitEvent {
            ts: clock::now(),
            command: self.command.as_str().to_owned(),
            args_sha: Some(record::hash(&self.text)),
            outcome: outcome.as_str().to_owned(),
            files: self.changed(talk).await?,
        };
        self.cx.kit.store.log_speckit(self.cx.writer, event).await.map_err(store_failure)
    }

    /// The files that were changed since the step began, by Crow's tools and by Crow.
    async fn changed(&self, talk: &Conversation) -> Result<Vec<String>, Failure> {
        let changes = self.cx.kit.store.last_changes(self.cx.session).await.map_err(store_failure)?;
        let of_step = changes.into_iter().filter(|change| change.turn == talk.turn);
        let mut paths: Vec<String> = of_step.map(|change| change.path).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Reads the task list as it is now.
    pub(super) async fn tasks(&self) -> Result<TaskList, Failure> {
        Ok(TaskList::parse(&self.read_tasks().await?))
    }

    pub(super) async fn read_tasks(&self) -> Result<String, Failure> {
        let Some(feature) = self.feature.clone() else { return Ok(String::new()) };
        off(move || Ok(feature.read("tasks.md")?.unwrap_or_default())).await.map_err(failed)
    }

    /// Ticks a task, or takes the tick back.
    pub(super) async fn mark(&self, id: &TaskId, done: Done, talk: &Conversation) -> Result<(), String> {
        let text = self.read_tasks().await.map_err(|failure| failure.sentence)?;
        let marked = flip(&text, id, done).map_err(|error| error.to_string())?;
        self.write_tasks(&marked, talk).await
    }

    pub(super) async fn write_tasks(&self, text: &str, talk: &Conversation) -> Result<(), String> {
        let Some(feature) = &self.feature else { return Ok(()) };
        let keeper = self.keeper(talk);
        record::write(Some(&keeper), self.cx.workspace, &feature.tasks(), text).await?;
        self.accept(&feature.tasks()).await
    }

    /// Has what Crow itself wrote stay.
    async fn accept(&self, path: &Path) -> Result<(), String> {
        let path = path.to_owned();
        let accepted = self.scope.watched(move |watch| watch.accept(&path)).await?;
        accepted.map_err(|error| error.to_string())
    }

    /// Where answers are written down, in the step that settles open points.
    pub(super) fn record(&self) -> Option<Record> {
        let spec = self.feature.as_ref().filter(|_| self.command == Command::Clarify)?.spec();
        Some(Record { spec })
    }

    pub(super) fn keeper(&self, talk: &Conversation) -> CallKeeper<'_> {
        CallKeeper::new(&self.cx, talk.turn, self.call(talk))
    }

    /// The same, where nothing may stop for it.
    pub(super) async fn show_plan(&self, at_work: &[TaskId]) {
        if let Err(failure) = self.tell_plan(at_work).await {
            tracing::warn!(%failure, "the task list could not be shown");
        }
    }

    /// Shows the task list as the plan.
    pub(super) async fn tell_plan(&self, at_work: &[TaskId]) -> Result<(), Failure> {
        let list = self.tasks().await?;
        if !list.tasks.is_empty() {
            self.cx.client.tell(self.cx.session, Update::Plan(plan(&list, at_work)));
        }
        Ok(())
    }
}

/// By whom the workflow's questions are asked.
pub(super) const BY: &str = "speckit";

/// Finds a report among the parts of a prompt.
pub(crate) fn reported(part: &Part) -> Option<&str> {
    match part {
        Part::FromCrow { what: CrowPart::Speckit(SpeckitPart::Report), text } => Some(text),
        Part::FromCrow { .. }
        | Part::Text(_)
        | Part::Image { .. }
        | Part::Link { .. }
        | Part::Resource { .. } => None,
    }
}

/// Something that the model reads and no replay shows.
pub(super) fn hidden(what: SpeckitPart, text: String) -> Part {
    Part::FromCrow { what: CrowPart::Speckit(what), text }
}

/// A task list as clients show it.
pub(super) fn plan(list: &TaskList, at_work: &[TaskId]) -> Vec<PlanEntry> {
    let entries = plan_view(list, at_work).into_iter();
    let entries = entries.map(|entry| PlanEntry {
        text: entry.text,
        priority: match entry.priority {
            Priority::High => PlanPriority::High,
            Priority::Medium => PlanPriority::Medium,
            Priority::Low => PlanPriority::Low,
        },
        status: match entry.status {
            crow_speckit::Status::Pending => PlanStatus::Pending,
            crow_speckit::Status::InProgress => PlanStatus::InProgress,
            crow_speckit::Status::Completed => PlanStatus::Completed,
        },
        meta: Some(json!({ "speckit": {
            "id": entry.id.as_ref().map(TaskId::as_str),
            "phase": entry.phase,
            "story": entry.stories.first().map(|story| format!("US{story}")),
            "parallel": entry.parallel,
            "line": entry.line,
        } })),
    });
    entries.collect()
}

/// What went wrong with the project's files, as the end of a turn.
pub(super) fn failed(why: String) -> Failure {
    Failure::new(FailureKind::InvalidValue, why)
}

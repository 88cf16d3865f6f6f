//! `/speckit.implement`: the open tasks one after the other, each handed out by Crow, reported by the model and marked by
//! Crow. What is open stands in `tasks.md` and nowhere else, so a run goes on where the last one stopped, however it ended.

use crow_acp::{Answered, Answers, Subject};
use crow_core::{Content, Failure, SpeckitPart, TurnEnd};
use crow_speckit::{
    Aside, ChangeWatch, Command, Done, Feature, Task, TaskFacts, TaskId, TaskList, checklists,
};
use tokio::sync::mpsc;

use crate::confirm::{Matter, confirm};
use crate::handle::MoreWords;
use crate::run_turn::{Conversation, TurnCx};
use crate::speckit::asking;
use crate::speckit::beside;
use crate::speckit::record::off;
use crate::speckit::scope::TaskResult;
use crate::speckit::step::{BY, Step, failed, hidden};
use crate::speckit::work::refuse;

/// What became of the tasks of one run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Those that were done, with what was said of each.
    pub(super) done: Vec<(TaskId, String)>,
    /// Those that failed, with why.
    pub(super) failed: Vec<(TaskId, String)>,
    /// Nothing is open of what was asked for.
    pub(super) is_as_asked: bool,
}

/// One run.
struct Run<'a, 'b> {
    step: &'a Step<'b>,
    /// What the person asked for, or every open task.
    among: Option<Vec<TaskId>>,
    progress: Progress,
    /// Whether tasks may go to child agents, once that was said for good.
    beside: Option<bool>,
    /// The model was told what the step stands for.
    is_opened: bool,
}

/// Asks whether to begin although review lists are open; gives how the turn ends if it ends with that.
pub(super) async fn gate(
    cx: &TurnCx<'_>,
    feature: &Option<Feature>,
    talk: &Conversation,
) -> Result<Option<TurnEnd>, Failure> {
    let Some(feature) = feature.clone() else { return Ok(Some(TurnEnd::Done)) };
    let lists = off(move || checklists(&feature)).await.map_err(failed)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open == 0 {
        return Ok(None);
    }
    let mut table =
        "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n".to_owned();
    for list in &lists {
        let n_left = list.total - list.checked;
        let status = if n_left == 0 { "done" } else { "open" };
        table.push_str(&format!(
            "| {} | {} | {} | {n_left} | {status} |\n",
            list.name, list.total, list.checked
        ));
    }
    let title = format!("Implement although {n_open} checklist items are open");
    let answered = confirm(
        cx,
        Matter {
            by: BY,
            title: &title,
            content: vec![Content::Text(table.clone())],
            subject: Subject::Call,
            answers: Answers::Once,
        },
        talk,
    )
    .await;
    let why = match answered {
        Answered::AllowOnce | Answered::AllowForSession | Answered::AllowInProject => return Ok(None),
        Answered::Cancelled => return Ok(Some(TurnEnd::Cancelled)),
        Answered::Nobody { why } => {
            format!(" and nobody could be asked ({why}). Tick what holds, or allow it with `--yes`.")
        }
        Answered::Reject | Answered::RejectForSession | Answered::RejectAndTell => {
            ". Tick what holds, then say it again.".to_owned()
        }
    };
    let command = Command::Implement;
    refuse(cx, &format!("\n{table}\n{command} did not begin: {n_open} checklist items are open{why}"));
    Ok(Some(TurnEnd::Done))
}

/// Works through the open tasks; gives how the turn ends and what became of the tasks.
pub(super) async fn run(
    step: &Step<'_>,
    talk: &mut Conversation,
    more_words: &mut mpsc::Receiver<MoreWords>,
) -> Result<(TurnEnd, Progress), Failure> {
    let among = step.tasks().await?.selection(&step.text);
    let mut run = Run { step, among, progress: Progress::default(), beside: None, is_opened: false };
    let end = run.go_on(talk, more_words).await?;
    let left = step.tasks().await?;
    run.progress.is_as_asked = left.next_step(run.among.as_deref()).is_empty();
    step.tell_plan(&[]).await?;
    Ok((end, run.progress))
}

impl Run<'_, '_> {
    async fn go_on(
        &mut self,
        talk: &mut Conversation,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        while self.progress.failed.is_empty() && !self.step.has_stopped() {
            // Whatever anybody else did to the list meanwhile counts.
            let list = self.step.tasks().await?;
            let next: Vec<Task> = list.next_step(self.among.as_deref()).into_iter().cloned().collect();
            let end = match next.as_slice() {
                [] => break,
                [_, _, ..] if self.may_go_beside(&next, talk).await => {
                    self.together(&list, &next, talk).await?
                }
                [first, ..] => self.one(&list, first, talk, more_words).await?,
            };
            if end != TurnEnd::Done {
                return Ok(end);
            }
        }
        Ok(TurnEnd::Done)
    }

    /// Has the model do one task.
    async fn one(
        &mut self,
        list: &TaskList,
        task: &Task,
        talk: &mut Conversation,
        more_words: &mut mpsc::Receiver<MoreWords>,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if step.cx.is_over() {
            return Ok(TurnEnd::Cancelled);
        }
        step.scope.desk.hand_out(task.id.as_str());
        step.tell_plan(std::slice::from_ref(&task.id)).await?;
        let current = vec![facts_of(list, task)];
        // A compaction takes away what the step stands for.
        let knows = self.is_opened && talk.transcript.entries().iter().any(asking::begins_run);
        self.is_opened = true;
        let prompt = match knows {
            false => step.opening(current).await?,
            true => {
                let text = step.aside(Aside::Task, |facts| facts.tasks.current = current).await?;
                hidden(SpeckitPart::Task, text)
            }
        };
        let mut end = step.turn(talk, vec![prompt], more_words).await?;
        if end == TurnEnd::Done && step.scope.desk.state().result.is_none() && !step.has_stopped() {
            let text = format!(
                "You ended without saying what became of {}. Finish it if it is not finished, then call speckit_task.",
                task.id
            );
            end = step.turn(talk, vec![hidden(SpeckitPart::Task, text)], more_words).await?;
        }
        self.untick(std::slice::from_ref(&task.id), talk).await?;
        let result = step.scope.desk.state().result.take();
        let unsaid = || TaskResult::Failed { why: "the model did not say what became of it".to_owned() };
        match (result, end) {
            // What was reported counts, whatever came behind it.
            (Some(result), end) => {
                self.settle(&task.id, result, talk).await;
                Ok(end)
            }
            (None, end) if end != TurnEnd::Done || step.has_stopped() => Ok(end),
            (None, _) => {
                self.settle(&task.id, unsaid(), talk).await;
                Ok(TurnEnd::Done)
            }
        }
    }

    /// Takes back ticks that calls of the model set: nobody said that those tasks are done.
    async fn untick(&self, at_work: &[TaskId], talk: &Conversation) -> Result<(), Failure> {
        let by_calls = self.step.scope.watched(ChangeWatch::take_ticked).await.map_err(failed)?;
        let now = self.step.tasks().await?;
        for id in by_calls.iter().filter(|id| now.tasks.iter().any(|task| task.done && task.id == **id)) {
            if let Err(why) = self.step.mark(id, Done::No, talk).await {
                tracing::warn!(%id, why, "a tick could not be taken back");
            } else if !at_work.contains(id) {
                let at_work = at_work.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ");
                self.step.note(&format!("{id} was ticked while {at_work} was at work; it is open again."));
            }
        }
        Ok(())
    }

    /// Tells whether tasks may go to child agents.
    async fn may_go_beside(&mut self, tasks: &[Task], talk: &Conversation) -> bool {
        if let Some(is_given) = self.beside {
            return is_given;
        }
        let leave = beside::ask(self.step, tasks, talk).await;
        self.beside = leave.lasts.then_some(leave.is_given);
        leave.is_given
    }

    /// Has child agents do several tasks at once; each is marked when it ends.
    async fn together(
        &mut self,
        list: &TaskList,
        tasks: &[Task],
        talk: &mut Conversation,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if !std::mem::replace(&mut self.is_opened, true) {
            step.say(talk, vec![step.opening(Vec::new()).await?], &[]).await?;
        }
        step.scope.begin_call(step.cx.background()).await;
        let mut family = beside::start(step, list, tasks, talk).await?;
        if family.is_empty() {
            step.put_back().await?;
            // From here on they are done one by one.
            self.beside = Some(false);
            return Ok(TurnEnd::Done);
        }
        // Whatever goes wrong from here on, no child is left alone.
        let begun = family.tasks();
        let mut at_work = begun.clone();
        step.show_plan(&at_work).await;
        let mut told = Vec::new();
        while let Some(report) = family.next().await {
            told.push(report.text);
            at_work.retain(|task| *task != report.task);
            let is_done = matches!(report.result, TaskResult::Done { .. });
            if is_done || !step.cx.is_over() {
                self.settle(&report.task, report.result, talk).await;
                step.show_plan(&at_work).await;
            }
        }
        let ended = step
            .scope
            .watched({
                let background = step.cx.background();
                move |watch| drop(watch.end_call(background))
            })
            .await;
        let put_back = ended.map_err(failed).and(step.put_back().await);
        self.untick(&begun, talk).await?;
        let text = format!(
            "Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.\n\n{}",
            told.join("\n")
        );
        step.say(talk, vec![hidden(SpeckitPart::Children, text)], &family.claims()).await?;
        put_back?;
        Ok(if step.cx.is_over() { TurnEnd::Cancelled } else { TurnEnd::Done })
    }

    /// Marks a task that is done, and remembers what became of it.
    async fn settle(&mut self, id: &TaskId, result: TaskResult, talk: &Conversation) {
        let result = match result {
            TaskResult::Done { note } => {
                let marked = self.step.mark(id, Done::Yes, talk).await;
                marked.map(|()| note).map_err(|why| format!("it could not be marked: {why}"))
            }
            TaskResult::Failed { why } => Err(why),
        };
        match result {
            Ok(note) => {
                self.step.note(&format!("✓ {id}{}", colon(&note)));
                self.progress.done.push((id.clone(), note));
            }
            Err(why) => {
                self.step.note(&format!("✗ {id}{}", colon(&why)));
                self.progress.failed.push((id.clone(), why));
            }
        }
    }
}

fn colon(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(": {note}") }
}

pub(super) fn facts_of(list: &TaskList, task: &Task) -> TaskFacts {
    TaskFacts {
        id: task.id.to_string(),
        text: task.text.clone(),
        phase: list.phase(task).map(ToString::to_string).unwrap_or_default(),
        stories: task.stories.iter().map(|story| format!("US{story}")).collect(),
    }
}

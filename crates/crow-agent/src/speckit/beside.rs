//! Tasks that may be done at the same time, given to child agents where the person allows it. The children work in the
//! same folder, on files that the task list keeps apart.

use std::pin::Pin;

use crow_acp::{Answered, Answers, Subject};
use crow_core::{
    CallId, Confinement, Content, Facets, Failure, Outcome, Part, Prints, SessionId, Status, ToolKind, Touch,
    Update,
};
use crow_speckit::{Aside, Task, TaskFacts, TaskId, TaskList};
use crow_store::DeliveryId;
use crow_tools::{Progress, ToolCx};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use crate::children::{Awaited, NewTask, Spot, Wake};
use crate::confirm::{Matter, confirm};
use crate::kit::Parallel;
use crate::run_turn::Conversation;
use crate::speckit::implement;
use crate::speckit::scope::TaskResult;
use crate::speckit::step::{BY, Step};
use crate::tasks;

/// Children that one step of the list starts at once; the limits of the tree count as well.
const CHILDREN_MAX: usize = 8;

/// What the last line of a child's answer begins with.
const RESULT: &str = "RESULT:";

/// What the person says to tasks being done side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    /// Whether these may be.
    pub(super) is_given: bool,
    /// Whether that is to be asked again in this run.
    pub(super) lasts: bool,
}

/// Asks the person, unless the configuration says so already.
pub(super) async fn ask(step: &Step<'_>, asked: &[Task], talk: &Conversation) -> Leave {
    match step.ground.settings.parallel {
        Parallel::Never => return Leave { is_given: false, lasts: true },
        Parallel::Always => return Leave { is_given: true, lasts: true },
        Parallel::Ask => {}
    }
    // The others are asked about when it is their turn.
    let asked = &asked[..asked.len().min(CHILDREN_MAX)];
    let ids: Vec<&str> = asked.iter().map(|task| task.id.as_str()).collect();
    let title = format!("Give {} to {} child agents at once", ids.join(", "), ids.len());
    let lines = asked.iter().map(|task| format!("{} {}", task.id, task.text));
    let content = vec![Content::Text(lines.collect::<Vec<_>>().join("\n"))];
    let answered = confirm(
        &step.cx,
        Matter { by: BY, title: &title, content, subject: Subject::Offer, answers: Answers::Session },
        talk,
    )
    .await;
    Leave {
        is_given: answered.allows(),
        // Whoever cannot be asked now cannot be asked later.
        lasts: !matches!(answered, Answered::AllowOnce | Answered::Reject),
    }
}

/// What a child came to.
pub(super) struct Report {
    /// Which of the tasks.
    pub(super) task: TaskId,
    pub(super) result: TaskResult,
    /// What the model is told of it.
    pub(super) text: String,
}

type AtWork<'a> = Pin<Box<dyn Future<Output = Report> + Send + 'a>>;

/// The children of one step of the list.
pub(super) struct Family<'a> {
    step: &'a Step<'a>,
    at_work: FuturesUnordered<AtWork<'a>>,
    calls: Vec<CallId>,
    tasks: Vec<TaskId>,
}

impl Family<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The tasks that got one.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.clone()
    }

    /// Waits for the next one to end.
    pub(super) async fn next(&mut self) -> Option<Report> {
        self.at_work.next().await
    }

    /// What the mailbox has of what they came to.
    pub(super) fn claims(&self) -> Vec<DeliveryId> {
        self.calls.iter().flat_map(|call| self.step.cx.children.claims(*call)).collect()
    }
}

/// Starts a child for each task, each in a call of its own that shows what it does. A task that gets none stays open.
pub(super) async fn start<'a>(
    step: &'a Step<'a>,
    list: &TaskList,
    asked: &[Task],
    talk: &Conversation,
) -> Result<Family<'a>, Failure> {
    let mut family = Family { step, at_work: FuturesUnordered::new(), calls: Vec::new(), tasks: Vec::new() };
    let asked = &asked[..asked.len().min(CHILDREN_MAX)];
    let all: Vec<TaskFacts> = asked.iter().map(|task| implement::facts_of(list, task)).collect();
    // Whatever can fail comes before the first of them is there.
    let mut prompts = Vec::new();
    for (at, own) in all.iter().enumerate() {
        let beside = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, facts)| facts.clone());
        let (current, beside) = (vec![own.clone()], beside.collect());
        let prompt = step.aside(Aside::Child, |facts| {
            facts.tasks.current = current;
            facts.tasks.beside = beside;
        });
        prompts.push(prompt.await?);
    }
    for (task, prompt) in asked.iter().zip(prompts) {
        let (call, facets) = (step.call(talk), facets(task));
        let announced = Update::Call {
            call,
            name: "task".to_owned(),
            facets: facets.clone(),
            arguments: Map::from_iter([("task".to_owned(), Value::from(task.id.as_str()))]),
            status: Status::Running,
            content: Vec::new(),
            prints: Prints::Nothing,
        };
        step.cx.client.tell(step.cx.session, announced);
        let new = NewTask {
            prompt,
            agent: None,
            cwd: None,
            model: None,
            title: Some(facets.title.clone()),
            worktree: false,
            wake: Wake::No,
        };
        let spot = Spot { call, facets, shows: None };
        let begun = step.cx.children.begin(new, spot, step.cx.cut).await;
        let begun = begun.and_then(|child| {
            let awaited = step.cx.children.awaited(&child).ok_or("it ended at once")?;
            Ok((child, awaited))
        });
        match begun {
            Ok((child, awaited)) => {
                family.calls.push(call);
                family.tasks.push(task.id.clone());
                family.at_work.push(Box::pin(ended(step, (call, task.id.clone()), (child, awaited))));
            }
            Err(why) => {
                let content = Some(vec![Content::Text(format!("No child could be started: {why}"))]);
                let failed = Update::CallChanged { call, status: Status::Failed, content };
                step.cx.client.tell(step.cx.session, failed);
            }
        }
    }
    Ok(family)
}

/// Shows a child until it has ended.
async fn ended(
    step: &Step<'_>,
    (call, task): (CallId, TaskId),
    (child, awaited): (SessionId, Awaited),
) -> Report {
    let cx = step.cx;
    let progress = |progress: Progress| {
        if let Progress::Shows(content) = progress {
            let shown = Update::CallChanged { call, status: Status::Running, content: Some(content) };
            cx.client.tell(cx.session, shown);
        }
    };
    let tool_cx = ToolCx {
        workspace: cx.workspace,
        editor: None,
        touch: &Touch::Nothing,
        call: Some(call),
        confinement: Confinement::Free,
        cut: cx.cut,
        progress: &progress,
        keeper: None,
    };
    let outcome = tasks::ended(cx.children, &child, awaited, tool_cx).await;
    let text = text_of(&outcome);
    let result = result(outcome.status, &text);
    let status = match &result {
        TaskResult::Done { .. } => Status::Done,
        TaskResult::Failed { .. } => Status::Failed,
    };
    cx.client.tell(cx.session, Update::CallChanged { call, status, content: Some(outcome.for_client) });
    Report { text: format!("{task}:\n{text}"), task, result }
}

fn text_of(outcome: &Outcome) -> String {
    let texts = outcome.for_model.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads what a child says it came to: its last word on that counts, and no word is none of success.
fn result(status: Status, text: &str) -> TaskResult {
    let said = text.lines().rev().find_map(|line| line.trim().trim_matches(['*', '`']).strip_prefix(RESULT));
    let said = said.map(|said| said.trim().trim_matches(['*', '`']).trim());
    let failed = |why: &str| TaskResult::Failed { why: why.to_owned() };
    match (status, said) {
        (Status::Done, Some("done")) => TaskResult::Done { note: "done by a child agent".to_owned() },
        (Status::Done, Some(said)) => {
            failed(said.strip_prefix("failed").unwrap_or(said).trim_start_matches([':', ' ']))
        }
        (Status::Done, None) => failed("the child agent did not say what became of it"),
        (Status::Failed | Status::Pending | Status::Running, _) => {
            failed(text.lines().next().unwrap_or("the child agent failed"))
        }
    }
}

fn facets(task: &Task) -> Facets {
    Facets {
        title: crate::children::line(&format!("{} {}", task.id, task.text)),
        kind: ToolKind::Other,
        locations: Vec::new(),
        touch: Touch::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: Status, text: &str, expected: &str) {
        let shown = match result(status, text) {
            TaskResult::Done { .. } => "done".to_owned(),
            TaskResult::Failed { why } => why,
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn the_last_word_of_a_child_counts() {
        check(Status::Done, "I did it.\nRESULT: done\n\nIt changed 1 file", "done");
        check(Status::Done, "**RESULT: done**", "done");
        check(Status::Done, "RESULT: done\nno, wait\nRESULT: failed: tests are red", "tests are red");
        check(Status::Done, "I did it.", "the child agent did not say what became of it");
        check(Status::Failed, "Task x was cancelled.\nRESULT: done", "Task x was cancelled.");
    }
}

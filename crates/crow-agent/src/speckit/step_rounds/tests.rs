use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crow_core::ContentPart;
use crow_speckit::{ConvergenceGap, Feature, GapKind, WorkflowCommand, step_definition};
use expect_test::{Expect, expect};

use super::*;
use crate::speckit::project_context::ProjectContext;
use crate::speckit::step_policy::SharedStepState;
use crate::speckit::step_scope::StepScope;

/// The work of the model in one turn, in the project's directory.
type ScriptedTurn = fn(&FakeSession) -> TurnEnd;

/// A session whose turns are scripted; it writes down what the step asks of it.
struct FakeSession {
    scope: StepScope,
    step_state: SharedStepState,
    turns: VecDeque<ScriptedTurn>,
    log: Arc<Mutex<String>>,
}

impl FakeSession {
    fn log(&self, line: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(line.trim());
        log.push('\n');
    }

    fn feature_path(&self, name: &str) -> PathBuf {
        self.scope.feature.as_ref().unwrap().dir.join(name)
    }
}

impl StepPort for FakeSession {
    fn scope(&self) -> &StepScope {
        &self.scope
    }

    fn step_state(&self) -> &SharedStepState {
        &self.step_state
    }

    fn send_note(&self, text: &str) {
        self.log(&format!("note: {text}"));
    }

    fn keep_baseline(&mut self, _baseline: StepBaseline) {
        self.log("the baseline is kept");
    }

    fn issue_summary(&self) -> Option<String> {
        None
    }

    async fn run_turn(&mut self, prompt: ContentPart) -> Result<TurnEnd, Failure> {
        let ContentPart::FromCrow { text, .. } = &prompt else { panic!("{prompt:?}") };
        let lines = text.lines().filter(|line| line.starts_with("- "));
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("- Repair the cause")).collect();
        self.log(&format!("repair:\n{}", lines.join("\n")));
        let turn = self.turns.pop_front().expect("a scripted turn");
        Ok(turn(self))
    }

    async fn run_after_hooks(&mut self) -> Result<Option<TurnEnd>, Failure> {
        self.log("hooks");
        Ok(None)
    }

    async fn write_tasks(&mut self, text: &str) -> Result<(), String> {
        fs::write(self.feature_path("tasks.md"), text).map_err(|error| error.to_string())
    }

    async fn send_plan(&mut self) -> Result<(), Failure> {
        self.log("plan");
        Ok(())
    }

    async fn send_report(&mut self, report: StepReport) -> Result<(), Failure> {
        let next: Vec<&str> = report.next.iter().map(|next| next.command.as_str()).collect();
        self.log(&format!("{}: {}\nnext: {}", report.outcome.as_str(), report.text.trim(), next.join(" ")));
        Ok(())
    }
}

/// Runs a step from its first turn: the model's turns in, what the user sees out.
#[track_caller]
fn check(command: WorkflowCommand, turns: &[ScriptedTurn], expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let context = ProjectContext::in_root(folder.path());
    let dir = context.project.root().join("specs/001-albums");
    fs::create_dir_all(dir.join("checklists")).unwrap();
    fs::write(dir.join("spec.md"), "# Albums\n").unwrap();
    fs::write(dir.join("tasks.md"), "## Phase 1: Setup\n\n- [x] T001 Set up src/a.rs\n").unwrap();
    let scope = StepScope {
        context,
        definition: step_definition(command),
        feature: Some(Feature::from_dir(dir)),
        text: String::new(),
    };
    let log = Arc::<Mutex<String>>::default();
    let turns = turns.iter().copied().collect();
    let mut session = FakeSession { scope, step_state: SharedStepState::default(), turns, log: log.clone() };
    let end = runtime.block_on(async {
        let baseline = session.scope.take_baseline().await?;
        let first = session.turns.pop_front().expect("a first turn");
        let end = first(&session);
        finish_step(&mut session, end, &baseline).await
    });
    session.log(&format!("end: {end:?}"));
    expected.assert_eq(&log.lock().unwrap());
}

fn write_checklist(session: &FakeSession) -> TurnEnd {
    fs::write(session.feature_path("checklists/ux.md"), "- [ ] CHK001 Are sizes stated? [Gap]\n").unwrap();
    TurnEnd::Completed
}

fn report_gaps(session: &FakeSession, gaps: Vec<ConvergenceGap>) -> TurnEnd {
    session.step_state.lock_state().gaps = Some(gaps);
    TurnEnd::Completed
}

#[test]
fn step_is_repaired_and_reported() {
    check(
        WorkflowCommand::Checklist,
        &[|_| TurnEnd::Completed, write_checklist],
        &expect![[r#"
            repair:
            - no checklist was written; write one file in checklists/
            hooks
            done: **/speckit.checklist**
            - Feature: specs/001-albums
            - checklists/ux.md: 0 of 1 checked
            next: speckit.tasks
            end: Ok(Completed)
        "#]],
    );
}

#[test]
fn step_reports_the_problems_that_remain() {
    check(
        WorkflowCommand::Checklist,
        &[|_| TurnEnd::Completed, |_| TurnEnd::Completed],
        &expect![[r#"
            repair:
            - no checklist was written; write one file in checklists/
            hooks
            left: **/speckit.checklist**
            - Feature: specs/001-albums

            Remaining problems:
            - no checklist was written; write one file in checklists/
            next:
            end: Ok(Completed)
        "#]],
    );
}

#[test]
fn interrupted_step_can_be_repeated() {
    check(
        WorkflowCommand::Plan,
        &[|_| TurnEnd::Cancelled],
        &expect![[r#"
        left: /speckit.plan was not finished. Repeat it to continue with what is there.
        next:
        end: Ok(Cancelled)
    "#]],
    );
    check(
        WorkflowCommand::Specify,
        &[|_| TurnEnd::RequestLimit],
        &expect![[r#"
        left: /speckit.specify was not finished. specs/001-albums/spec.md exists; repeat the same command to continue it.
        next:
        end: Ok(RequestLimit)
    "#]],
    );
}

#[test]
fn step_that_asked_waits_for_the_answer() {
    let ask: ScriptedTurn = |session| {
        session.step_state.lock_state().is_waiting = true;
        TurnEnd::Completed
    };
    check(
        WorkflowCommand::Clarify,
        &[ask],
        &expect![[r#"
        the baseline is kept
        end: Ok(Completed)
    "#]],
    );
}

#[test]
fn stopped_step_keeps_what_is_written() {
    let stop: ScriptedTurn = |session| {
        session.step_state.lock_state().has_stopped = true;
        TurnEnd::Completed
    };
    check(
        WorkflowCommand::Tasks,
        &[stop],
        &expect![[r#"
        note: /speckit.tasks was stopped. What is written was kept.
        end: Ok(Completed)
    "#]],
    );
}

#[test]
fn gaps_become_tasks_after_a_report() {
    let report: ScriptedTurn = |session| {
        let gap = ConvergenceGap {
            text: "Show albums in src/b.rs".to_owned(),
            source: "FR-001".to_owned(),
            kind: GapKind::Missing,
            is_critical: true,
        };
        report_gaps(session, vec![gap])
    };
    check(
        WorkflowCommand::Converge,
        &[|_| TurnEnd::Completed, report],
        &expect![[r#"
            repair:
            - nothing was reported: call `speckit_converge`, with an empty list if nothing is missing
            hooks
            plan
            done: **/speckit.converge**
            - Feature: specs/001-albums
            - tasks.md: 2 tasks in 2 phases, 1 done, 0 marked [P]
            - New tasks: 1, of these critical: 1
            next: speckit.implement
            end: Ok(Completed)
        "#]],
    );
    check(
        WorkflowCommand::Converge,
        &[|session| report_gaps(session, Vec::new())],
        &expect![[r#"
        hooks
        plan
        done: **/speckit.converge**
        - Feature: specs/001-albums
        - tasks.md: 1 tasks in 1 phases, 1 done, 0 marked [P]
        - The code has no gaps; tasks.md is unchanged
        next:
        end: Ok(Completed)
    "#]],
    );
}

#[test]
fn step_that_reads_only_has_nothing_to_check() {
    check(
        WorkflowCommand::Analyze,
        &[|_| TurnEnd::Completed],
        &expect![[r#"
        hooks
        done: **/speckit.analyze**
        - Feature: specs/001-albums
        - tasks.md: 1 tasks in 1 phases, 1 done, 0 marked [P]
        next: speckit.implement
        end: Ok(Completed)
    "#]],
    );
}

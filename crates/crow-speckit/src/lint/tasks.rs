//! The rules for `tasks.md`.

use std::collections::HashSet;

use super::common::find_placeholders;
use super::problem::{LintProblem, first_problems};
use super::spec::find_stories;
use crate::markdown;
use crate::tasks::{PhaseKind, TaskItem, TaskList, has_path};

/// Lists the problems in a task list made from this template, for this spec.
pub(crate) fn check_tasks(text: &str, spec: &str, template: &str) -> Vec<LintProblem> {
    let list = TaskList::parse(text);
    let mut problems = find_placeholders(text, template);
    if list.tasks.is_empty() {
        problems.push(LintProblem::for_page(
            "there is no task; write lines such as `- [ ] T001 [P] [US1] What to do in src/a.rs`",
        ));
    }
    check_samples(&list, template, &mut problems);
    check_boxes(text, &list, &mut problems);
    check_ids(&list, &mut problems);
    for task in &list.tasks {
        check_task(&list, task, &mut problems);
    }
    let covered_stories: HashSet<u32> =
        list.tasks.iter().flat_map(|task| task.stories.iter().copied()).collect();
    for (number, _) in find_stories(&markdown::prose_text(spec))
        .into_iter()
        .filter(|(number, _)| !covered_stories.contains(number))
    {
        problems.push(LintProblem::for_page(format!(
            "story {number} of the spec has no task; add a phase with [US{number}] tasks"
        )));
    }
    first_problems(problems)
}

/// Finds sample tasks of the template; a project may keep a few of them, but not most.
fn check_samples(list: &TaskList, template: &str, problems: &mut Vec<LintProblem>) {
    let template = TaskList::parse(template);
    let samples: HashSet<&str> = template.tasks.iter().map(|task| task.text.as_str()).collect();
    let n_samples = list.tasks.iter().filter(|task| samples.contains(task.text.as_str())).count();
    if n_samples > 0 && n_samples * 2 > list.tasks.len() {
        let text = format!(
            "{n_samples} tasks are the samples of the template; replace them with this feature's own"
        );
        problems.push(LintProblem::for_page(text));
    }
}

/// Finds checkboxes that are not tasks, and malformed tasks.
fn check_boxes(text: &str, list: &TaskList, problems: &mut Vec<LintProblem>) {
    let visible = markdown::visible_text(text);
    let tasks: HashSet<usize> = list.tasks.iter().map(|task| task.line).collect();
    for line in markdown::split_lines(&visible) {
        let Some(item) = markdown::parse_checkbox(line.text) else { continue };
        let is_sub_item = line.text.starts_with([' ', '\t']);
        if tasks.contains(&line.number) {
            let is_well_formed = line.text.starts_with("- [") && item.text.starts_with('T');
            if !is_well_formed {
                problems.push(LintProblem::at_line(
                    line.number,
                    "write the task as `- [ ] T001 …`, without marks and indentation",
                ));
            }
        } else if !is_sub_item {
            problems.push(LintProblem::at_line(
                line.number,
                "this box has no task id; begin it with one such as T001",
            ));
        }
    }
}

fn check_ids(list: &TaskList, problems: &mut Vec<LintProblem>) {
    for task in list.duplicate_tasks() {
        problems.push(LintProblem::at_line(
            task.line,
            format!("{} is there twice; every task has its own id", task.id),
        ));
    }
    let first = list.tasks.first().filter(|task| task.id.number() != 1);
    let gap = list.tasks.windows(2).find(|pair| pair[1].id.number() != pair[0].id.number().saturating_add(1));
    if let Some(task) = first {
        problems.push(LintProblem::at_line(
            task.line,
            "the first task has to be T001; number the tasks on from there",
        ));
    } else if let Some([previous, task]) = gap {
        let text =
            format!("{} follows {}; number the tasks on without gaps, in their order", task.id, previous.id);
        problems.push(LintProblem::at_line(task.line, text));
    }
}

fn check_task(list: &TaskList, task: &TaskItem, problems: &mut Vec<LintProblem>) {
    let mut report = |text: String| problems.push(LintProblem::at_line(task.line, text));
    let id = &task.id;
    if task.text.is_empty() {
        report(format!("{id} says nothing; say what to do, and in which file"));
    }
    match list.phase_for(task).map(|phase| phase.kind) {
        Some(PhaseKind::Story { number, .. }) => {
            if !task.stories.contains(&number) {
                report(format!("{id} is in the phase of story {number}; label it [US{number}]"));
            }
            if !has_path(&task.text) {
                report(format!("{id} names no file; say the path it is about"));
            }
        }
        Some(PhaseKind::Setup | PhaseKind::Foundational | PhaseKind::Polish) if !task.stories.is_empty() => {
            report(format!(
                "{id} is labelled with a story outside of a story's phase; remove the label or move it"
            ));
        }
        Some(PhaseKind::Setup | PhaseKind::Foundational | PhaseKind::Polish) => {}
        Some(PhaseKind::Convergence | PhaseKind::Other) => {}
        None => report(format!("{id} is in no phase; put it below a heading such as `## Phase 1: Setup`")),
    }
}

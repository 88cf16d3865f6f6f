use std::fs;

use crate::fixture::fixture_project;
use crate::{PageTemplate, compose_page, step_definition};

use super::*;

const LIST: &str = "specs/001-a/checklists/ux.md";

/// Lists the problems after a checklist step that starts with one list and a baseline and then runs the closure.
#[track_caller]
fn check_lists(before: impl Fn(StepBaseline) -> StepBaseline, act: impl Fn(&SpeckitProject), expected: &str) {
    let (_folder, project) = fixture_project(&[(LIST, "- [ ] CHK001 a [Gap]\n")]);
    let feature = Feature::from_dir(project.resolve_path("specs/001-a"));
    let baseline = before(StepBaseline::capture(&project, Some(&feature)).unwrap());
    act(&project);
    let pages = |name: &str| -> Result<PageTemplate, SpeckitError> { compose_page(&project, None, name) };
    let files = StepFiles { project: &project, feature: Some(&feature), baseline: &baseline, pages: &pages };
    let problems = step_definition(WorkflowCommand::Checklist).find_problems(&files).unwrap();
    assert_eq!(problems.join("\n"), expected);
}

#[test]
fn checklist_may_be_written_before_a_late_baseline() {
    let missing = "no checklist was written; write one file in checklists/";
    check_lists(|early| early, |_| {}, missing);
    check_lists(StepBaseline::mark_late, |_| {}, "");
    let spoil =
        |project: &SpeckitProject| fs::write(project.resolve_path(LIST), "- [ ] CHK001 b [Gap]\n").unwrap();
    let changed = "ux.md: what was in the checklist before has changed; put it back as it was and add new items below it";
    check_lists(StepBaseline::mark_late, spoil, changed);
}

#[test]
fn lost_ticks_of_a_new_list_are_counted() {
    let (_folder, project) = fixture_project(&[(
        "specs/001-a/tasks.md",
        "- [x] T001 a\n- [X] T002 b\n- [x] T003 c\n- [ ] T004 d\n",
    )]);
    let feature = Feature::from_dir(project.resolve_path("specs/001-a"));
    let before = StepBaseline::capture(&project, Some(&feature)).unwrap();
    let gone = |list: &str| {
        fs::write(feature.tasks_path(), list).unwrap();
        before.describe_lost_ticks(&feature).unwrap().unwrap_or_default()
    };
    assert_eq!(
        gone("- [ ] T001 a\n- [x] T002 b\n"),
        "tasks.md: 2 of 3 ticks of the previous list were lost; tick completed tasks again"
    );
    assert_eq!(gone("- [x] T001 a\n- [X] T002 b\n- [x] T003 c\n- [x] T004 d\n"), "");
    fs::remove_file(feature.tasks_path()).unwrap();
    assert!(before.describe_lost_ticks(&feature).unwrap().unwrap().contains("3 of 3"));
    assert_eq!(StepBaseline::default().describe_lost_ticks(&feature).unwrap(), None);
}

/// Prints what the report of each step says about a constitution.
#[track_caller]
fn check_constitution_line(constitution: Option<&str>, expected: &str) {
    let files: Vec<(&str, &str)> = [("specs/001-a/spec.md", "x")]
        .into_iter()
        .chain(constitution.map(|text| (".specify/memory/constitution.md", text)))
        .collect();
    let (_folder, project) = fixture_project(&files);
    let feature = Feature::from_dir(project.resolve_path("specs/001-a"));
    let pages = |name: &str| -> Result<PageTemplate, SpeckitError> { compose_page(&project, None, name) };
    let baseline = StepBaseline::default();
    let step_files =
        StepFiles { project: &project, feature: Some(&feature), baseline: &baseline, pages: &pages };
    for command in
        WorkflowCommand::ALL.into_iter().filter(|command| *command != WorkflowCommand::Constitution)
    {
        let lines = step_definition(command).list_results(&step_files, "2026-01-31").unwrap();
        let said: Vec<String> = lines.into_iter().filter(|line| line.contains("constitution")).collect();
        assert_eq!(said.join("\n"), expected, "{command}");
    }
}

#[test]
fn unfilled_constitution_is_reported() {
    let said = ".specify/memory/constitution.md: not filled in, so no principle was checked (/speckit.constitution fills it in)";
    check_constitution_line(Some("# [PROJECT_NAME] Constitution\n"), said);
    check_constitution_line(Some("\n"), said);
    check_constitution_line(Some("# Photos Constitution\n\nTests first.\n"), "");
    check_constitution_line(None, "");
}

use std::fs;

use crow_speckit::SpeckitRequest;
use expect_test::{Expect, expect};

use super::*;

const SPEC: (&str, &str) = ("specs/001-albums/spec.md", "# Albums\n");
const PLAN: (&str, &str) = ("specs/001-albums/plan.md", "# Plan\n");

/// Types a command in a project with these files: prints the feature and the notes, or the error with its hint.
#[track_caller]
fn check(command: &str, files: &[(&str, &str)], expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let Some(Ok(SpeckitRequest::Step(invocation))) = SpeckitRequest::parse(name, arguments) else {
        panic!("{command} is no step")
    };
    let definition = step_definition(invocation.command);
    let context = ProjectContext::in_root(folder.path());
    let shown = match check_prerequisites(&context, definition, &invocation) {
        Ok(StepPrerequisites { feature, notes }) => {
            let name = feature.map_or_else(|| "no feature".to_owned(), |feature| feature.name);
            format!("{name}; {}", notes.join(" "))
        }
        Err(error) => format!("refused: {error}; {}", error.hint().unwrap_or_default()),
    };
    expected.assert_eq(&shown);
}

#[test]
fn step_needs_the_documents_of_its_definition() {
    check("speckit.constitution", &[], &expect!["no feature; "]);
    check(
        "speckit.plan",
        &[],
        &expect!["refused: the project has no feature yet; run /speckit.specify first"],
    );
    check(
        "speckit.plan",
        &[SPEC],
        &expect!["001-albums; No feature is selected, so the only one is used: specs/001-albums."],
    );
    check(
        "speckit.tasks",
        &[SPEC],
        &expect!["refused: specs/001-albums/plan.md does not exist; run /speckit.plan first"],
    );
    check(
        "speckit.tasks",
        &[SPEC, PLAN],
        &expect!["001-albums; No feature is selected, so the only one is used: specs/001-albums."],
    );
    check(
        "speckit.analyze",
        &[SPEC, PLAN],
        &expect!["refused: specs/001-albums/tasks.md does not exist; run /speckit.tasks first"],
    );
}

#[test]
fn feature_needs_a_description() {
    check(
        "speckit.specify",
        &[],
        &expect![
            "refused: there is nothing to specify; describe after /speckit.specify what to build and why; "
        ],
    );
    check("speckit.specify photos in albums", &[], &expect!["no feature; "]);
}

#[test]
fn steps_on_tasks_need_the_right_tasks() {
    let check_tasks = |command: &str, tasks: &str, expected: &Expect| {
        check(command, &[SPEC, PLAN, ("specs/001-albums/tasks.md", tasks)], expected);
    };
    let (open, done) = ("- [ ] T001 Set up src/a.rs\n", "- [x] T001 Set up src/a.rs\n");
    check_tasks(
        "speckit.implement",
        "# Tasks\n",
        &expect!["refused: there is no task in tasks.md; run /speckit.tasks first"],
    );
    check_tasks(
        "speckit.implement",
        open,
        &expect!["001-albums; No feature is selected, so the only one is used: specs/001-albums."],
    );
    check_tasks(
        "speckit.implement T009",
        open,
        &expect![
            "refused: no open task is selected; name others, or run /speckit.implement alone for all open tasks; "
        ],
    );
    check_tasks(
        "speckit.implement",
        done,
        &expect!["refused: every task is done; /speckit.converge finds what the code still lacks; "],
    );
    check_tasks(
        "speckit.converge",
        open,
        &expect![
            "refused: no task is done yet, so there is nothing to compare; run /speckit.implement first; "
        ],
    );
    check_tasks(
        "speckit.converge",
        done,
        &expect!["001-albums; No feature is selected, so the only one is used: specs/001-albums."],
    );
    check_tasks(
        "speckit.taskstoissues",
        done,
        &expect!["refused: every task is done, so there are no issues to create; "],
    );
}

//! The full text of the built-in prompts for one feature in progress.

use std::path::PathBuf;

use expect_test::{ExpectFile, expect_file};

use crate::{
    AnswerFacts, AuxiliaryPrompt, ChecklistFacts, ConstitutionFacts, ConstitutionState, FeatureFacts,
    IssueFacts, LimitFacts, PathFacts, PromptFacts, PromptKind, TaskFacts, TasksFacts, WorkflowCommand,
    render_prompt, step_definition,
};

const FOLDER: &str = "specs/001-photo-albums";

#[track_caller]
fn check(source: &str, facts: &PromptFacts, expected: &ExpectFile) {
    let mut out = render_prompt(source, PromptKind::Jinja, facts).unwrap_or_else(|error| error.to_string());
    out.push('\n');
    expected.assert_eq(&out);
}

fn golden(name: &str) -> ExpectFile {
    expect_file![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/prompt/tests/{name}.md"))]
}

fn task(id: &str, text: &str, stories: &[&str]) -> TaskFacts {
    let stories = stories.iter().map(|&story| story.to_owned()).collect();
    TaskFacts {
        id: id.to_owned(),
        text: text.to_owned(),
        phase: "Phase 3: User Story 1 - Albums".to_owned(),
        stories,
    }
}

fn albums(args: &str) -> PromptFacts {
    let place = |name: &str| format!("{FOLDER}/{name}");
    PromptFacts {
        args: args.to_owned(),
        project_root: "/home/ada/photos".to_owned(),
        feature: FeatureFacts {
            dir: FOLDER.to_owned(),
            name: "001-photo-albums".to_owned(),
            number: "001".to_owned(),
        },
        paths: PathFacts {
            spec: place("spec.md"),
            plan: place("plan.md"),
            tasks: place("tasks.md"),
            research: place("research.md"),
            data_model: place("data-model.md"),
            quickstart: place("quickstart.md"),
            contracts: place("contracts"),
            checklists: place("checklists"),
            constitution: ".specify/memory/constitution.md".to_owned(),
        },
        docs: vec!["research.md".to_owned(), "data-model.md".to_owned()],
        template: "# Page: [FEATURE NAME] {{7*7}}".to_owned(),
        constitution: ConstitutionFacts {
            state: ConstitutionState::Filled,
            text: "# Photos Constitution".to_owned(),
        },
        checklists: vec![ChecklistFacts { name: "security.md".to_owned(), total: 12, checked: 9 }],
        tasks: TasksFacts {
            total: 12,
            done: 4,
            current: vec![task("T005", "Show albums, newest first, in src/start.ts", &["US1"])],
            ..TasksFacts::default()
        },
        today: "2026-11-22".to_owned(),
        limits: LimitFacts { markers: 3, questions: 5, repairs: 2 },
        issues: IssueFacts {
            owner: "octo".to_owned(),
            repo: "photos".to_owned(),
            write_tool: "issue_write".to_owned(),
            list_tool: "list_issues".to_owned(),
        },
        ..PromptFacts::default()
    }
}

#[test]
fn commands_begin_with_their_prompt() {
    let facts = albums("Photos in albums, {{7*7}}\nby date");
    for command in WorkflowCommand::ALL {
        check(step_definition(command).prompt, &facts, &golden(command.as_str()));
    }
}

#[test]
fn prompts_read_well_without_arguments_rules_or_documents() {
    let facts = PromptFacts {
        docs: Vec::new(),
        checklists: Vec::new(),
        constitution: ConstitutionFacts { state: ConstitutionState::Unfilled, text: String::new() },
        issues: IssueFacts {
            write_tool: "create_issue".to_owned(),
            list_tool: String::new(),
            ..albums("").issues
        },
        ..albums(" \n")
    };
    for command in WorkflowCommand::ALL {
        check(step_definition(command).prompt, &facts, &golden(&format!("{}_bare", command.as_str())));
    }
}

#[test]
fn tasks_are_assigned_one_by_one_or_in_parallel() {
    let one = albums("");
    check(AuxiliaryPrompt::Task.built_in_text(), &one, &golden("task"));
    let mut two = albums("");
    two.tasks.current.push(task(
        "T006",
        "Add the empty page in src/empty.ts\n  - says how to begin",
        &["US1", "US2"],
    ));
    check(AuxiliaryPrompt::Task.built_in_text(), &two, &golden("task_group"));
    check(AuxiliaryPrompt::Child.built_in_text(), &one, &golden("child_alone"));
    two.tasks.beside = two.tasks.current.split_off(1);
    two.tasks.beside.push(task("T007", "Add dates in src/dates.ts", &[]));
    check(AuxiliaryPrompt::Child.built_in_text(), &two, &golden("child"));
}

#[test]
fn answer_prompt_depends_on_the_command() {
    let said = |command: &str, answer: &str, left| PromptFacts {
        command: command.to_owned(),
        answer: AnswerFacts {
            question: "May an album hold albums?".to_owned(),
            answer: answer.to_owned(),
            left,
        },
        ..albums("")
    };
    check(
        AuxiliaryPrompt::Answer.built_in_text(),
        &said("/speckit.clarify", "B, never", 3),
        &golden("answer_clarify"),
    );
    check(
        AuxiliaryPrompt::Answer.built_in_text(),
        &said("/speckit.specify", "No {{7*7}}", 0),
        &golden("answer_last"),
    );
    check(
        AuxiliaryPrompt::Answer.built_in_text(),
        &said("/speckit.checklist", "", 2),
        &golden("answer_none"),
    );
}

#[test]
fn repair_and_short_name_prompts() {
    let mut facts = albums("Photos in albums");
    facts.command = "/speckit.plan".to_owned();
    facts.problems =
        vec!["plan.md:12: **Storage** is not filled".to_owned(), "research.md: is missing".to_owned()];
    check(AuxiliaryPrompt::Repair.built_in_text(), &facts, &golden("repair"));
    check(AuxiliaryPrompt::ShortName.built_in_text(), &facts, &golden("short_name"));
}

#[test]
fn prompts_render_without_facts_except_the_child_task() {
    let facts = PromptFacts::default();
    let sources = WorkflowCommand::ALL
        .map(|command| step_definition(command).prompt)
        .into_iter()
        .chain(AuxiliaryPrompt::ALL.map(AuxiliaryPrompt::built_in_text));
    let failed = sources.filter(|source| render_prompt(source, PromptKind::Jinja, &facts).is_err());
    assert_eq!(failed.collect::<Vec<_>>(), [AuxiliaryPrompt::Child.built_in_text()]);
}

#[test]
fn requirements_page_has_sixteen_items() {
    let page = include_str!("../../../prompts/pages/requirements-template.md");
    let groups = page.split("\n## ").skip(1).map(|group| group.matches("\n- [ ] ").count());
    assert_eq!(groups.collect::<Vec<_>>(), [4, 8, 4, 0]);
}

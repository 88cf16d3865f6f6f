//! What our own prompts say, whole, for one feature in the middle of its life.

use std::path::PathBuf;

use expect_test::{ExpectFile, expect_file};

use crate::{
    AnswerFacts, Aside, ChecklistFacts, Command, ConstitutionFacts, ConstitutionState, Facts, FeatureFacts,
    IssueFacts, LimitFacts, PathFacts, PromptKind, TaskFacts, TasksFacts, built_in, render,
};

const FOLDER: &str = "specs/001-photo-albums";

#[track_caller]
fn check(source: &str, facts: &Facts, expected: &ExpectFile) {
    let mut out = render(source, PromptKind::Jinja, facts).unwrap_or_else(|error| error.to_string());
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

fn albums(args: &str) -> Facts {
    let place = |name: &str| format!("{FOLDER}/{name}");
    Facts {
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
        ..Facts::default()
    }
}

#[test]
fn every_command_begins_with_its_words() {
    let facts = albums("Photos in albums, {{7*7}}\nby date");
    for command in Command::ALL {
        check(built_in(command), &facts, &golden(command.as_str()));
    }
}

#[test]
fn without_words_rules_or_documents_a_command_still_reads_well() {
    let facts = Facts {
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
    for command in Command::ALL {
        check(built_in(command), &facts, &golden(&format!("{}_bare", command.as_str())));
    }
}

#[test]
fn tasks_are_handed_out_one_by_one_or_side_by_side() {
    let one = albums("");
    check(Aside::Task.built_in(), &one, &golden("task"));
    let mut two = albums("");
    two.tasks.current.push(task(
        "T006",
        "Add the empty page in src/empty.ts\n  - says how to begin",
        &["US1", "US2"],
    ));
    check(Aside::Task.built_in(), &two, &golden("task_group"));
    check(Aside::Child.built_in(), &one, &golden("child_alone"));
    two.tasks.beside = two.tasks.current.split_off(1);
    two.tasks.beside.push(task("T007", "Add dates in src/dates.ts", &[]));
    check(Aside::Child.built_in(), &two, &golden("child"));
}

#[test]
fn an_answer_goes_where_its_command_wants_it() {
    let said = |command: &str, answer: &str, left| Facts {
        command: command.to_owned(),
        answer: AnswerFacts {
            question: "May an album hold albums?".to_owned(),
            answer: answer.to_owned(),
            left,
        },
        ..albums("")
    };
    check(Aside::Answer.built_in(), &said("/speckit.clarify", "B, never", 3), &golden("answer_clarify"));
    check(Aside::Answer.built_in(), &said("/speckit.specify", "No {{7*7}}", 0), &golden("answer_last"));
    check(Aside::Answer.built_in(), &said("/speckit.checklist", "", 2), &golden("answer_none"));
}

#[test]
fn what_a_check_found_is_named_and_a_name_is_asked_for() {
    let mut facts = albums("Photos in albums");
    facts.command = "/speckit.plan".to_owned();
    facts.problems =
        vec!["plan.md:12: **Storage** is not filled".to_owned(), "research.md: is missing".to_owned()];
    check(Aside::Repair.built_in(), &facts, &golden("repair"));
    check(Aside::ShortName.built_in(), &facts, &golden("short_name"));
}

#[test]
fn no_prompt_fails_where_nothing_is_known_but_the_task_for_a_child() {
    let facts = Facts::default();
    let sources = Command::ALL.map(built_in).into_iter().chain(Aside::ALL.map(Aside::built_in));
    let failed = sources.filter(|source| render(source, PromptKind::Jinja, &facts).is_err());
    assert_eq!(failed.collect::<Vec<_>>(), [Aside::Child.built_in()]);
}

#[test]
fn the_page_for_requirements_has_its_sixteen_items() {
    let page = include_str!("../../../prompts/pages/requirements-template.md");
    let groups = page.split("\n## ").skip(1).map(|group| group.matches("\n- [ ] ").count());
    assert_eq!(groups.collect::<Vec<_>>(), [4, 8, 4, 0]);
}

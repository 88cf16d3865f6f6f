//! `/speckit.constitution`: the principles of the project.

use crate::check::read_or_empty;
use crate::lint::check_constitution;
use crate::step_definition::{BASE_STEP, StepDefinition};
use crate::step_layout::StepLayout;
use crate::write_rules::{FEATURE_PAGES, ProtectedPath, WriteRules};
use crate::{WorkflowCommand, init_project};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Constitution,
    description: "Set or amend the project's ground rules",
    argument_hint: "principles to adopt or change",
    check_layout: |request| (request.pages)("constitution-template").map(drop),
    lay_out: |request| {
        let created = init_project(request.project, request.pages)?;
        Ok(StepLayout { feature: request.feature.cloned(), created, notes: Vec::new() })
    },
    crow_file: |project, _| Some(project.constitution_path()),
    writes: WriteRules {
        refuse: |target| (!target.is_constitution).then_some("the constitution only"),
        protected: &[ProtectedPath::Templates],
        ..FEATURE_PAGES
    },
    prompt: include_str!("../../prompts/speckit_constitution.jinja2"),
    template: Some("constitution-template"),
    questions_max: 3,
    check: |files, problems| {
        let text = read_or_empty(&files.project.constitution_path())?;
        let old = files.baseline.constitution.as_deref();
        problems.add_problems("constitution.md", check_constitution(old, &text));
        Ok(())
    },
    repairs_max: 2,
    summarize: |files, _| {
        let path = files.project.constitution_path();
        let text = read_or_empty(&path)?;
        let version = text.lines().rev().find(|line| line.contains("**Version**"));
        let version = version.unwrap_or("no version line");
        Ok(vec![format!("{}: {version}", files.project.display_path(&path))])
    },
    next: &[WorkflowCommand::Specify],
    ..BASE_STEP
};

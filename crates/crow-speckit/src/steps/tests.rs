use expect_test::expect;

use super::step_definition;
use crate::{FeatureUse, StepWork, WorkflowCommand};

#[test]
fn definitions_are_complete() {
    for command in WorkflowCommand::ALL {
        let definition = step_definition(command);
        assert_eq!(definition.command, command);
        assert!(!definition.description.is_empty() && !definition.argument_hint.is_empty(), "{command}");
        assert!(definition.prompt.contains("{%") || definition.prompt.contains("{{"), "{command}");
        // A step without a check has nothing to repair.
        assert!(definition.work == StepWork::Pages || definition.repairs_max == 0, "{command}");
    }
}

#[test]
fn definitions_differ_in_what_they_need_and_offer() {
    let rows = WorkflowCommand::ALL.map(|command| {
        let step = step_definition(command);
        let next: Vec<String> = step.next.iter().map(ToString::to_string).collect();
        let needs = match step.feature {
            FeatureUse::Unused => vec!["no feature"],
            FeatureUse::Creates => vec!["a new feature"],
            FeatureUse::Needs(prerequisites) => prerequisites.iter().map(|needed| needed.page).collect(),
        };
        format!(
            "{command}: {}, {:?}, tool {:?}, questions {}, repairs {}, next {}\n",
            needs.join(" "),
            step.work,
            step.tool,
            step.questions_max,
            step.repairs_max,
            next.join(" ")
        )
    });
    expect![[r#"
        /speckit.constitution: no feature, Pages, tool None, questions 3, repairs 2, next /speckit.specify
        /speckit.specify: a new feature, Pages, tool None, questions 3, repairs 1, next /speckit.clarify /speckit.plan
        /speckit.clarify: spec.md, Pages, tool None, questions 5, repairs 1, next /speckit.plan
        /speckit.plan: spec.md, Pages, tool None, questions 0, repairs 2, next /speckit.tasks /speckit.checklist
        /speckit.checklist: plan.md, Pages, tool None, questions 5, repairs 1, next /speckit.tasks
        /speckit.tasks: plan.md spec.md, Pages, tool None, questions 0, repairs 2, next /speckit.analyze /speckit.implement
        /speckit.analyze: plan.md spec.md tasks.md, Pages, tool None, questions 0, repairs 0, next /speckit.implement
        /speckit.implement: plan.md tasks.md, Tasks, tool Some(ReportTask), questions 0, repairs 0, next /speckit.converge
        /speckit.converge: plan.md spec.md tasks.md, Pages, tool Some(ReportGaps), questions 0, repairs 1, next /speckit.implement
        /speckit.taskstoissues: plan.md tasks.md, Issues, tool None, questions 0, repairs 0, next /speckit.implement
    "#]].assert_eq(&rows.concat());
}

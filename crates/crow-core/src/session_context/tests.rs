use expect_test::{Expect, expect};

use super::*;
use crate::{Compaction, MessageId, NetworkAccess, SandboxMode, TranscriptEntry};

const SYSTEM: &str = "Be good. `crow:environment` says where.";

fn facts() -> EnvironmentFacts {
    EnvironmentFacts {
        working_directory: "/p".to_owned(),
        additional_directories: Vec::new(),
        platform: "linux".to_owned(),
        date: "2026-01-02".to_owned(),
        mode: Mode::Ask,
        shell: "bash".to_owned(),
        sandbox: SandboxMode::Off.describe_limits(NetworkAccess::Allowed),
        is_brief: false,
    }
}

/// Appends a prompt with what the model does not know, and returns that.
fn tell(transcript: &mut Transcript, environment: &EnvironmentFacts, instructions: &str) -> String {
    let told: Vec<ContentPart> = instructions_part(transcript, instructions)
        .into_iter()
        .chain(environment_part(transcript, environment, "Git branch: main"))
        .collect();
    let shown: Vec<String> = told
        .iter()
        .map(|part| {
            let kind = part.crow_part().unwrap();
            format!("[{kind}] {}\n", Prompt { id: MessageId::new(""), parts: vec![part.clone()] }.text())
        })
        .collect();
    let parts = told.into_iter().chain([ContentPart::Text("go".to_owned())]).collect();
    let id = MessageId::from_seq(transcript.next_seq());
    transcript.push(TranscriptEntry::Prompt(Prompt { id, parts })).unwrap();
    shown.concat()
}

/// Compares what is told about each state in turn.
#[track_caller]
fn check(states: &[(EnvironmentFacts, &str)], told: &Expect) {
    let mut transcript = Transcript::new(SYSTEM);
    let lines: Vec<String> = states
        .iter()
        .map(|(environment, instructions)| format!("> {}", tell(&mut transcript, environment, instructions)))
        .collect();
    told.assert_eq(&lines.join("\n"));
}

#[test]
fn context_is_told_once_and_then_its_changes() {
    let next_day = EnvironmentFacts { date: "2026-01-03".to_owned(), ..facts() };
    let plan = EnvironmentFacts { mode: Mode::Plan, ..next_day.clone() };
    let more = EnvironmentFacts { additional_directories: vec!["/q".to_owned()], ..plan.clone() };
    let moved = EnvironmentFacts { working_directory: "/r".to_owned(), ..plan.clone() };
    check(
        &[
            (facts(), "Be brief."),
            (facts(), "Be brief."),
            (next_day, "Be brief."),
            (plan.clone(), "Be brief."),
            (more, "Be long."),
            (plan, "Be long."),
            (moved.clone(), ""),
            (moved.clone(), ""),
            (moved, "Be back."),
        ],
        &expect![[r#"
            > [instructions] Instructions of the user and the project. A later one of them takes precedence.

            Be brief.
            [environment] Working directory: /p
            Date: 2026-01-02
            Permission mode: ask (reads freely, asks before it changes or runs anything)
            Platform: linux
            Shell: bash
            Sandbox: none; commands may do what the user may
            Git branch: main

            > 
            > [environment] Date: 2026-01-03

            > [environment] Permission mode: plan (reads only)

            > [instructions] The instructions have changed. These replace all earlier ones.

            Be long.
            [environment] Additional directories: /q

            > [environment] Additional directories: none

            > [instructions] The earlier instructions do not apply any more: their files are gone.
            [environment] Working directory: /r
            Date: 2026-01-03
            Permission mode: plan (reads only)
            Platform: linux
            Shell: bash
            Sandbox: none; commands may do what the user may
            Git branch: main

            > 
            > [instructions] The instructions have changed. These replace all earlier ones.

            Be back.
        "#]],
    );
}

#[test]
fn small_model_is_told_of_more_directories_and_the_mode_plan_only() {
    let brief = EnvironmentFacts { is_brief: true, ..facts() };
    let more = EnvironmentFacts { additional_directories: vec!["/q".to_owned()], ..brief.clone() };
    let plan = EnvironmentFacts { mode: Mode::Plan, ..more.clone() };
    let auto = EnvironmentFacts { mode: Mode::Auto, ..more.clone() };
    let large = EnvironmentFacts { is_brief: false, ..more.clone() };
    check(
        &[(brief, ""), (more, ""), (plan, ""), (auto, ""), (large, "")],
        &expect![[r#"
            > 
            > [environment] Additional directories: /q

            > [environment] Permission mode: plan (reads only)

            > [environment] Permission mode: auto (does everything without asking)

            > [environment] Working directory: /p
            Additional directories: /q
            Date: 2026-01-02
            Permission mode: ask (reads freely, asks before it changes or runs anything)
            Platform: linux
            Shell: bash
            Sandbox: none; commands may do what the user may
            Git branch: main
        "#]],
    );
}

#[test]
fn system_prompt_that_has_the_facts_itself_gets_no_parts() {
    let mut transcript = Transcript::new("You work in /p.");
    assert_eq!(tell(&mut transcript, &facts(), "Be brief."), "");
}

#[test]
fn compaction_keeps_the_context_before_its_summary() {
    let mut transcript = Transcript::new(SYSTEM);
    tell(&mut transcript, &facts(), "Be brief.");
    let first_prompt = transcript.prompts().next().cloned().unwrap();
    tell(&mut transcript, &EnvironmentFacts { mode: Mode::Plan, ..facts() }, "Be brief.");
    let compaction = |transcript: &Transcript, summary: Option<&str>| Compaction {
        at_seq: transcript.next_seq(),
        keep_from: transcript.next_seq(),
        verbatim_prompts: Vec::new(),
        summary: summary.map(str::to_owned),
        pruned: Vec::new(),
        tokens_before: 9,
        tokens_after: 5,
        began_ms: 0,
    };
    for _ in 0..2 {
        transcript.compact(compaction(&transcript, Some("Notes."))).unwrap();
        let summary_message = transcript.prompts().next().unwrap();
        assert_eq!(summary_message.parts[..2], first_prompt.parts[..2]);
        assert_eq!(summary_message.parts.len(), 3);
        // The change is told again.
        let told = tell(&mut transcript, &EnvironmentFacts { mode: Mode::Plan, ..facts() }, "Be brief.");
        assert_eq!(told, "[environment] Permission mode: plan (reads only)\n");
    }
    transcript.compact(compaction(&transcript, None)).unwrap();
    assert!(
        transcript.prompts().next().is_none(),
        "`/clear` removes all, and the next prompt tells it again"
    );
    assert!(needs_environment(&transcript, &facts()));
}

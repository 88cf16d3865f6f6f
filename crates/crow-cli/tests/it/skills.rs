//! The user's own skills, prompt files and instructions in the views of model and client.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, replay};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// The user's files in the configuration directory and in the project.
const FILES: &[(&str, &str)] = &[
    (".crow/AGENTS.md", "Be brief."),
    (".crow/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships the site.\n---\nRun ship.sh.\n"),
    (".crow/skills/deploy/ship.sh", "echo shipped\n"),
    (
        ".crow/prompts/review.md",
        "---\ndescription: Reviews a file.\nargument-hint: FILE\n---\nReview $1 for $2.\n",
    ),
    (".crow/prompts/help.md", "Not this."),
    ("project/sub/AGENTS.md", "The part."),
];

/// Runs one prompt with these files; `shown` selects the compared part.
#[track_caller]
fn check(script: &str, text: &str, shown: impl Fn(&FakeClient, &[Value]) -> String, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let model = ModelServer::start(script);
        let world = TestHome::new(model.base_url());
        for (name, text) in FILES {
            let path = world.home().join(name);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        }
        let mut client =
            FakeClient::start_with(binary, &world.home(), json!({"session": {"notices": {}}})).await;
        client.permission_answers.push_back("reject_once".into());
        let session = client.new_session(&world.project()).await;
        let id = client.prompt(&session, text).await;
        client.response_to(id).await.expect("the turn ends");
        let home = world.home().display().to_string();
        let requests = model.requests();
        expected.assert_eq(&shown(&client, &requests).replace(&home, "$HOME"));
        assert_eq!(model.rejections(), Vec::<String>::new(), "the model refused a request");
        if !requests.is_empty() {
            let mut second =
                FakeClient::start_with(binary, &world.home(), json!({"session": {"notices": {}}})).await;
            second.load_session(&session, &world.project()).await.expect("the session loads");
            replay::check(&session, &client, &second);
        }
    });
}

fn said(requests: &[Value], role: &str) -> String {
    let last = requests.last().cloned().unwrap_or_default();
    let messages = last["messages"].as_array().into_iter().flatten();
    let said = messages.filter(|message| message["role"] == role);
    said.map(|message| format!("{}\n", message["content"].as_str().unwrap_or_default())).collect()
}

#[test]
fn first_prompt_has_instructions_and_skills() {
    check(
        "text \"Hello.\"",
        "hello",
        |_, requests| said(requests, "user"),
        &expect![[r#"
            <resource uri="crow:instructions">
            Instructions of the user and the project. A later one of them takes precedence.

            Be brief.
            </resource>
            <resource uri="crow:skills">
            Skills. When the work fits a description, read the file first and follow it; paths in it start in its folder.
            - deploy: Ships the site. ($HOME/.crow/skills/deploy/SKILL.md)
            </resource>
            hello
        "#]],
    );
}

#[test]
fn skill_is_read_without_permission_and_the_configuration_is_not() {
    check(
        "call read {\"file_path\":\"../.crow/skills/deploy/ship.sh\"}\ncall read {\"file_path\":\"../.crow/config.yaml\"}\ntext \"Done.\"",
        "ship it",
        |client, _| client.log(),
        &expect![[r#"
            < notice warning "/help is a command of Crow's own; rename the file or the skill." ""
            < call call-1-0 read "Read $HOME/.crow/skills/deploy/ship.sh" pending {"file_path":"../.crow/skills/deploy/ship.sh"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\techo shipped\n"
            < call call-3-0 read "Read $HOME/.crow/config.yaml" pending {"file_path":"../.crow/config.yaml"}
            ? Read $HOME/.crow/config.yaml [allow_once, reject_once, reject_and_tell] -> reject_once
            < call call-3-0 failed "not run: the user rejected it"
            < text[msg-5] Done.
            < title ship it
        "#]],
    );
}

#[test]
fn command_expands_to_its_text_with_its_arguments() {
    check(
        "text \"Done.\"",
        "/review 'a b.rs'\nspeed",
        |_, requests| said(requests, "user"),
        &expect![[r#"
            <resource uri="crow:instructions">
            Instructions of the user and the project. A later one of them takes precedence.

            Be brief.
            </resource>
            <resource uri="crow:skills">
            Skills. When the work fits a description, read the file first and follow it; paths in it start in its folder.
            - deploy: Ships the site. ($HOME/.crow/skills/deploy/SKILL.md)
            </resource>
            /review 'a b.rs'
            speed
            <resource uri="crow:command/review">
            The command /review stands for this:

            Review a b.rs for speed.
            </resource>
        "#]],
    );
}

#[test]
fn skill_is_a_command_as_well() {
    check(
        "text \"Done.\"",
        "/deploy to staging",
        |_, requests| said(requests, "user"),
        &expect![[r#"
            <resource uri="crow:instructions">
            Instructions of the user and the project. A later one of them takes precedence.

            Be brief.
            </resource>
            <resource uri="crow:skills">
            Skills. When the work fits a description, read the file first and follow it; paths in it start in its folder.
            - deploy: Ships the site. ($HOME/.crow/skills/deploy/SKILL.md)
            </resource>
            /deploy to staging
            <resource uri="crow:command/deploy">
            The command /deploy asks for this skill. Paths in it start in $HOME/.crow/skills/deploy.

            Run ship.sh.

            to staging
            </resource>
        "#]],
    );
}

#[test]
fn text_that_resembles_a_command_is_a_prompt() {
    check(
        "text \"Done.\"",
        "/etc/hosts is broken",
        |_, requests| said(requests, "user"),
        &expect![[r#"
            <resource uri="crow:instructions">
            Instructions of the user and the project. A later one of them takes precedence.

            Be brief.
            </resource>
            <resource uri="crow:skills">
            Skills. When the work fits a description, read the file first and follow it; paths in it start in its folder.
            - deploy: Ships the site. ($HOME/.crow/skills/deploy/SKILL.md)
            </resource>
            /etc/hosts is broken
        "#]],
    );
}

#[test]
fn help_lists_skills_and_built_in_names_stay() {
    check(
        "",
        "/help",
        |client, _| {
            let mut offers = client.updates.iter().map(|(_, update)| &update["availableCommands"]);
            let last = offers.rfind(|offer| offer.is_array()).cloned().unwrap_or(json!([]));
            let offered = last.as_array().into_iter().flatten().map(|command| {
                format!("/{} {} {}\n", command["name"], command["description"], command["input"]["hint"])
            });
            format!("{}\n{}", client.log(), offered.collect::<String>())
        },
        &expect![[r#"
            < notice warning "/help is a command of Crow's own; rename the file or the skill." ""
            < text[note-1] - `/help`: Show the commands⏎- `/context`: Show what takes how much of the context⏎- `/compact` `what to pay attention to, or undo for the last one`: Compact the context⏎- `/clear`: Clear the context; the session keeps its messages⏎- `/mode` `ask | accept-edits | plan | auto`: Show or change how much Crow may do on its own⏎- `/model` `name of a configured model`: Show or change the model⏎- `/sessions`: Show the newest sessions of this directory⏎- `/tasks`: Show the tasks of this session and their results⏎- `/stop`: Stop the running turn and the tasks⏎- `/trust` `yes | session | no`: Show what this repository would run, and trust it or not⏎- `/permissions` `remove N | clear`: Show and remove stored permissions⏎- `/undo` `N | --dry-run | skip`: Undo the file changes of the last turn, or of the last N⏎- `/speckit.constitution` `principles to adopt or change`: Set or amend the project's ground rules⏎- `/speckit.specify` `what to build and why`: Start a feature: turn an idea into a specification⏎- `/speckit.clarify` `area to focus on (optional)`: Clarify open questions of the current spec, one at a time⏎- `/speckit.plan` `stack and technical limits`: Design how the current spec will be built⏎- `/speckit.checklist` `topic, e.g. security`: Create a checklist to review the requirements⏎- `/speckit.tasks` `preferences for the breakdown (optional)`: Break the plan into ordered tasks⏎- `/speckit.analyze` `focus (optional)`: Cross-check spec, plan and tasks without changing files⏎- `/speckit.implement` `phase, story or task ids (optional)`: Work through the task list⏎- `/speckit.converge` `focus (optional)`: Compare the code with the spec and add missing tasks⏎- `/speckit.taskstoissues` `phase, story or task ids (optional)`: Create a GitHub issue for each open task, with your GitHub MCP server⏎- `/speckit` `status | use 002 | init | templates | doctor`: Show the state of the Spec Kit workflow⏎- `/review` `FILE`: Reviews a file.⏎- `/deploy`: Ships the site.⏎

            /"help" "Show the commands" null
            /"context" "Show what takes how much of the context" null
            /"compact" "Compact the context" "what to pay attention to, or undo for the last one"
            /"clear" "Clear the context; the session keeps its messages" null
            /"mode" "Show or change how much Crow may do on its own" "ask | accept-edits | plan | auto"
            /"model" "Show or change the model" "name of a configured model"
            /"sessions" "Show the newest sessions of this directory" null
            /"tasks" "Show the tasks of this session and their results" null
            /"stop" "Stop the running turn and the tasks" null
            /"trust" "Show what this repository would run, and trust it or not" "yes | session | no"
            /"permissions" "Show and remove stored permissions" "remove N | clear"
            /"undo" "Undo the file changes of the last turn, or of the last N" "N | --dry-run | skip"
            /"speckit.constitution" "Set or amend the project's ground rules" "principles to adopt or change"
            /"speckit.specify" "Start a feature: turn an idea into a specification" "what to build and why"
            /"speckit.clarify" "Clarify open questions of the current spec, one at a time" "area to focus on (optional)"
            /"speckit.plan" "Design how the current spec will be built" "stack and technical limits"
            /"speckit.checklist" "Create a checklist to review the requirements" "topic, e.g. security"
            /"speckit.tasks" "Break the plan into ordered tasks" "preferences for the breakdown (optional)"
            /"speckit.analyze" "Cross-check spec, plan and tasks without changing files" "focus (optional)"
            /"speckit.implement" "Work through the task list" "phase, story or task ids (optional)"
            /"speckit.converge" "Compare the code with the spec and add missing tasks" "focus (optional)"
            /"speckit.taskstoissues" "Create a GitHub issue for each open task, with your GitHub MCP server" "phase, story or task ids (optional)"
            /"speckit" "Show the state of the Spec Kit workflow" "status | use 002 | init | templates | doctor"
            /"review" "Reviews a file." "FILE"
            /"deploy" "Ships the site." null
        "#]],
    );
}

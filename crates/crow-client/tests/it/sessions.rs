//! Sessions: options, resuming, loading.

use expect_test::expect;

use crate::world::{error_text, fake_agent, run, show};

#[test]
fn option_is_set_by_its_category() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let agent = fake_agent(directory.path(), &["options"]).start().await.unwrap();
        let mut session = agent.new_session().await.unwrap();
        session.set_option("model", "large").await.unwrap();
        let values: Vec<&str> = session.options().iter().map(|option| option.current.as_str()).collect();
        assert_eq!(values, ["ask", "large"]);
        expect!["there is no such choice"].assert_eq(&error_text(session.set_option("model", "huge").await));
    });
}

#[test]
fn session_is_loaded_with_its_replay() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(async {
        let agent = fake_agent(directory.path(), &[]).start().await.unwrap();
        let replay = agent.load_session("brave-otter").await.unwrap();
        format!("{:?}\n{}\n{}", replay.updates, replay.session.id(), show(replay.session.prompt("go")).await)
    });
    expect![[r#"
        [Prompt("hello"), Text("echo: hello")]
        brave-otter
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        end EndTurn text="echo: go" answer="" tokens=None context=None
    "#]]
    .assert_eq(&shown);
}

#[test]
fn session_is_resumed_without_its_replay() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(async {
        let agent = fake_agent(directory.path(), &[]).start().await.unwrap();
        let session = agent.resume_session("brave-otter").await.unwrap();
        session.prompt("go").finish().await.unwrap().text
    });
    assert_eq!(shown, "echo: go");
}

#[test]
fn agent_without_stored_sessions_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let errors = run(async {
        let agent = fake_agent(directory.path(), &["no-load"]).start().await.unwrap();
        let resumed = error_text(agent.resume_session("brave-otter").await);
        let loaded = error_text(agent.load_session("brave-otter").await);
        format!("{resumed}\n{loaded}\n{}\n", error_text(agent.list_sessions().await))
    });
    expect![[r#"
        this agent cannot resume a session; start a new one
        Method not found
        Method not found
    "#]]
    .assert_eq(&errors);
}

//! A directory, a fake agent in it, and events as lines.

use std::path::Path;
use std::time::Duration;

use crow_client::{Agent, AgentError, AgentOptions, AgentTurn, ProgramSource, ToolCallChange, TurnEvent};
use crow_testkit::agent::command;
use expect_test::Expect;

/// A test waits for events; what takes longer does not come.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Returns the options of a fake agent in a directory; `$CWD` in a behavior is the directory.
#[track_caller]
pub(crate) fn fake_agent(directory: &Path, behaviors: &[&str]) -> AgentOptions<ProgramSource> {
    let cwd = directory.display().to_string();
    let behaviors: Vec<String> = behaviors.iter().map(|word| word.replace("$CWD", &cwd)).collect();
    let behaviors: Vec<&str> = behaviors.iter().map(String::as_str).collect();
    let (program, args) = command(&behaviors);
    Agent::program(program, args).cwd(directory).env("A", "of the test").env_remove("NONE")
}

/// Runs a future to its end, within a time limit.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIME_MAX, future).await.expect("it ends in time") })
}

/// Runs one prompt and shows its events, with `$CWD` for the directory.
#[track_caller]
pub(crate) fn check(
    behaviors: &[&str],
    configure: impl FnOnce(AgentOptions<ProgramSource>) -> AgentOptions<ProgramSource>,
    expected: &Expect,
) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\ntwo\n").unwrap();
    let options = configure(fake_agent(directory.path(), behaviors));
    let shown = run(async {
        let agent = match options.start().await {
            Ok(agent) => agent,
            Err(error) => return format!("not started: {error}\n"),
        };
        let shown = match agent.new_session().await {
            Ok(session) => show(session.prompt("go")).await,
            Err(error) => format!("no session: {error}\n"),
        };
        agent.shut_down().await;
        shown
    });
    expected.assert_eq(&hide_directory(&shown, directory.path()));
}

pub(crate) fn hide_directory(text: &str, directory: &Path) -> String {
    let resolved = directory.canonicalize().unwrap();
    let names = [resolved.display().to_string(), directory.display().to_string()];
    let program = command(&[]).0;
    names.iter().fold(text.replace(&program, "$AGENT"), |text, name| text.replace(name, "$CWD"))
}

/// Reads a turn to its end, a line for each event.
pub(crate) async fn show(mut turn: AgentTurn) -> String {
    let mut shown = String::new();
    loop {
        match turn.next_event().await {
            Ok(Some(event)) => shown += &format!("{}\n", describe(&event)),
            Ok(None) => return shown,
            Err(error) => shown += &format!("error: {error}\n"),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the rest is shown as it is")]
pub(crate) fn describe(event: &TurnEvent) -> String {
    match event {
        TurnEvent::Text(text) => format!("text {text:?}"),
        TurnEvent::ToolStarted(call) => format!("started {}", describe_call(call)),
        TurnEvent::ToolUpdated(call) => format!("updated {}", describe_call(call)),
        TurnEvent::End(outcome) => format!(
            "end {:?} text={:?} answer={:?} tokens={:?} context={:?}",
            outcome.stop_reason,
            outcome.text,
            outcome.answer(),
            outcome.tokens_spent,
            outcome.context.map(|context| (context.used, context.size)),
        ),
        other => format!("{other:?}"),
    }
}

fn describe_call(call: &ToolCallChange) -> String {
    let content = call.content.as_ref().map(Vec::len);
    format!("{} {:?} {:?} {:?} content={content:?}", call.id, call.title, call.kind, call.status)
}

/// Returns the text of the error of a result.
pub(crate) fn error_text<T>(result: Result<T, AgentError>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

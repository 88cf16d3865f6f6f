//! Lets an agent edit files and nothing else, and shows what it does: `edit_only PROMPT [PROGRAM ARGUMENTS...]`, by
//! default `crow-cli acp`. The exit code is 1 if the turn did not end by itself.
#![expect(clippy::print_stdout, reason = "it is a program")]
#![expect(clippy::wildcard_enum_match_arm, reason = "most events are not shown")]

use std::process::ExitCode;
use std::time::Duration;

use crow_client::{Agent, AgentError, PermissionChoice, StopReason, ToolKind, TurnEvent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, AgentError> {
    let mut words = std::env::args().skip(1);
    let prompt = words.next().unwrap_or_else(|| "Fix the spelling in README.md".to_owned());
    let (program, args) = match words.next() {
        Some(program) => (program, words.collect()),
        None => ("crow-cli".to_owned(), vec!["acp".to_owned()]),
    };

    let agent = Agent::program(program, args)
        .on_permission(|request| async move {
            match request.kind == ToolKind::Edit {
                true => PermissionChoice::AllowOnce,
                false => PermissionChoice::RejectOnce,
            }
        })
        .terminals(false)
        .turn_timeout(Duration::from_secs(600))
        .start()
        .await?;
    let session = agent.new_session().await?;
    let mut turn = session.prompt(prompt);
    let mut stop_reason = StopReason::Cancelled;
    while let Some(event) = turn.next_event().await? {
        match event {
            TurnEvent::Text(text) => println!("says: {text}"),
            TurnEvent::ToolStarted(call) => println!("calls: {}", call.title.unwrap_or_default()),
            TurnEvent::End(outcome) => stop_reason = outcome.stop_reason,
            _ => {}
        }
    }
    agent.shut_down().await;
    Ok(ExitCode::from(u8::from(stop_reason != StopReason::EndTurn)))
}

//! Asks an agent one question and prints its answer: `ask QUESTION [PROGRAM ARGUMENTS...]`, by default `crow-cli acp`.
#![expect(clippy::print_stdout, reason = "it is a program")]

use crow_client::{Agent, AgentError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AgentError> {
    let mut words = std::env::args().skip(1);
    let question = words.next().unwrap_or_else(|| "What does this project do?".to_owned());
    let (program, args) = match words.next() {
        Some(program) => (program, words.collect()),
        None => ("crow-cli".to_owned(), vec!["acp".to_owned()]),
    };

    let agent = Agent::program(program, args).start().await?;
    let outcome = agent.new_session().await?.prompt(question).finish().await?;
    println!("{}", outcome.text);
    Ok(())
}

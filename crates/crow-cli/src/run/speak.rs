//! What the person types: prompts and answers to questions.

use std::io::{self, BufRead, IsTerminal, Write};

use crow_acp::PermissionQuestion;

use crate::failure::{Code, Exit};

/// A line the person typed.
#[derive(Debug)]
pub(super) enum Spoken {
    /// Something to do.
    Line(String),
    /// The end of what they have to say.
    End,
}

/// An answer to a question.
#[derive(Debug)]
pub(super) enum Listen {
    /// The id of a choice.
    Chosen(String),
    /// There is no terminal to ask on.
    Nobody,
}

/// Reads the next prompt, skipping empty lines.
pub(super) async fn read_prompt() -> Result<Spoken, Exit> {
    blocking(|| {
        loop {
            let Some(line) = prompt_line("› ")? else { return Ok(Spoken::End) };
            if !line.trim().is_empty() {
                return Ok(Spoken::Line(line));
            }
        }
    })
    .await
}

/// Asks the person whether a call may run.
pub(super) async fn ask(question: &PermissionQuestion) -> Result<Listen, Exit> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(Listen::Nobody);
    }
    let (title, choices) = (question.title.clone(), question.choices.clone());
    blocking(move || {
        let shown =
            choices.iter().enumerate().map(|(index, choice)| format!("{} {}", index + 1, choice.name));
        let shown = shown.collect::<Vec<_>>().join(" · ");
        writeln!(io::stderr(), "May Crow do this? {title}")?;
        loop {
            let Some(line) = prompt_line(&format!("  {shown} › "))? else { return Ok(Listen::Nobody) };
            let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            if let Some(choice) = number.and_then(|index| choices.get(index)) {
                return Ok(Listen::Chosen(choice.id.clone()));
            }
        }
    })
    .await
}

fn prompt_line(mark: &str) -> io::Result<Option<String>> {
    if io::stderr().is_terminal() {
        let mut err = io::stderr().lock();
        write!(err, "{mark}")?;
        err.flush()?;
    }
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned())),
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Exit> {
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(Exit::new(Code::Failed, format!("could not read what was typed: {error}"))),
        Err(error) => Err(Exit::new(Code::Failed, error.to_string())),
    }
}

//! Built-in prompts and the rendering of prompts. User input and file contents are values, never template source.

mod built_in;
mod facts;

use std::io::{self, Write};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use crate::SpeckitError;

pub use built_in::AuxiliaryPrompt;
pub use facts::{
    AnswerFacts, ChecklistFacts, ConstitutionFacts, ConstitutionState, FeatureFacts, IssueFacts, LimitFacts,
    PathFacts, PhaseFacts, PromptFacts, TaskFacts, TasksFacts,
};

/// The longest built-in prompt takes under a thousand steps; a thousand phases and a loop over them take about ten
/// thousand.
const FUEL_MAX: u64 = 50_000;

/// About 128,000 tokens: a longer prompt leaves most models no room to work.
const PROMPT_BYTES_MAX: usize = 512 * 1024;

/// Placeholders for the arguments in prompts written for other programs.
const MARKDOWN_ARGS: [&str; 2] = ["$ARGUMENTS", "{ARGS}"];

/// The format of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A Jinja template.
    Jinja,
    /// Text with placeholders for the arguments only.
    Markdown,
}

/// Renders a prompt. The source must be trusted: the number of steps and the length of the result are limited, but the
/// memory in between is not.
pub fn render_prompt(source: &str, kind: PromptKind, facts: &PromptFacts) -> Result<String, SpeckitError> {
    let mut buffer = PromptBuffer { bytes: Vec::new(), is_full: false };
    let result = match kind {
        PromptKind::Jinja => write_jinja(source, facts, &mut buffer),
        PromptKind::Markdown => {
            write_markdown(source, &facts.args, &mut buffer).map_err(|error| error.to_string())
        }
    };
    if buffer.is_full {
        return Err(SpeckitError::Invalid(format!(
            "the prompt would have more than {PROMPT_BYTES_MAX} bytes; shorten the template or the arguments"
        )));
    }
    result
        .map_err(|reason| SpeckitError::Invalid(format!("the prompt template does not render: {reason}")))?;
    String::from_utf8(buffer.bytes)
        .map_err(|_| SpeckitError::Invalid("the prompt template does not render to text".to_owned()))
}

fn write_jinja(source: &str, facts: &PromptFacts, buffer: &mut PromptBuffer) -> Result<(), String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL_MAX));
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    let values = minijinja::value::Serde(facts);
    environment
        .template_from_named_str("prompt", source)
        .and_then(|template| template.render_captured_to(values, buffer))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Inserts the arguments in one pass, so that arguments that look like a placeholder stay as they are.
fn write_markdown(source: &str, args: &str, buffer: &mut PromptBuffer) -> io::Result<()> {
    let mut rest = source;
    loop {
        let next_placeholder = MARKDOWN_ARGS
            .iter()
            .filter_map(|placeholder| Some((rest.find(placeholder)?, placeholder.len())))
            .min();
        let Some((offset, n_bytes)) = next_placeholder else {
            return buffer.write_all(rest.as_bytes());
        };
        buffer.write_all(&rest.as_bytes()[..offset])?;
        buffer.write_all(args.as_bytes())?;
        rest = &rest[offset + n_bytes..];
    }
}

/// A buffer limited to the length of a prompt.
struct PromptBuffer {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for PromptBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + data.len() > PROMPT_BYTES_MAX {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! The parts of prompts that tell the model about the session: instructions of the project, and the environment. The system
//! prompt and the tools are equal in all sessions, so that a provider finds them in its cache; the rest follows in the
//! first prompt, and changes are appended. A part that was sent is never rewritten.

use crate::{ContentPart, CrowPart, Mode, ModelStep, ModelTranscript, Prompt, Transcript};

/// A system prompt with this word explains the parts; another one contains the facts itself.
const PARTS_MARK: &str = "crow:environment";

const WORKING_DIRECTORY: &str = "Working directory";
const MORE_DIRECTORIES: &str = "Additional directories";
const DATE: &str = "Date";
const MODE: &str = "Permission mode";
const PLATFORM: &str = "Platform";
const SHELL: &str = "Shell";
const SANDBOX: &str = "Sandbox";

/// The value of a fact that ended.
const NONE: &str = "none";

/// Separates the heading of instructions from their text.
const PARAGRAPH: &str = "\n\n";

const FIRST_INSTRUCTIONS: &str =
    "Instructions of the user and the project. A later one of them takes precedence.";
const CHANGED_INSTRUCTIONS: &str = "The instructions have changed. These replace all earlier ones.";
const ENDED_INSTRUCTIONS: &str = "The earlier instructions do not apply any more: their files are gone.";

/// The environment of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// The working directory, as one line.
    pub working_directory: String,
    /// The additional directories, as one line each.
    pub additional_directories: Vec<String>,
    /// The operating system.
    pub platform: String,
    /// Today's date.
    pub date: String,
    pub mode: Mode,
    /// The name of the shell that runs commands.
    pub shell: String,
    /// The limits of commands, as one line.
    pub sandbox: String,
    /// Whether the model is told only of additional directories and the mode `plan`: small models repeat their calls if a
    /// prompt has more than the request.
    pub is_brief: bool,
}

impl EnvironmentFacts {
    /// Returns the facts that are told once, by their names.
    fn fixed_facts(&self) -> [(&'static str, String); 3] {
        [(PLATFORM, self.platform.clone()), (SHELL, self.shell.clone()), (SANDBOX, self.sandbox.clone())]
    }

    /// Returns the facts that may change, by their names.
    fn changing_facts(&self, transcript: &Transcript) -> Vec<(&'static str, String)> {
        let more_directories = match self.additional_directories.as_slice() {
            [] => NONE.to_owned(),
            directories => directories.join(", "),
        };
        let mode = format!("{} ({})", self.mode.as_str(), self.mode.description());
        if self.is_brief {
            let is_mode_told = self.mode == Mode::Plan || find_fact(transcript, MODE).is_some();
            let mode = if is_mode_told { mode } else { NONE.to_owned() };
            return vec![(MORE_DIRECTORIES, more_directories), (MODE, mode)];
        }
        vec![
            (WORKING_DIRECTORY, self.working_directory.clone()),
            (MORE_DIRECTORIES, more_directories),
            (DATE, self.date.clone()),
            (MODE, mode),
        ]
    }
}

/// Whether the model gets these facts as parts of prompts: its system prompt says so.
pub fn expects_context_parts(system_prompt: &str) -> bool {
    system_prompt.contains(PARTS_MARK)
}

/// Whether the model has not been told of this working directory, so that it needs all of the environment.
pub fn needs_environment(transcript: &Transcript, environment: &EnvironmentFacts) -> bool {
    !environment.is_brief
        && expects_context_parts(transcript.system())
        && find_fact(transcript, WORKING_DIRECTORY) != Some(&environment.working_directory)
}

/// Returns a part with the facts of the environment that the model does not know. `at_start` describes the directory
/// where the model has not been told of it.
pub fn environment_part(
    transcript: &Transcript,
    environment: &EnvironmentFacts,
    at_start: &str,
) -> Option<ContentPart> {
    if !expects_context_parts(transcript.system()) {
        return None;
    }
    let facts = environment.changing_facts(transcript);
    let lines: Vec<String> = if needs_environment(transcript, environment) {
        let known_facts =
            facts.into_iter().chain(environment.fixed_facts()).filter(|(_, value)| value != NONE);
        let lines = known_facts.map(|(name, value)| format!("{name}: {value}"));
        lines.chain(Some(at_start.to_owned()).filter(|text| !text.is_empty())).collect()
    } else {
        let is_unknown =
            |(name, value): &(&str, String)| find_fact(transcript, name).unwrap_or(NONE) != value;
        facts.into_iter().filter(is_unknown).map(|(name, value)| format!("{name}: {value}")).collect()
    };
    let text = lines.join("\n");
    (!text.is_empty()).then_some(ContentPart::FromCrow { kind: CrowPart::Environment, text })
}

/// Returns a part with the instructions if the model knows others.
pub fn instructions_part(transcript: &Transcript, instructions: &str) -> Option<ContentPart> {
    if !expects_context_parts(transcript.system()) {
        return None;
    }
    let known_text = last_text(transcript, &CrowPart::Instructions);
    let known =
        known_text.map(|text| text.split_once(PARAGRAPH).map_or("", |(_, instructions)| instructions));
    let text = match (known, instructions) {
        (None | Some(""), "") => return None,
        (Some(known), instructions) if known == instructions => return None,
        (None, instructions) => format!("{FIRST_INSTRUCTIONS}{PARAGRAPH}{instructions}"),
        (Some(_), "") => ENDED_INSTRUCTIONS.to_owned(),
        (Some(_), instructions) => format!("{CHANGED_INSTRUCTIONS}{PARAGRAPH}{instructions}"),
    };
    Some(ContentPart::FromCrow { kind: CrowPart::Instructions, text })
}

/// Returns the parts about the session that stay when a compaction removes these prompts: the first environment, whose
/// changes are told again, all skills, and the last instructions.
pub(crate) fn kept_context<'a>(prompts: impl Iterator<Item = &'a Prompt>) -> Vec<ContentPart> {
    let mut instructions: Option<&ContentPart> = None;
    let mut skills: Vec<&ContentPart> = Vec::new();
    let mut environment: Option<&ContentPart> = None;
    for part in prompts.flat_map(|prompt| &prompt.parts) {
        match part.crow_part() {
            Some(CrowPart::Instructions) => instructions = Some(part),
            Some(CrowPart::Skills) => skills.push(part),
            Some(CrowPart::Environment) => environment = environment.or(Some(part)),
            Some(_) | None => {}
        }
    }
    instructions.into_iter().chain(skills).chain(environment).cloned().collect()
}

/// Returns the number of parts at the start of a conversation that all sessions of a project share.
pub fn n_project_parts(transcript: ModelTranscript<'_>) -> usize {
    let Some(ModelStep::Prompt(prompt)) = transcript.steps().next() else { return 0 };
    let is_of_project =
        |part: &&ContentPart| matches!(part.crow_part(), Some(CrowPart::Instructions | CrowPart::Skills));
    prompt.parts.iter().take_while(is_of_project).count()
}

/// Returns the working directory that the first prompt tells.
pub fn first_working_directory(transcript: ModelTranscript<'_>) -> Option<&str> {
    let Some(ModelStep::Prompt(prompt)) = transcript.steps().next() else { return None };
    prompt.parts.iter().find_map(|part| fact_in(part, WORKING_DIRECTORY))
}

/// Returns the last told value of a fact.
fn find_fact<'a>(transcript: &'a Transcript, name: &str) -> Option<&'a str> {
    let parts = transcript.context_prompts().rev().flat_map(|prompt| prompt.parts.iter().rev());
    parts.into_iter().find_map(|part| fact_in(part, name))
}

fn fact_in<'a>(part: &'a ContentPart, name: &str) -> Option<&'a str> {
    let ContentPart::FromCrow { kind: CrowPart::Environment, text } = part else { return None };
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn last_text<'a>(transcript: &'a Transcript, searched: &CrowPart) -> Option<&'a str> {
    let mut parts = transcript.context_prompts().rev().flat_map(|prompt| prompt.parts.iter().rev());
    parts.find_map(|part| match part {
        ContentPart::FromCrow { kind, text } if kind == searched => Some(text.as_str()),
        ContentPart::FromCrow { .. }
        | ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => None,
    })
}

#[cfg(test)]
mod tests;

//! Names new features: the model suggests a few words, which are cleaned. If they are unusable, the name is made from
//! the description.

use crow_speckit::{AuxiliaryPrompt, PromptFacts, PromptKind, clean_short_name, render_prompt};

use crate::blocking::run_blocking;
use crate::port::WorkflowPort;

/// The system prompt of the side request.
const SYSTEM: &str = "You name things in a few words.";

/// Words of a name.
const WORDS: std::ops::RangeInclusive<usize> = 2..=4;

/// Names are read in lists.
const NAME_BYTES_MAX: usize = 40;

/// Length of the description in the request.
const DESCRIPTION_CHARS_MAX: usize = 4_000;

/// Requests a name from the model.
pub(crate) async fn ask_short_name(port: &mut impl WorkflowPort, description: &str) -> Option<String> {
    let args: String = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let facts = PromptFacts { args, ..PromptFacts::default() };
    let prompt = run_blocking(move || {
        render_prompt(AuxiliaryPrompt::ShortName.built_in_text(), PromptKind::Jinja, &facts)
    })
    .await
    .ok()?;
    port.ask_model(SYSTEM, prompt).await.as_deref().and_then(parse_short_name)
}

/// Parses a name from a reply: its first non-empty line.
fn parse_short_name(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let name = clean_short_name(line.trim_matches(['`', '"', '\'', '*']));
    let n_words = name.split('-').count();
    (WORDS.contains(&n_words) && name.len() <= NAME_BYTES_MAX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::parse_short_name;

    #[track_caller]
    fn check_short_name(text: &str, expected: Option<&str>) {
        assert_eq!(parse_short_name(text).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn short_name_is_a_few_words() {
        check_short_name("photo-albums", Some("photo-albums"));
        check_short_name("\n `Photo Albums`\n", Some("photo-albums"));
        check_short_name("photos", None);
        check_short_name("I would call this feature the photo albums feature", None);
        check_short_name("", None);
        check_short_name("../../etc/passwd-x", Some("etc-passwd-x"));
        check_short_name(&"long-".repeat(20), None);
    }
}

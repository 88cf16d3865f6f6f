//! What a new feature is called: the model is asked for a few words, and what it says is cleaned like any name. Where it says
//! nothing usable, the name is made of the description.

use crow_core::Ended;
use crow_speckit::{Aside, Facts, PromptKind, clean, render};

use crate::compact;
use crate::run_turn::TurnCx;
use crate::speckit::record::off;

/// What the model is here.
const SYSTEM: &str = "You name things in a few words.";

/// Words of a folder's name.
const WORDS: std::ops::RangeInclusive<usize> = 2..=4;

/// A folder's name is read in lists.
const NAME_BYTES_MAX: usize = 40;

/// What the model needs to know of a description.
const DESCRIPTION_CHARS_MAX: usize = 4_000;

/// Asks for a name.
pub(super) async fn ask(cx: &TurnCx<'_>, description: &str) -> Option<String> {
    let args: String = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let facts = Facts { args, ..Facts::default() };
    let asked = off(move || render(Aside::ShortName.built_in(), PromptKind::Jinja, &facts)).await.ok()?;
    let model = cx.model().ok()?;
    let transcript = compact::transcript(SYSTEM.to_owned(), vec![asked]).ok()?;
    let reply = compact::ask(cx, &model, &transcript).await;
    usable(&reply.text).filter(|_| reply.ended == Ended::Normally)
}

/// Reads a name out of what a model said: its first line that says anything.
fn usable(said: &str) -> Option<String> {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    let name = clean(line.trim_matches(['`', '"', '\'', '*']));
    let n_words = name.split('-').count();
    (WORDS.contains(&n_words) && name.len() <= NAME_BYTES_MAX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::usable;

    #[track_caller]
    fn check(said: &str, expected: Option<&str>) {
        assert_eq!(usable(said).as_deref(), expected, "{said:?}");
    }

    #[test]
    fn a_name_is_a_few_words() {
        check("photo-albums", Some("photo-albums"));
        check("\n `Photo Albums`\n", Some("photo-albums"));
        check("photos", None);
        check("I would call this feature the photo albums feature", None);
        check("", None);
        check("../../etc/passwd-x", Some("etc-passwd-x"));
        check(&"long-".repeat(20), None);
    }
}

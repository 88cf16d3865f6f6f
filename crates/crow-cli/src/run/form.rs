//! A question that is answered by a number or in words: what is asked, and which answers there are.

use console::Style;
use crow_acp::{Form, Formed};

use super::plain::{Paint, visible};

/// What leaves a question open.
const DONE: &str = "done";

/// Words of one's own that end what asks.
const CANCEL: &str = "cancel";

/// Draws the question with its answers, one a line.
pub(super) fn lines(form: &Form, paint: Paint) -> Vec<String> {
    let heading = if form.is_about_trust { "Do you trust this?" } else { "A question:" };
    let heading = paint.on(Style::new().yellow().bold(), heading);
    let message = visible(&form.message);
    let mut said = message.lines();
    let mut lines = vec![format!("{heading} {}", said.next().unwrap_or_default())];
    lines.extend(said.map(|line| format!("  {line}")));
    let on_one_line = |text: &str| visible(text).replace('\n', " ");
    lines.extend(form.options.iter().enumerate().map(|(index, choice)| {
        let label = paint.on(Style::new().cyan(), &on_one_line(&choice.label));
        let meaning = match choice.meaning.as_str() {
            "" => String::new(),
            meaning => format!(" — {}", on_one_line(meaning)),
        };
        format!("  {} {label}{meaning}", index + 1)
    }));
    lines
}

/// Says on one line how to answer.
pub(super) fn answers(form: &Form) -> String {
    let numbers = match form.options.len() {
        0 => None,
        1 => Some("1 or Enter".to_owned()),
        n_options => Some(format!("1-{n_options}, Enter for 1")),
    };
    let words = form.free_text.then(|| "your own words".to_owned());
    let cancel = form.free_text.then(|| format!("{CANCEL} to stop"));
    let ways = numbers.into_iter().chain(words).chain([format!("{DONE} to leave it open")]).chain(cancel);
    ways.collect::<Vec<_>>().join(" · ")
}

/// Reads an answer: nothing for the first, a label, a number or words of one's own.
pub(super) fn formed(form: &Form, typed: &str) -> Option<Formed> {
    let typed = typed.trim();
    if typed.is_empty() {
        return form.options.first().map(|choice| Formed::Chosen(choice.label.clone()));
    }
    let named = form.options.iter().find(|choice| choice.label.trim().eq_ignore_ascii_case(typed));
    let place = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match named.or_else(|| form.options.get(place?)) {
        Some(choice) => Some(Formed::Chosen(choice.label.clone())),
        None if typed.eq_ignore_ascii_case(DONE) => Some(Formed::Declined),
        None => form.words(typed).map(|words| Formed::Chosen(words.to_owned())),
    }
}

#[cfg(test)]
mod tests;

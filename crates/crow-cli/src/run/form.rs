//! A question that is answered by a number or in words: what is asked, and which answers there are.

use console::Style;
use crow_acp::{Form, Formed};

use super::plain::{Paint, visible};

/// What leaves a question open.
const DONE: &str = "done";

/// Draws the question with its answers, one a line.
pub(super) fn lines(form: &Form, paint: Paint) -> Vec<String> {
    let heading = paint.on(Style::new().yellow().bold(), "A question:");
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
    let ways = numbers.into_iter().chain(words).chain([format!("{DONE} to leave it open")]);
    ways.collect::<Vec<_>>().join(" · ")
}

/// Reads an answer: nothing for the first, a number, a label or words of one's own.
pub(super) fn formed(form: &Form, typed: &str) -> Option<Formed> {
    let typed = typed.trim();
    let number = typed.parse::<usize>().ok().filter(|_| !form.options.is_empty());
    let choice = match number {
        // A number that is not there is a slip, not words.
        Some(number) => Some(form.options.get(number.checked_sub(1)?)?),
        None if typed.is_empty() => Some(form.options.first()?),
        None => form.options.iter().find(|choice| choice.label.trim().eq_ignore_ascii_case(typed)),
    };
    match choice {
        Some(choice) => Some(Formed::Chosen(choice.label.clone())),
        None if typed.eq_ignore_ascii_case(DONE) => Some(Formed::Declined),
        None => form.words(typed).map(|words| Formed::Chosen(words.to_owned())),
    }
}

#[cfg(test)]
mod tests;

//! The status line and the title of the window.

use super::{
    live::short_number,
    rows::{LiveBlock, RowContext},
};
use crate::{
    app::{state::AppState, status_report},
    text::{StyledRow, StyledSpan, sanitize_line, text_width},
};

/// Renders the status line: model, mode, context, cost, branch, session; or a short message.
pub(super) fn render_status(state: &AppState, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    if let Some((text, _)) = state.flash.as_ref().filter(|(_, until)| *until > context.now) {
        let row = StyledRow::from_span(StyledSpan::styled(sanitize_line(text), theme.warning()));
        return LiveBlock { rows: vec![row], caret: None };
    }
    let mut parts = status_parts(state);
    // What matters least is last, and goes first.
    while parts.len() > 1 && parts.iter().map(|part| text_width(part) + 3).sum::<usize>() > context.width {
        parts.pop();
    }
    let row = StyledRow::from_span(StyledSpan::styled(parts.join(" · "), theme.secondary()));
    LiveBlock { rows: vec![row], caret: None }
}

fn status_parts(state: &AppState) -> Vec<String> {
    let session = &state.session;
    let option = |name: &str| {
        let option = session.find_option(name)?;
        let choice = option.choices.iter().find(|choice| choice.value == option.current);
        Some(sanitize_line(choice.map_or(&option.current, |choice| &choice.name)))
    };
    let mut parts = Vec::new();
    parts.extend(state.vi.as_ref().map(|vi| (if vi.is_normal { "NORMAL" } else { "INSERT" }).to_owned()));
    parts.push(state.facts.agent.clone().unwrap_or_else(|| "crow".to_owned()));
    parts.extend(option("model"));
    parts.extend(option("mode"));
    if let Some(usage) = session.usage.filter(|usage| usage.size > 0) {
        let percent = usage.used.saturating_mul(100) / usage.size;
        let about = if usage.is_estimate { "~" } else { "" };
        let used = short_number(usize::try_from(usage.used).unwrap_or(usize::MAX));
        parts.push(format!("{about}{percent}% context ({used})"));
    }
    let cost = session.usage.and_then(|usage| usage.cost).filter(|cost| *cost > 0);
    parts.extend(cost.map(status_report::format_cost));
    parts.extend(session.branch.as_deref().map(|branch| format!("⎇ {}", sanitize_line(branch))));
    parts.push(state.facts.shown_cwd());
    parts.extend(session.id.as_ref().map(|id| sanitize_line(id.as_str())));
    parts
}

/// The title of the window: what needs attention, then the project.
pub(super) fn window_title(state: &AppState) -> String {
    let name = state.facts.cwd.file_name().unwrap_or_default().to_string_lossy();
    let title = state.session.title.as_deref().map(|title| format!(" · {title}")).unwrap_or_default();
    let mark = match (state.questions.is_empty(), &state.turn) {
        (false, _) => "? ",
        (true, Some(_)) => "… ",
        (true, None) => "",
    };
    sanitize_line(&format!("{mark}{name}{title}"))
}

//! Reports about the session as text: `/status`, `/context`, `/cost`, `/agents`, `/mcp`.

use super::state::AppState;

/// A dollar in billionths.
const DOLLAR: u64 = 1_000_000_000;

/// Returns the agent, the session and its options, one line each.
pub(crate) fn session_report(state: &AppState) -> String {
    let session = &state.session;
    let mut lines = vec![
        format!("agent: {} (client {})", state.facts.agent.as_deref().unwrap_or("crow"), state.facts.version),
        format!("directory: {}", state.facts.shown_cwd()),
    ];
    lines.extend(session.id.as_ref().map(|id| format!("session: {id}")));
    lines.extend(session.title.as_ref().map(|title| format!("title: {title}")));
    for option in &session.options {
        lines.push(format!("{}: {}", option.name.to_lowercase(), option.current));
    }
    lines.push(context_report(state));
    lines.push(cost_report(state));
    lines.join("\n")
}

/// Returns how full the context is.
pub(crate) fn context_report(state: &AppState) -> String {
    match state.session.usage.filter(|usage| usage.size > 0) {
        Some(usage) => {
            let percent = usage.used.saturating_mul(100) / usage.size;
            let about = if usage.is_estimate { "about " } else { "" };
            format!("context: {about}{} of {} tokens ({percent}%)", usage.used, usage.size)
        }
        None => "context: not reported yet".to_owned(),
    }
}

/// Returns what the session has cost.
pub(crate) fn cost_report(state: &AppState) -> String {
    match state.session.usage.and_then(|usage| usage.cost) {
        Some(cost) => format!("cost: {}", format_cost(cost)),
        None => "cost: not reported; the model has no price in the configuration".to_owned(),
    }
}

/// Returns a list of configured names.
pub(crate) fn name_list(kind: &str, names: &[String]) -> String {
    match names {
        [] => format!("no {kind} are configured"),
        names => format!("{kind}: {}", names.join(", ")),
    }
}

/// Formats billionths of a dollar.
pub(crate) fn format_cost(cost: u64) -> String {
    let cents = (cost + DOLLAR / 200) / (DOLLAR / 100);
    match cents {
        0 => "<$0.01".to_owned(),
        cents => format!("${}.{:02}", cents / 100, cents % 100),
    }
}

//! The children of the session: their updates, the list of them, and a look into one.

use std::time::Instant;

use crow_acp::AgentUpdate;
use crow_core::SessionId;

use super::transcript::show_update;
use crate::app::{
    pager::{PagerSource, TextPager},
    picker::{ListPicker, PickerEntry, PickerKind},
    state::{AppOverlay, AppState},
    status_report,
};
use crate::text::format_elapsed;

/// A child was started, or its state changed. Its parent is a child of the session, or none.
pub(super) fn on_child(state: &mut AppState, parent: Option<SessionId>, update: AgentUpdate, now: Instant) {
    let AgentUpdate::Child { session, title, is_running } = update else { return };
    if let Some(child) = state.children.add(session, parent, now) {
        child.title = title.unwrap_or_else(|| std::mem::take(&mut child.title));
        if let Some(is_running) = is_running {
            child.set_running(is_running, now);
        }
    }
    refresh_list(state, now);
}

/// An update of a child's own session.
pub(super) fn on_child_update(
    state: &mut AppState,
    session: &SessionId,
    message: Option<String>,
    update: AgentUpdate,
    now: Instant,
) {
    if let AgentUpdate::Child { .. } = &update {
        return on_child(state, Some(session.clone()), update, now);
    }
    if let Some(child) = state.children.find_mut(session) {
        show_update(&mut child.cells, message, update, now);
        // Its rows are never in the terminal's history: what is settled may be shortened.
        child.cells.commit(child.cells.n_settled());
    }
    refresh_list(state, now);
}

/// Opens the list of the children; without any, names the agents that could be.
pub(super) fn open_list(state: &mut AppState, now: Instant) {
    let entries = list_entries(state, now);
    if entries.is_empty() {
        let names = status_report::name_list("agents", &state.facts.agents);
        let text = format!("no agent works for this session\n{names}");
        return state.cells.push(crate::app::cells::TranscriptCell::Notice(text));
    }
    let title = state.session.title.clone().unwrap_or_else(|| "this session".to_owned());
    let picker = ListPicker::new(PickerKind::Children, format!("Agents of {title}"), entries);
    state.overlay = Some(AppOverlay::Picker(picker));
}

/// Shows the present state of the children, if the list of them is open.
pub(super) fn refresh_list(state: &mut AppState, now: Instant) {
    if !matches!(&state.overlay, Some(AppOverlay::Picker(picker)) if picker.kind == PickerKind::Children) {
        return;
    }
    let entries = list_entries(state, now);
    if let Some(AppOverlay::Picker(picker)) = &mut state.overlay {
        picker.replace_entries(entries);
    }
}

fn list_entries(state: &AppState, now: Instant) -> Vec<PickerEntry> {
    let entries = state.children.tree().into_iter().map(|(branch, child)| {
        let word = if child.is_running { "working" } else { "idle" };
        let time = format_elapsed(child.elapsed(now));
        PickerEntry {
            value: child.session.to_string(),
            label: format!("{branch} {}", child.title),
            detail: format!("{word} · {time} · {}", child.last_activity()),
            is_current: false,
        }
    });
    entries.collect()
}

/// Looks into a child.
pub(super) fn open_child(state: &mut AppState, session: &str) {
    let session = SessionId::new(session);
    let Some(child) = state.children.find(&session) else { return };
    let title = format!("{} · {}", child.title, child.session);
    state.overlay = Some(AppOverlay::Pager(TextPager::new(title, PagerSource::Child(session))));
}

/// Closes the pager; from a child, the list of children is next.
pub(super) fn close_pager(state: &mut AppState, now: Instant) {
    let Some(AppOverlay::Pager(pager)) = state.overlay.take() else { return };
    if let PagerSource::Child(session) = pager.source {
        let index = state.children.tree().iter().position(|(_, child)| child.session == session);
        open_list(state, now);
        if let Some(AppOverlay::Picker(picker)) = &mut state.overlay {
            picker.selected = index.unwrap_or(0);
        }
    }
}

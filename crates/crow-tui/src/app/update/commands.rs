//! Drafts that are commands: `/` for the client's own and the agent's, `!` for the shell.

use std::{path::Path, time::Instant};

use crow_core::{nearest_name, slash as slash_syntax};

use super::{children, completing, picking, sending};
use crate::app::{
    cells::{CommandCell, CommandEnd, TranscriptCell},
    composer::buffer::{DraftAtom, DraftBuffer},
    event::{AppCommand, SessionChoice},
    pager::{PagerSource, TextPager},
    slash::{self, ClientCommand, INIT_PROMPT},
    state::{AppOverlay, AppState},
    status_report,
};

/// Bytes of a command's output that are kept.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Carries out a command, or sends the draft.
pub(super) fn submit_draft(state: &mut AppState, now: Instant) {
    state.completion = None;
    let text = state.composer.full_text();
    if let Some(command) = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
        return run_shell_command(state, command, now);
    }
    let parsed = slash_syntax::parse_command(text.trim_end());
    let Some(command) = parsed else { return sending::send_draft(state, now) };
    let agent_commands = state.session.commands.as_deref().unwrap_or_default();
    let is_known = agent_commands.iter().any(|known| known.name == command.name);
    let own = slash::find_command(command.name);
    // An agent that describes its context knows more about it.
    if let Some(own) = own.filter(|own| *own != ClientCommand::Context || !is_known) {
        let argument = command.arguments.trim().to_owned();
        remember(state, &text);
        state.composer.take();
        return run_client_command(state, own, &argument, now);
    }
    // Before the session is open, nothing is known.
    if is_known || state.session.id.is_none() {
        return sending::send_draft(state, now);
    }
    let known = slash::all_commands(agent_commands);
    let nearest = nearest_name(command.name, known.iter().map(|known| known.name.as_str()));
    let hint = nearest.map(|name| format!("; did you mean /{name}?")).unwrap_or_default();
    let flash = format!("there is no command /{}{hint}", command.name);
    state.set_flash(flash, now);
}

fn remember(state: &mut AppState, text: &str) {
    if let Some(entry) = state.history.add(text) {
        state.request(AppCommand::StoreHistory(entry));
    }
}

fn run_client_command(state: &mut AppState, command: ClientCommand, argument: &str, now: Instant) {
    match command {
        ClientCommand::Quit => sending::quit(state),
        ClientCommand::New => sending::open_other(state, SessionChoice::New, now),
        ClientCommand::Resume if argument.is_empty() => state.request(AppCommand::ListSessions),
        ClientCommand::Resume => sending::open_other(state, SessionChoice::Stored(argument.to_owned()), now),
        ClientCommand::Mode => picking::choose_option(state, "mode", argument, now),
        ClientCommand::Model => picking::choose_option(state, "model", argument, now),
        ClientCommand::Thinking => picking::choose_option(state, "thought_level", argument, now),
        ClientCommand::Theme => picking::open_themes(state),
        ClientCommand::Keys if !argument.is_empty() => picking::choose_keys(state, argument, now),
        ClientCommand::Keys => {
            state.overlay = Some(AppOverlay::Pager(TextPager::new("Keys", PagerSource::Keys)));
        }
        ClientCommand::Transcript => {
            state.overlay = Some(AppOverlay::Pager(TextPager::new("Transcript", PagerSource::Transcript)));
        }
        ClientCommand::Status => push_notice(state, status_report::session_report(state)),
        ClientCommand::Context => push_notice(state, status_report::context_report(state)),
        ClientCommand::Cost => push_notice(state, status_report::cost_report(state)),
        ClientCommand::Agents => children::open_list(state, now),
        ClientCommand::Mcp => {
            push_notice(state, status_report::name_list("MCP servers", &state.facts.mcp_servers));
        }
        ClientCommand::Diff => state.request(AppCommand::LoadDiff),
        ClientCommand::Copy => copy_answer(state, argument, now),
        ClientCommand::Export => export(state, argument),
        ClientCommand::Share => share_output(state, now),
        ClientCommand::Init => {
            let mut draft = DraftBuffer::default();
            draft.set_text(INIT_PROMPT);
            let typed = std::mem::replace(&mut state.composer, draft);
            sending::send_draft(state, now);
            state.composer = typed;
        }
    }
}

fn push_notice(state: &mut AppState, text: String) {
    state.cells.push(TranscriptCell::Notice(text));
}

fn copy_answer(state: &mut AppState, argument: &str, now: Instant) {
    let answer = state.cells.last_answer();
    let text = match argument.parse::<usize>() {
        Ok(number) => code_block(&answer, number),
        Err(_) => (!answer.is_empty()).then_some(answer),
    };
    match text {
        Some(text) => state.request(AppCommand::CopyText(text)),
        None => state.set_flash("there is nothing to copy", now),
    }
}

/// Returns a fenced code block of an answer, counted from one.
fn code_block(answer: &str, number: usize) -> Option<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in answer.lines() {
        if line.trim_start().starts_with("```") {
            is_open = !is_open;
            if is_open {
                blocks.push(String::new());
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| is_open) {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks.into_iter().nth(number.checked_sub(1)?)
}

fn export(state: &mut AppState, argument: &str) {
    let name = match (argument, &state.session.id) {
        ("", Some(id)) => format!("{id}.md"),
        ("", None) => "session.md".to_owned(),
        (name, _) => name.to_owned(),
    };
    let path = state.facts.cwd.join(Path::new(&name));
    let text = state.cells.to_markdown();
    state.request(AppCommand::WriteFile { path, text });
}

fn share_output(state: &mut AppState, now: Instant) {
    let command = state.cells.all().iter().rev().find_map(TranscriptCell::as_command);
    let Some(command) = command else { return state.set_flash("no `!` command has run yet", now) };
    let text = format!("$ {}\n{}", command.command, command.output);
    state.composer.insert_atom(DraftAtom::Pasted(text));
    completing::refresh(state);
}

fn run_shell_command(state: &mut AppState, command: &str, now: Instant) {
    if state.cells.running_command().is_some() {
        return state.set_flash("another command is running; ctrl-c ends it", now);
    }
    remember(state, &format!("!{command}"));
    state.composer.take();
    let cell = CommandCell { command: command.to_owned(), output: String::new(), end: None, started_at: now };
    state.cells.push(TranscriptCell::Command(cell));
    state.request(AppCommand::RunCommand(command.to_owned()));
}

pub(super) fn on_output(state: &mut AppState, text: &str) {
    if let Some(command) = state.cells.running_command() {
        command.output.push_str(text);
        if command.output.len() > OUTPUT_BYTES_MAX {
            let start = command.output.ceil_char_boundary(command.output.len() - OUTPUT_BYTES_MAX);
            command.output.drain(..start);
        }
    }
}

pub(super) fn on_command_ended(state: &mut AppState, end: CommandEnd) {
    if let Some(command) = state.cells.running_command() {
        command.end = Some(end);
    }
}

pub(super) fn on_reported(state: &mut AppState, result: Result<String, String>, now: Instant) {
    match result {
        Ok(text) => state.set_flash(text, now),
        Err(reason) => state.cells.push(TranscriptCell::Problem(reason)),
    }
}

pub(super) fn on_text_loaded(state: &mut AppState, title: &str, text: Result<String, String>, now: Instant) {
    match text {
        Ok(text) if text.trim().is_empty() => state.set_flash("no changes", now),
        Ok(text) => state.overlay = Some(AppOverlay::Pager(TextPager::new(title, PagerSource::Text(text)))),
        Err(reason) => state.cells.push(TranscriptCell::Problem(reason)),
    }
}

//! The slash commands that a session answers itself: their names, arguments and help. Runs none of them.

use crate::undo::UndoMode;
use crate::{CommandInfo, Mode, slash};

/// A command that acts at once.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionCommand<'a> {
    /// Shows the commands.
    Help,
    /// Shows the mode, or changes it to the one with this name.
    Mode(&'a str),
    /// Shows the model, or changes it to the one with this name.
    Model(&'a str),
    /// Lists the newest sessions of the directory.
    Sessions,
    /// Lists the tasks of the session.
    Tasks,
    /// Cancels the running turn and the tasks.
    Stop,
    /// Shows what the repository supplies, or sets whether it is used. `None`: invalid arguments.
    Trust(Option<TrustAction>),
    /// Shows or removes grants. `None`: invalid arguments.
    Permissions(Option<PermissionsAction>),
    /// Undoes the file changes of the last turn; without a running turn, in a turn of its own. `None`: invalid
    /// arguments.
    Undo(Option<UndoRequest>),
}

/// The file changes that a user wants to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoRequest {
    /// The mode of the undo.
    pub mode: UndoMode,
    /// Turns with changes, the newest first.
    pub n_turns: u64,
}

/// An action of the `/trust` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAction {
    /// Shows the content and its effects.
    Show,
    /// Trusts the shown content until it changes.
    Yes,
    /// Trusts the shown content in this session.
    Session,
    /// Rejects all content until it changes.
    No,
}

/// An action of the `/permissions` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionsAction {
    /// Shows them with their numbers.
    List,
    /// Removes one grant, by its number in the list.
    Remove(usize),
    /// Removes all.
    Clear,
}

/// A command about the context, which runs as a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextCommand {
    /// Shows what takes how much of it.
    Show,
    /// Changes it.
    Change(ContextChange),
}

/// A change of the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextChange {
    /// Compacts it.
    Compact {
        /// The topic that the summary must keep.
        focus: String,
    },
    /// Undoes the last compaction.
    Undo,
    /// Starts with an empty context.
    Clear,
}

/// Parses a prompt as one of Crow's commands; any other prompt with a slash is a normal prompt.
pub fn parse_session_command(text: &str) -> Option<SessionCommand<'_>> {
    let command = slash::parse_command(text)?;
    let argument = command.arguments.trim();
    match command.name {
        "help" => Some(SessionCommand::Help),
        "mode" => Some(SessionCommand::Mode(argument)),
        "model" => Some(SessionCommand::Model(argument)),
        "sessions" => Some(SessionCommand::Sessions),
        "tasks" => Some(SessionCommand::Tasks),
        "stop" => Some(SessionCommand::Stop),
        "trust" => Some(SessionCommand::Trust(parse_trust(argument))),
        "permissions" => Some(SessionCommand::Permissions(parse_permissions(argument))),
        "undo" => Some(SessionCommand::Undo(parse_undo(argument))),
        _ => None,
    }
}

fn parse_trust(argument: &str) -> Option<TrustAction> {
    match argument {
        "" => Some(TrustAction::Show),
        "yes" => Some(TrustAction::Yes),
        "session" => Some(TrustAction::Session),
        "no" => Some(TrustAction::No),
        _ => None,
    }
}

fn parse_permissions(argument: &str) -> Option<PermissionsAction> {
    match argument {
        "" => Some(PermissionsAction::List),
        "clear" => Some(PermissionsAction::Clear),
        argument => {
            let number = argument.strip_prefix("remove ")?.trim().parse().ok()?;
            Some(PermissionsAction::Remove(number))
        }
    }
}

fn parse_undo(argument: &str) -> Option<UndoRequest> {
    let (mode, n_turns) = match argument {
        "" => (UndoMode::Apply, 1),
        "--dry-run" => (UndoMode::Preview, 1),
        "skip" => (UndoMode::Skip, 1),
        number => (UndoMode::Apply, number.parse().ok().filter(|&n_turns| n_turns > 0)?),
    };
    Some(UndoRequest { mode, n_turns })
}

/// Parses a prompt as one of the commands that run as a turn.
pub fn parse_context_command(text: &str) -> Option<ContextCommand> {
    let command = slash::parse_command(text)?;
    let change = match (command.name, command.arguments.trim()) {
        ("context", _) => return Some(ContextCommand::Show),
        ("compact", "undo") => ContextChange::Undo,
        ("compact", focus) => ContextChange::Compact { focus: focus.to_owned() },
        ("clear", _) => ContextChange::Clear,
        _ => return None,
    };
    Some(ContextCommand::Change(change))
}

/// Returns the commands.
pub fn session_commands() -> Vec<CommandInfo> {
    let command = |name: &str, description: &str, hint: Option<&str>| CommandInfo {
        name: name.into(),
        description: description.into(),
        hint: hint.map(Into::into),
    };
    vec![
        command("help", "Show the commands", None),
        command("context", "Show what takes how much of the context", None),
        command("compact", "Compact the context", Some("what to pay attention to, or undo for the last one")),
        command("clear", "Clear the context; the session keeps its messages", None),
        command("mode", "Show or change how much Crow may do on its own", Some(&mode_list())),
        command("model", "Show or change the model", Some("name of a configured model")),
        command("sessions", "Show the newest sessions of this directory", None),
        command("tasks", "Show the tasks of this session and their results", None),
        command("stop", "Stop the running turn and the tasks", None),
        command(
            "trust",
            "Show what this repository would run, and trust it or not",
            Some("yes | session | no"),
        ),
        command("permissions", "Show and remove stored permissions", Some("remove N | clear")),
        command(
            "undo",
            "Undo the file changes of the last turn, or of the last N",
            Some("N | --dry-run | skip"),
        ),
    ]
}

/// Returns the modes in one line.
pub fn mode_list() -> String {
    Mode::ALL.map(Mode::as_str).join(" | ")
}

/// Renders the answer of `/help`.
pub fn render_help(commands: Vec<CommandInfo>) -> String {
    let lines = commands.into_iter().map(|command| {
        let hint = command.hint.map(|hint| format!(" `{hint}`")).unwrap_or_default();
        format!("- `/{}`{hint}: {}", command.name, command.description)
    });
    format!("{}\n", lines.collect::<Vec<_>>().join("\n"))
}

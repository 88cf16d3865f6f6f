//! The slash commands that Crow answers itself.

use crow_core::{CommandInfo, Mode, slash};
use crow_tools::How;

use crate::approvals::PermissionsOrder;
use crate::compact::Chore;
use crate::speckit;
use crate::supplies::TrustOrder;

/// A command that a prompt turned out to be, and that acts at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// Says what there is.
    Help,
    /// Shows or changes the mode.
    Mode(&'a str),
    /// Shows or changes the model.
    Model(&'a str),
    /// Lists the newest sessions of this folder.
    Sessions,
    /// Lists the tasks of the session.
    Tasks,
    /// Stops the turn that runs.
    Stop,
    /// Shows what the repository supplies, or says whether it may be used. `None` is not how it is done.
    Trust(Option<TrustOrder>),
    /// Shows what is allowed beyond single calls, or takes some of it back. `None` is not how it is done.
    Permissions(Option<PermissionsOrder>),
    /// Takes back what the last turn did to files; a turn of its own where none runs. `None` is not how it is done.
    Undo(Option<How>),
}

/// Reads a prompt as one of our commands; anything else with a slash is a prompt.
pub(crate) fn parse(text: &str) -> Option<Command<'_>> {
    let command = slash::parse(text)?;
    let argument = command.arguments.trim();
    match command.name {
        "help" => Some(Command::Help),
        "mode" => Some(Command::Mode(argument)),
        "model" => Some(Command::Model(argument)),
        "sessions" => Some(Command::Sessions),
        "tasks" => Some(Command::Tasks),
        "stop" => Some(Command::Stop),
        "trust" => Some(Command::Trust(trusting(argument))),
        "permissions" => Some(Command::Permissions(permitting(argument))),
        "undo" => Some(Command::Undo(undoing(argument))),
        _ => None,
    }
}

fn trusting(argument: &str) -> Option<TrustOrder> {
    match argument {
        "" => Some(TrustOrder::Show),
        "yes" => Some(TrustOrder::Yes),
        "session" => Some(TrustOrder::Session),
        "no" => Some(TrustOrder::No),
        _ => None,
    }
}

fn permitting(argument: &str) -> Option<PermissionsOrder> {
    match argument {
        "" => Some(PermissionsOrder::List),
        "clear" => Some(PermissionsOrder::Clear),
        argument => {
            let number = argument.strip_prefix("remove ")?.trim().parse().ok()?;
            Some(PermissionsOrder::Remove(number))
        }
    }
}

fn undoing(argument: &str) -> Option<How> {
    match argument {
        "" => Some(How::Do),
        "--dry-run" => Some(How::Show),
        "skip" => Some(How::Skip),
        _ => None,
    }
}

/// Reads a prompt as one of our commands that run like a turn.
pub(crate) fn chore(text: &str) -> Option<Chore> {
    let command = slash::parse(text)?;
    match (command.name, command.arguments.trim()) {
        ("compact", "undo") => Some(Chore::Undo),
        ("compact", focus) => Some(Chore::Compact { focus: focus.to_owned() }),
        ("clear", _) => Some(Chore::Clear),
        _ => None,
    }
}

/// The commands on offer.
pub(crate) fn on_offer() -> Vec<CommandInfo> {
    let command = |name: &str, description: &str, hint: Option<&str>| CommandInfo {
        name: name.into(),
        description: description.into(),
        hint: hint.map(Into::into),
    };
    vec![
        command("help", "Show the commands", None),
        command(
            "compact",
            "Make the conversation shorter for the model",
            Some("what to pay attention to, or undo to take the last one back"),
        ),
        command("clear", "Let the model begin afresh; what was said stays in the session", None),
        command("mode", "Show or change how much Crow may do on its own", Some(&modes())),
        command("model", "Show or change the model", Some("name of a configured model")),
        command("sessions", "Show the newest sessions of this folder", None),
        command("tasks", "Show the tasks of this session and what became of them", None),
        command("stop", "Stop the turn that runs, and the tasks", None),
        command(
            "trust",
            "Show what this repository would run, and use it or not",
            Some("yes | session | no"),
        ),
        command(
            "permissions",
            "Show what you allowed beyond single calls, and take it back",
            Some("remove N | clear"),
        ),
        command("undo", "Take back what the last turn did to files", Some("--dry-run | skip")),
    ]
    .into_iter()
    .chain(speckit::on_offer())
    .collect()
}

/// The modes in one line.
pub(crate) fn modes() -> String {
    Mode::ALL.map(Mode::as_str).join(" | ")
}

/// What `/help` answers where these commands are on offer.
pub(crate) fn help(on_offer: Vec<CommandInfo>) -> String {
    let lines = on_offer.into_iter().map(|command| {
        let hint = command.hint.map(|hint| format!(" `{hint}`")).unwrap_or_default();
        format!("- `/{}`{hint}: {}", command.name, command.description)
    });
    format!("{}\n", lines.collect::<Vec<_>>().join("\n"))
}

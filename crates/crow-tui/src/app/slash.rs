//! The commands of this client. All others are the agent's.

use crow_core::CommandInfo;

/// A command of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientCommand {
    Agents,
    Context,
    Copy,
    Cost,
    Diff,
    Export,
    Init,
    Keys,
    Mcp,
    Mode,
    Model,
    New,
    Quit,
    Resume,
    Share,
    Status,
    Theme,
    Thinking,
    Transcript,
}

/// A row of the table: name, argument hint, description.
type CommandRow = (&'static str, ClientCommand, &'static str, &'static str);

const COMMANDS: [CommandRow; 20] = [
    ("agents", ClientCommand::Agents, "", "Show the agents that work for this session"),
    ("context", ClientCommand::Context, "", "Show how full the context is"),
    ("copy", ClientCommand::Copy, "N", "Copy the last answer, or its code block N"),
    ("cost", ClientCommand::Cost, "", "Show what the session has cost"),
    ("diff", ClientCommand::Diff, "", "Show the changes of the git repository"),
    ("exit", ClientCommand::Quit, "", "Quit"),
    ("export", ClientCommand::Export, "FILE", "Write the conversation to a new Markdown file"),
    ("init", ClientCommand::Init, "", "Let the agent write AGENTS.md"),
    ("keys", ClientCommand::Keys, "vi | emacs", "Show the keys, or choose a set"),
    ("mcp", ClientCommand::Mcp, "", "List the configured MCP servers"),
    ("mode", ClientCommand::Mode, "MODE", "Choose the mode"),
    ("model", ClientCommand::Model, "MODEL", "Choose the model"),
    ("new", ClientCommand::New, "", "Start a new session"),
    ("quit", ClientCommand::Quit, "", "Quit"),
    ("resume", ClientCommand::Resume, "ID", "Choose a session to continue"),
    ("share", ClientCommand::Share, "", "Add the output of the last `!` command to the prompt"),
    ("status", ClientCommand::Status, "", "Show the agent, the session and its options"),
    ("theme", ClientCommand::Theme, "", "Choose the colours"),
    ("thinking", ClientCommand::Thinking, "LEVEL", "Choose how much the model thinks"),
    ("transcript", ClientCommand::Transcript, "", "Show everything"),
];

/// The prompt of `/init`.
pub(crate) const INIT_PROMPT: &str = "Look at this project and write an AGENTS.md at its root for coding agents: how \
    to build, test and check it, how the code is organized, and the conventions that a newcomer would get wrong. Keep \
    it under 40 lines, write only what you verified, and if there is one already, improve it.";

/// Finds a command by its name.
pub(crate) fn find_command(name: &str) -> Option<ClientCommand> {
    COMMANDS.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Lists the client's commands, then the agent's that have other names.
pub(crate) fn all_commands(agent_commands: &[CommandInfo]) -> Vec<CommandInfo> {
    let ours = COMMANDS.iter().map(|(name, _, hint, description)| CommandInfo {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        hint: (!hint.is_empty()).then(|| (*hint).to_owned()),
    });
    let theirs = agent_commands.iter().filter(|command| find_command(&command.name).is_none()).cloned();
    let mut commands: Vec<CommandInfo> = ours.chain(theirs).collect();
    commands.sort_by(|a, b| a.name.cmp(&b.name));
    commands
}

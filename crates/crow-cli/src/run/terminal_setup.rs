//! Decides whether a run has the interactive terminal, and collects what it needs. Starts nothing.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use crow_tui::{ClientFacts, ColorTheme, SessionChoice, TerminalHints, TerminalTraits, TtyIo};

use super::terminal_host::LocalHost;
use crate::{
    agent,
    cli::{OutputFormat, RunArgs},
    failure::{CliError, CliExitCode},
    settings::{Environment, Settings},
};

/// The file of earlier prompts in the configuration directory.
const HISTORY_FILE: &str = "history.jsonl";

/// The `TERM` of a terminal that cannot move its cursor.
const DUMB: &str = "dumb";

/// An interactive terminal that can be started.
pub(crate) struct TerminalSetup {
    pub(super) tty: TtyIo,
    pub(super) traits: TerminalTraits,
    pub(super) theme: ColorTheme,
    pub(super) facts: ClientFacts,
    pub(super) host: LocalHost,
    pub(super) history_file: PathBuf,
    pub(super) target: SessionChoice,
    pub(super) is_fullscreen: bool,
}

impl TerminalSetup {
    /// Returns the terminal if the run is interactive and the terminal can move its cursor; otherwise the run prints
    /// plain lines.
    pub(super) fn detect(
        args: &RunArgs,
        target: Option<SessionChoice>,
        settings: &Settings,
        env: &Environment,
        cwd: &Path,
    ) -> Result<Option<Self>, CliError> {
        let variable = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let is_text = matches!(args.output_format, None | Some(OutputFormat::Text)) && !args.json;
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let is_dumb = variable("TERM").is_none_or(|term| term == DUMB);
        if !args.interactive || args.plain || !is_text || !is_terminal || is_dumb {
            return Ok(None);
        }
        let tty = TtyIo::open().map_err(|error| {
            CliError::new(CliExitCode::Failed, format!("could not use the terminal: {error}"))
        })?;
        let hints = TerminalHints {
            term: variable("TERM"),
            term_program: variable("TERM_PROGRAM"),
            is_windows_terminal: variable("WT_SESSION").is_some(),
            is_wsl: variable("WSL_DISTRO_NAME").is_some(),
            is_tmux: variable("TMUX").is_some(),
            is_vte: variable("VTE_VERSION").is_some(),
        };
        let stored = |id: &String| match args.fork {
            true => SessionChoice::Fork(id.clone()),
            false => SessionChoice::Stored(id.clone()),
        };
        let target = target.or_else(|| args.session.as_ref().map(stored)).unwrap_or(SessionChoice::New);
        Ok(Some(Self {
            tty,
            traits: TerminalTraits::from_hints(&hints),
            theme: ColorTheme { has_color: variable("NO_COLOR").is_none(), is_light: false },
            facts: ClientFacts {
                agent: args.options.agent.clone(),
                version: agent::VERSION,
                cwd: cwd.to_owned(),
                home: settings.home.clone(),
                agents: settings.agent_servers.iter().map(|server| server.name.clone()).collect(),
                mcp_servers: settings.mcp_servers.iter().map(|server| server.name.clone()).collect(),
                has_vi_keys: settings.has_vi_keys,
            },
            host: LocalHost::new(
                cwd.to_owned(),
                variable("VISUAL").or(variable("EDITOR")),
                variable("TMUX").is_some(),
            ),
            history_file: settings.dir.join(HISTORY_FILE),
            target,
            is_fullscreen: args.options.fullscreen || settings.fullscreen,
        }))
    }
}

//! Terminals for the commands of an agent: in the directory of its session, without this process's secret variables,
//! with bounded output, and killed with the agent. A command gets no input.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::{ClientCallError, ClientTerminalOutput, RequestedCommand, TerminalExit};
use crow_process::{
    CommandSpec, ExitReason, OutputLimits, OutputWatcher, ProcessGroups, RunningProgram, StdioKind,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::files::resolve_inside;

/// The terminals that one agent may have open; more are forgotten ones.
const TERMINALS_MAX: usize = 64;

/// Bytes of output that are kept of a command, from the end; the agent may ask for less.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// A command that runs longer is a forgotten one: servers end with their terminal or with the agent.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The terminals of one agent. Dropping them ends their commands.
#[derive(Debug)]
pub(crate) struct TerminalTable {
    groups: ProcessGroups,
    terminals: HashMap<String, AgentTerminal>,
    n_created: u64,
}

/// A command and its output.
#[derive(Debug)]
struct AgentTerminal {
    output: Arc<Mutex<OutputTail>>,
    exit: watch::Receiver<Option<TerminalExit>>,
    stop: DropGuard,
}

/// The end of a command's output.
#[derive(Debug)]
struct OutputTail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
    is_truncated: bool,
}

impl TerminalTable {
    pub(crate) fn new() -> Self {
        Self { groups: ProcessGroups::new(), terminals: HashMap::new(), n_created: 0 }
    }

    /// Starts a command and returns the ID of its terminal.
    pub(crate) async fn create(
        &mut self,
        session_cwd: &Path,
        command: RequestedCommand,
    ) -> Result<String, ClientCallError> {
        if self.terminals.len() >= TERMINALS_MAX {
            let reason = format!("{TERMINALS_MAX} terminals are open; release one first");
            return Err(ClientCallError::Failed(reason));
        }
        let cwd = resolve_inside(session_cwd, command.cwd.as_deref().unwrap_or(session_cwd))?;
        let bytes_max = command.output_bytes_max.and_then(|bytes_max| usize::try_from(bytes_max).ok());
        let bytes_max = bytes_max.map_or(OUTPUT_BYTES_MAX, |bytes_max| bytes_max.min(OUTPUT_BYTES_MAX));
        let spec = CommandSpec {
            program: command.program,
            args: command.args,
            cwd,
            env: command.env,
            env_removed: crow_process::secret_variables(),
        };
        // The program's own capture is not used: the agent reads while the command runs.
        let limits = OutputLimits { head_bytes: 0, tail_bytes: 0, spill_dir: None };
        let program = RunningProgram::start(&self.groups, spec, StdioKind::Pipe, limits).await;
        let program = program.map_err(|error| ClientCallError::Failed(error.to_string()))?;
        let output =
            Arc::new(Mutex::new(OutputTail { bytes: VecDeque::new(), bytes_max, is_truncated: false }));
        let (exit_sender, exit) = watch::channel(None);
        let stop = CancellationToken::new();
        tokio::spawn(run_command(program, TailWatcher(output.clone()), stop.clone(), exit_sender));
        self.n_created += 1;
        let id = format!("terminal-{}", self.n_created);
        self.terminals.insert(id.clone(), AgentTerminal { output, exit, stop: stop.drop_guard() });
        Ok(id)
    }

    /// Returns the output so far.
    pub(crate) fn read(&self, id: &str) -> Result<ClientTerminalOutput, ClientCallError> {
        let terminal = self.find(id)?;
        // The exit is read first: it is set when the output is complete.
        let exit = terminal.exit.borrow().clone();
        let output = lock_output(&terminal.output);
        Ok(ClientTerminalOutput { text: output.to_text(), is_truncated: output.is_truncated, exit })
    }

    /// Returns the exit of a command, which can be waited for.
    pub(crate) fn exit(&self, id: &str) -> Result<watch::Receiver<Option<TerminalExit>>, ClientCallError> {
        self.find(id).map(|terminal| terminal.exit.clone())
    }

    /// Ends a command; its output can still be read.
    pub(crate) fn kill(&mut self, id: &str) -> Result<(), ClientCallError> {
        let terminal = self.terminals.get_mut(id).ok_or_else(|| unknown_terminal(id))?;
        // Dropping the guard ends the command.
        terminal.stop = CancellationToken::new().drop_guard();
        Ok(())
    }

    /// Ends a command and forgets its terminal.
    pub(crate) fn release(&mut self, id: &str) -> Result<(), ClientCallError> {
        self.terminals.remove(id).map(drop).ok_or_else(|| unknown_terminal(id))
    }

    fn find(&self, id: &str) -> Result<&AgentTerminal, ClientCallError> {
        self.terminals.get(id).ok_or_else(|| unknown_terminal(id))
    }
}

fn unknown_terminal(id: &str) -> ClientCallError {
    ClientCallError::Failed(format!("there is no terminal {id}"))
}

/// Waits for the exit of a command; `None` if it is no longer known.
pub(crate) async fn wait_for_exit(mut exit: watch::Receiver<Option<TerminalExit>>) -> Option<TerminalExit> {
    exit.wait_for(Option::is_some).await.ok()?.clone()
}

async fn run_command(
    mut program: RunningProgram,
    mut watcher: TailWatcher,
    stop: CancellationToken,
    exit_sender: watch::Sender<Option<TerminalExit>>,
) {
    let deadline = Instant::now() + COMMAND_TIME_MAX;
    let exit = match program.wait_for_exit(&stop, deadline, &mut watcher).await {
        Ok(outcome) => to_terminal_exit(program.finish(outcome, &mut watcher).await.exit),
        Err(error) => {
            tracing::warn!(%error, "could not wait for a command of an agent; ending it");
            TerminalExit { code: None, signal: None }
        }
    };
    exit_sender.send_replace(Some(exit));
}

fn to_terminal_exit(reason: ExitReason) -> TerminalExit {
    match reason {
        ExitReason::Exited(code) => TerminalExit { code: Some(code.cast_unsigned()), signal: None },
        ExitReason::Signalled(signal) => TerminalExit { code: None, signal: Some(signal_name(signal)) },
        // It was ended from here.
        ExitReason::TimedOut | ExitReason::Cancelled => {
            TerminalExit { code: None, signal: Some("SIGTERM".to_owned()) }
        }
    }
}

/// Returns the name of a signal whose number is the same on every system.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// Appends the output of a command to its tail.
struct TailWatcher(Arc<Mutex<OutputTail>>);

impl OutputWatcher for TailWatcher {
    fn on_output(&mut self, bytes: &[u8]) {
        lock_output(&self.0).push(bytes);
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

fn lock_output(output: &Mutex<OutputTail>) -> MutexGuard<'_, OutputTail> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OutputTail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let n_excess = self.bytes.len().saturating_sub(self.bytes_max);
        self.is_truncated |= n_excess > 0;
        self.bytes.drain(..n_excess);
    }

    /// Returns the text; a character that was cut at the beginning is dropped.
    fn to_text(&self) -> String {
        let n_cut = match self.is_truncated {
            true => self.bytes.iter().take_while(|&&byte| (0x80..0xC0).contains(&byte)).count(),
            false => 0,
        };
        let bytes: Vec<u8> = self.bytes.iter().skip(n_cut).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

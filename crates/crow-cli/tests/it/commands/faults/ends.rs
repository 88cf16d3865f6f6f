//! Crow's own end, and that of what it runs in.

use std::path::Path;

use crow_testkit::client::FakeClient;
use crow_testkit::terminal::{EmulatorSize, TerminalKind, TerminalProgram, TerminalSetup};
use crow_testkit::tracked_command::TrackedCommand;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;

use super::super::Stage;
use super::{Fault, PLAIN, Surroundings, begin_turn, block_on};

const AUTO: &str = "providers:\n  acme: { base_url: $URL, api_key: none }\n\
                    models:\n  main: { provider: acme, model: scripted }\nmax_retries_per_step: 0\n\
                    permissions: { mode: auto, sandbox: off }\n";

pub(super) const FAULTS: [Fault; 4] = [
    Fault {
        title: "The computer sleeps",
        event: "The lid is closed during a reply, and the provider has given up the connection meanwhile. The turn goes on when the\n\
                computer wakes.",
        script: "text \"This folder has a parser\" | hold | cut\ntext \" and its tests.\"",
        meanwhile: |stage, turn| {
            let processes = Pid::from_raw(turn.id().try_into().expect("it is a process ID"));
            block_on(stage.server.wait_for_requests(1));
            killpg(processes, Signal::SIGSTOP).expect("they run");
            stage.server.release();
            block_on(stage.server.wait_for_disconnect(0));
            killpg(processes, Signal::SIGCONT).expect("they are stopped");
        },
        advice: "What has arrived is kept. A connection that has gone without a word is noticed as well: by the operating system, which\n\
                 asks the other side after 30 silent seconds, or by Crow after [five silent minutes](../guides/models.md#retries).",
        ..PLAIN
    },
    Fault {
        title: "The editor is killed",
        event: "Crow is the agent of an editor, which ends while a command of the agent runs. This is the next run.",
        config: AUTO,
        prepare: |stage| {
            script_command(stage);
            block_on(async {
                let mut command = TrackedCommand::new(&stage.world.project());
                let mut editor =
                    FakeClient::start(Path::new(env!("CARGO_BIN_EXE_crow-cli")), &stage.world.home()).await;
                let session = editor.new_session(&stage.world.project()).await;
                editor.prompt(&session, "Run the tests.").await;
                editor.wait_for_line("started").await;
                editor.disappear().await;
                command.wait_until_gone("the editor was killed").await;
            });
            Surroundings::default()
        },
        commands: &["crow-cli run -s calm-tiny-finch 'What has it printed?'"],
        advice: "Crow notices the closed pipe, ends the command with all its processes, stores what there is, and exits.",
        ..PLAIN
    },
    Fault {
        title: "The terminal window is closed",
        event: "The interactive terminal runs in it, and the agent a command. This is the next run.",
        config: AUTO,
        prepare: |stage| {
            script_command(stage);
            block_on(async {
                let mut command = TrackedCommand::new(&stage.world.project());
                let mut window = open_window(stage, "Run the tests.");
                window.wait_until("the command", |_| command.is_running());
                window.close_window();
                command.wait_until_gone("the window was closed").await;
            });
            Surroundings::default()
        },
        commands: &["crow-cli run -s calm-tiny-finch 'What has it printed?'"],
        advice: "As with an editor. `crow-cli --continue` goes on in the interactive terminal.",
        ..PLAIN
    },
    Fault {
        title: "Crow is killed",
        event: "`kill -9`, or an empty battery. This is the next run.",
        script: "call terminal {\"command\":\"echo one\"}\nhold\ntext \"It has printed one.\"",
        prepare: |stage| {
            let mut child = begin_turn(stage, "run -y 'Run echo one.'", 2);
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            Surroundings::default()
        },
        commands: &["crow-cli run -s calm-tiny-finch 'What has it printed?'"],
        advice: "Each step is on disk before the next one starts: the call and its result are there, and only the reply that was under\n\
                 way has to be asked for again. The processes of the killed Crow have ended with it.",
        ..PLAIN
    },
];

/// Lets the model run [`TrackedCommand::COMMAND`], and answer the next request.
fn script_command(stage: &Stage) {
    let arguments = json!({"command": TrackedCommand::COMMAND});
    stage.server.add_answers(&*format!("call terminal {arguments}\ntext \"It has printed: started.\""));
}

/// Starts the interactive terminal in a window with a prompt.
#[expect(clippy::disallowed_methods, reason = "the program gets the test's own PATH")]
fn open_window(stage: &Stage, prompt: &str) -> TerminalProgram {
    let variables = ["PATH", "HOME", "TERM"].map(str::to_owned);
    let path = std::env::var("PATH").expect("there are programs");
    let values = [path, stage.world.home().display().to_string(), "xterm-256color".to_owned()];
    let setup = TerminalSetup {
        kind: TerminalKind::Kitty,
        size: EmulatorSize { columns: 100, rows: 24 },
        args: vec![prompt.to_owned()],
        env: variables.into_iter().zip(values).collect(),
        cwd: stage.world.project(),
    };
    TerminalProgram::start(Path::new(env!("CARGO_BIN_EXE_crow-cli")), &setup)
}

//! The work of the session in which a process is killed: the configuration, the client and the script of the model.

use crow_testkit::ModelServer;
use serde_json::{Value, json};

use super::schedule::{PlannedKill, VictimKind};

/// A session's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// The process starts and creates its database.
    Start,
    /// The model streams.
    Speech,
    /// Files are read and written, commands run.
    Tools,
    /// The conversation becomes too long.
    Compaction,
    /// Commands run below the agent.
    Commands,
    /// Commands run in the client's terminals.
    Terminals,
    /// Two child agents work.
    Children,
}

/// A part of the command lines of a waiting command.
pub(crate) const WAITING_PROGRAM: &str = "sleep 1000";

/// Ends as soon as one of its processes is killed.
const WAITING_COMMAND: &str = "echo begun; sleep 1000 & wait $!; echo over";

/// Prints in pieces, with a process in the background.
const SHORT_COMMAND: &str =
    "seq 1 200; (sleep 1; echo late) & for i in 1 2 3; do echo $i; sleep 0.01; done; kill $!";

/// Answers to the next prompt: a summary and its verification may be requested first.
pub(crate) const ANSWERS_AFTERWARDS: &str =
    "text \"Still here.\"\ntext \"Still here.\"\ntext \"Still here.\"\ntext \"Still here.\"";

impl Scene {
    /// About as many messages as the client receives in an undisturbed turn.
    pub(crate) fn n_messages(self) -> u64 {
        match self {
            Self::Start => 1,
            Self::Speech => 40,
            Self::Tools | Self::Children => 50,
            Self::Compaction => 25,
            Self::Commands | Self::Terminals => 20,
        }
    }

    /// About as many bytes as the model sends in an undisturbed turn.
    pub(crate) fn n_model_bytes(self) -> u64 {
        match self {
            Self::Start => 1,
            Self::Speech | Self::Children => 7_000,
            Self::Tools => 6_500,
            Self::Compaction => 4_000,
            Self::Commands | Self::Terminals => 2_000,
        }
    }

    pub(crate) fn capabilities(self) -> Value {
        json!({"terminal": self == Self::Terminals, "session": {"notices": {}}})
    }

    pub(crate) fn config(self, has_sandbox: bool) -> String {
        let sandbox = if has_sandbox { "" } else { ", sandbox: off" };
        let limit = if self == Self::Compaction { "max_compact_tokens: 3000" } else { "" };
        format!("permissions: {{ mode: auto{sandbox} }}\n{limit}")
    }

    /// Starts the model.
    pub(crate) fn start_model(self, kill: &PlannedKill) -> ModelServer {
        match self {
            Self::Start => ModelServer::start("text \"Hello.\""),
            Self::Speech => ModelServer::start(speech().as_str()),
            Self::Tools => ModelServer::start(TOOLS),
            Self::Compaction => ModelServer::start(COMPACTION),
            Self::Commands | Self::Terminals => ModelServer::start(commands(kill.victim).as_str()),
            Self::Children => start_model_of_children(kill.victim),
        }
    }
}

/// Each piece waits until the client has received a message, so that the agent is killed in the middle of the stream.
fn speech() -> String {
    let words: Vec<String> = (0..24).map(|n| format!("hold | text \"word {n} \"")).collect();
    format!(
        "split 40 | thought \"Let me \" | hold | thought \"think.\" | {} | usage 100 10",
        words.join(" | ")
    )
}

const TOOLS: &str = r#"
    text "I look." | call read {"file_path":"a.txt"} | call terminal {"command":"seq 1 200"}
    split 100 | call write {"file_path":"b.txt","content":"new\n"} | call todo {"entries":[{"content":"Go on","status":"pending"}]}
    thought "Now." | call edit {"file_path":"b.txt","old_string":"new","new_string":"newer"} | call terminal {"command":"exit 3"}
    text "All " | text "done." | usage 100 10
"#;

const COMPACTION: &str = r#"
    call terminal {"command":"seq 1 3000"} | usage 2500 5
    call terminal {"command":"seq 1 3000"} | usage 2900 5
    call terminal {"command":"seq 1 3000"} | usage 9000 5
    text "Summed up."
    text "COMPLETE"
    text "Done."
    text "Done."
"#;

fn commands(victim: VictimKind) -> String {
    let call = |command: &str| format!("call terminal {}", json!({"command": command}));
    let calls = if victim == VictimKind::Agent {
        format!("text \"I run it.\" | {0}\nthought \"And \" | {0} | {0}", call(SHORT_COMMAND))
    } else {
        format!("text \"I run it.\" | {}", call(WAITING_COMMAND))
    };
    format!("{calls}\ntext \"All done.\"")
}

/// A child that is to be killed waits for it, and so does the other one.
fn start_model_of_children(victim: VictimKind) -> ModelServer {
    let tasks = "call task {\"prompt\":\"ALPHA\"} | call task {\"prompt\":\"BETA\"}";
    let server = ModelServer::start(format!("text \"I ask.\" | {tasks}\ntext \"Both are done.\"").as_str());
    let hold = if victim == VictimKind::Child { " | hold" } else { "" };
    for name in ["ALPHA", "BETA"] {
        let words: Vec<String> = (0..8).map(|n| format!("text \"{name} {n} \"")).collect();
        let call = json!({"command": format!("echo {name}")});
        let answers = format!(
            "split 60 | {} | call terminal {call}\ntext \"{name} is \"{hold} | text \"done.\"",
            words.join(" | ")
        );
        server.add_answers_for(name, answers.as_str());
    }
    server
}

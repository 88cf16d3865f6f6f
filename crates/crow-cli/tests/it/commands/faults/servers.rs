//! Faults of the programs beside a turn: MCP servers, and another Crow.

use super::{Fault, OtherProcess, PLAIN, Surroundings, begin_turn};

const BROKEN_MCP_SERVER: &str = "providers:\n  acme: { base_url: $URL, api_key: none }\n\
                                 models:\n  main: { provider: acme, model: scripted }\n\
                                 mcpServers:\n  notes: { command: sh, args: [-c, 'echo no license >&2; exit 1'] }\n";

const NOTES_SERVER: &str = "providers:\n  acme: { base_url: $URL, api_key: none }\n\
                            models:\n  main: { provider: acme, model: scripted, tools: full }\n\
                            mcpServers:\n  notes: { command: $NOTES, args: [notes] }\n";

pub(super) const FAULTS: [Fault; 3] = [
    Fault {
        title: "An MCP server does not start",
        event: "The program of the server ends before it answers.",
        config: BROKEN_MCP_SERVER,
        script: "text \"A parser.\"",
        advice: "The turn goes on without the tools of the server.",
        ..PLAIN
    },
    Fault {
        title: "An MCP server crashes in a call",
        event: "The server ends while the model waits for the result of its tool.",
        config: NOTES_SERVER,
        script: "call find_note {\"words\":\"out of memory\"}\ntext \"The notes cannot be searched now.\"",
        commands: &["crow-cli run -y 'Look it up in my notes.'"],
        advice: "The model gets the failure as the result of the call, with the last words of the server, and the turn goes on. The\n\
                 server is started again for the next call, at most three times in a minute.",
        ..PLAIN
    },
    Fault {
        title: "Two Crows use one session",
        event: "A turn of the session runs in another window.",
        script: "text \"A parser.\"\nhold",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let turn = begin_turn(stage, "run -s calm-tiny-finch 'Explain its tests.'", 2);
            Surroundings::with(OtherProcess(turn))
        },
        commands: &["crow-cli run -s calm-tiny-finch 'Explain its errors.'"],
        advice: "A session runs one turn at a time. Other sessions, also of the same directory, are not affected.",
        ..PLAIN
    },
];

//! The page of faults: what a person sees of each, made by this test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use expect_test::expect_file;

use super::Stage;

/// A way to damage what is around Crow, and what a person then sees.
struct Fault {
    title: &'static str,
    /// The event, before the output.
    event: &'static str,
    /// The configuration; `$URL` is the address of the model server.
    config: &'static str,
    /// The answers of the model server.
    script: &'static str,
    /// Brings the fault about, and returns a process that ends with the commands.
    prepare: fn(&Stage) -> Option<Child>,
    /// The commands, as a person types them.
    commands: &'static [&'static str],
    /// The rest of the section: the state that is kept, and advice.
    advice: &'static str,
}

const MODEL: &str = "providers:\n  acme: { base_url: $URL, api_key: '${ACME_API_KEY}' }\n\
                     models:\n  main: { provider: acme, model: scripted }\nmax_retries_per_step: 0\n";

const DEAD_SERVER: &str = "providers:\n  acme: { base_url: 'http://127.0.0.1:9/v1', api_key: none }\n\
                           models:\n  main: { provider: acme }\nmax_retries_per_step: 0\n";

const BROKEN_MCP_SERVER: &str = "providers:\n  acme: { base_url: $URL, api_key: none }\n\
                                 models:\n  main: { provider: acme, model: scripted }\n\
                                 mcpServers:\n  notes: { command: sh, args: [-c, 'echo no license >&2; exit 1'] }\n";

const NOTHING: fn(&Stage) -> Option<Child> = |_| None;

const FAULTS: &[Fault] = &[
    Fault {
        title: "The network is gone before a turn",
        event: "Nothing answers at the address of the provider. Crow has tried again as often as `max_retries_per_step` says.",
        config: DEAD_SERVER,
        script: "",
        prepare: NOTHING,
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "The prompt is stored. Once the network is back, `crow-cli --continue` goes on in that session.",
    },
    Fault {
        title: "The network is gone in a turn",
        event: "The connection breaks in the middle of a reply, and comes back.",
        config: MODEL,
        script: "text \"This folder has a parser\" | cut\ntext \" and its tests.\"",
        prepare: NOTHING,
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "What has arrived is kept, and the model is asked to continue there, at most three times in a row.",
    },
    Fault {
        title: "The key is wrong",
        event: "The provider answers with status 401, and repeats the key.",
        config: MODEL,
        script: "status 401 {\"error\":{\"message\":\"Incorrect API key provided: sk-1234567890abcdef\"}}",
        prepare: |stage| {
            let file = stage.world.home().join(".crow/.env");
            fs::write(&file, "ACME_API_KEY=sk-1234567890abcdef\n").expect("written");
            fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("private");
            None
        },
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "Keys are never shown. Correct the variable; the next prompt uses it, and the conversation is kept.",
    },
    Fault {
        title: "The quota is used up",
        event: "The provider answers with status 429 and says that there is no credit left.",
        config: MODEL,
        script: "status 429 {\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\
                 \"message\":\"You exceeded your current quota.\"}}",
        prepare: NOTHING,
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "No credit is not tried again, since waiting does not help; a busy provider is.\n\
                 [Fallbacks](../guides/models.md#fallbacks) go on with another model.",
    },
    Fault {
        title: "The disk is full",
        event: "The database cannot grow any more.",
        config: MODEL,
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            None
        },
        commands: &["(trap '' XFSZ; ulimit -f 8; crow-cli run -s calm-tiny-finch 'Explain its tests.')"],
        advice: "Nothing of what was stored is lost, and no request is sent whose answer could not be stored. Free some space and send\n\
                 the prompt again.",
    },
    Fault {
        title: "The configuration directory cannot be written",
        event: "The home directory is read-only, or the directory cannot be created.",
        config: MODEL,
        script: "",
        prepare: NOTHING,
        commands: &["crow-cli -d /proc/crow run 'Explain this folder.'"],
        advice: "Without a place for the session there is no turn. `--config-dir` names another directory.",
    },
    Fault {
        title: "The database is damaged",
        event: "Something else has written into the file, or a disk has lost a part of it.",
        config: MODEL,
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let file = stage.world.home().join(".crow/crow.db");
            let mut bytes = fs::read(&file).expect("the database is there");
            // All but the first page, which contains the application ID.
            bytes.get_mut(4096..).expect("it has several pages").fill(0xAA);
            fs::write(&file, bytes).expect("written");
            None
        },
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "A turn ends where it meets the damage. What can be read is saved into a new database, and the damaged file is\n\
                 kept.",
    },
    Fault {
        title: "The database is of a newer version",
        event: "A newer Crow has used the directory.",
        config: MODEL,
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let file = stage.world.home().join(".crow/crow.db");
            let mut bytes = fs::read(&file).expect("the database is there");
            // The user version of SQLite.
            bytes.get_mut(60..64).expect("it has a header").copy_from_slice(&99_u32.to_be_bytes());
            fs::write(&file, bytes).expect("written");
            // It has the header as well.
            let _ = fs::remove_file(file.with_extension("db-wal"));
            None
        },
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "The file is left as it is. A database of an older version is converted when it is opened, after a copy of it was made.",
    },
    Fault {
        title: "An MCP server crashes",
        event: "The program of the server ends before it answers.",
        config: BROKEN_MCP_SERVER,
        script: "text \"A parser.\"",
        prepare: NOTHING,
        commands: &["crow-cli run 'Explain this folder.'"],
        advice: "The turn goes on without the tools of the server. One that crashes later is started again, at most three times in a\n\
                 minute.",
    },
    Fault {
        title: "Two Crows use one session",
        event: "A turn of the session runs in another window.",
        config: MODEL,
        script: "text \"A parser.\"\nhold",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            Some(begin_turn(stage, "run -s calm-tiny-finch 'Explain its tests.'", 2))
        },
        commands: &["crow-cli run -s calm-tiny-finch 'Explain its errors.'"],
        advice: "A session runs one turn at a time. Other sessions, also of the same directory, are not affected.",
    },
    Fault {
        title: "Crow is killed in a turn",
        event: "`kill -9`, an empty battery, or a closed terminal window. This is the next run.",
        config: MODEL,
        script: "call terminal {\"command\":\"echo one\"}\nhold\ntext \"It has printed one.\"",
        prepare: |stage| {
            let mut child = begin_turn(stage, "run -y 'Run echo one.'", 2);
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            None
        },
        commands: &["crow-cli run -s calm-tiny-finch 'What has it printed?'"],
        advice: "Each step is on disk before the next one starts: the call and its result are there, and only the reply that was under\n\
                 way has to be asked for again. The processes of the killed Crow have ended with it.",
    },
];

/// Stands for the newest session in commands and on the page.
const SESSION: &str = "calm-tiny-finch";

/// Starts a turn in another process and waits until the model has been asked `n_requests` times.
fn begin_turn(stage: &Stage, args: &str, n_requests: usize) -> Child {
    let newest = stage.sessions().into_iter().next().unwrap_or_default();
    let args = args.replace(SESSION, &newest);
    let program = env!("CARGO_BIN_EXE_crow-cli");
    let child = stage.command(&format!("exec '{program}' {args}")).spawn().expect("the shell starts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(stage.server.wait_for_requests(n_requests));
    child
}

/// Replaces the IDs of sessions and processes, which differ each time.
fn with_example_values(printed: &str) -> String {
    let mut text = printed.to_owned();
    for (before, example) in [("session ", SESSION), ("(process ", "4711")] {
        let Some((_, rest)) = text.split_once(before) else { continue };
        let id = rest.trim_start().split([' ', '\n', ')']).next().unwrap_or_default().to_owned();
        text = text.replace(&id, example);
    }
    text
}

/// Renders a fault as a section of the page.
fn render_fault(fault: &Fault) -> String {
    let Fault { title, event, config, script, prepare, commands, advice } = fault;
    let stage = Stage::configured(script, config);
    let other = prepare(&stage);
    let names_session = commands.iter().any(|command| command.contains(SESSION));
    let newest = if names_session { stage.sessions().into_iter().next() } else { None };
    let newest = newest.unwrap_or_default();
    let mut text = format!("\n## {title}\n\n{event}\n\n```console\n");
    for command in *commands {
        let args = command.replace("crow-cli", "crow").replace(SESSION, &newest);
        let printed = stage.crow(&format!("{args} 2>&1")).stdout;
        text += &format!("$ {command}\n{}\n", with_example_values(printed.trim_end()));
    }
    if let Some(mut other) = other {
        other.kill().expect("it runs");
        other.wait().expect("it ends");
    }
    text + &format!("```\n\n{advice}\n")
}

#[test]
fn page_shows_what_each_fault_looks_like() {
    let mut page = "# Faults, and what you see\n\n\
        What Crow prints when something around it fails. The interactive terminal shows the same sentences, and an editor gets\n\
        them as [errors](errors.md#errors-in-an-editor). The exit code is 0 only where the turn came to its end.\n\n\
        <!-- A test causes each fault and writes this page: `UPDATE_EXPECT=1 cargo test -p crow-cli --test it faults`. -->\n"
        .to_owned();
    page.extend(FAULTS.iter().map(render_fault));
    expect_file!["../../../../../docs/user/reference/faults.md"].assert_eq(&page);
}

//! The page of faults: what a person sees of each, made by this test.

mod databases;
mod ends;
mod inspecting_proxy;
mod providers;
mod servers;

use std::any::Any;
use std::os::unix::process::CommandExt as _;
use std::process::Child;

use expect_test::expect_file;

use super::Stage;
use crate::threads::map_on_threads;

/// A way to damage what is around Crow, and what a person then sees.
struct Fault {
    title: &'static str,
    /// The event, before the output.
    event: &'static str,
    /// The configuration; `$URL` is the address of the model server, `$NOTES` a program that is an MCP server.
    config: &'static str,
    /// The answers of the model server.
    script: &'static str,
    /// Brings the fault about.
    prepare: fn(&Stage) -> Surroundings,
    /// The commands, as a person types them.
    commands: &'static [&'static str],
    /// Acts on a command while it runs.
    meanwhile: fn(&Stage, &Child),
    /// The rest of the section: the state that is kept, and advice.
    advice: &'static str,
}

/// The environment of the commands while they run.
#[derive(Default)]
struct Surroundings {
    /// Variables of their environment.
    env: Vec<(&'static str, String)>,
    /// Ends what was started, when it is dropped.
    _other: Option<Box<dyn Any>>,
}

/// A process that is killed when it is dropped.
struct OtherProcess(Child);

impl Drop for OtherProcess {
    fn drop(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Surroundings {
    fn with(other: impl Any) -> Self {
        Self { env: Vec::new(), _other: Some(Box::new(other)) }
    }
}

const MODEL: &str = "providers:\n  acme: { base_url: $URL, api_key: '${ACME_API_KEY}' }\n\
                     models:\n  main: { provider: acme, model: scripted }\nmax_retries_per_step: 0\n";

/// A fault without preparation, with one command.
const PLAIN: Fault = Fault {
    title: "",
    event: "",
    config: MODEL,
    script: "",
    prepare: |_| Surroundings::default(),
    commands: &["crow-cli run 'Explain this folder.'"],
    meanwhile: |_, _| (),
    advice: "",
};

/// The chapters of the page.
const CHAPTERS: [(&str, &[Fault]); 4] = [
    ("The model and the network", &providers::FAULTS),
    ("The database and the disk", &databases::FAULTS),
    ("MCP servers and other Crows", &servers::FAULTS),
    ("An end in the middle of a turn", &ends::FAULTS),
];

/// Stands for the newest session in commands and on the page.
const SESSION: &str = "calm-tiny-finch";

/// Returns the newest session, or nothing before the first one.
fn newest_session(stage: &Stage) -> String {
    stage.sessions().into_iter().next().unwrap_or_default()
}

/// Starts a turn in another process and waits until the model has been asked `n_requests` times.
fn begin_turn(stage: &Stage, args: &str, n_requests: usize) -> Child {
    let args = args.replace(SESSION, &newest_session(stage));
    let program = env!("CARGO_BIN_EXE_crow-cli");
    let child = stage.command(&format!("exec '{program}' {args}")).spawn().expect("the shell starts");
    block_on(stage.server.wait_for_requests(n_requests));
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(future)
}

/// Runs a command of a fault; returns all that it prints.
fn run(stage: &Stage, fault: &Fault, surroundings: &Surroundings, args: &str) -> String {
    let mut command = stage.command(&format!("{args} 2>&1"));
    command.process_group(0).envs(surroundings.env.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn().expect("the shell starts");
    drop(child.stdin.take());
    (fault.meanwhile)(stage, &child);
    stage.plain(&child.wait_with_output().expect("it ends").stdout)
}

/// Renders a fault as a section of the page.
fn render_fault(fault: &Fault) -> String {
    let Fault { title, event, config, script, prepare, commands, advice, .. } = fault;
    let (notes, _) = crow_testkit::mcp_server::command(&[]);
    let stage = Stage::configured(script, &config.replace("$NOTES", &notes));
    let surroundings = prepare(&stage);
    let mut text = format!("\n### {title}\n\n{event}\n\n```console\n");
    for command in *commands {
        let mut args = command.replace("crow-cli", "crow");
        if args.contains(SESSION) {
            args = args.replace(SESSION, &newest_session(&stage));
        }
        let printed = run(&stage, fault, &surroundings, &args);
        text += &format!("$ {command}\n{}\n", with_example_values(printed.trim_end()));
    }
    assert_eq!(stage.server.rejections(), Vec::<String>::new(), "{title}: the model refused a request");
    text + &format!("```\n\n{advice}\n")
}

#[test]
fn page_shows_what_each_fault_looks_like() {
    let mut page = "# Faults, and what you see\n\n\
        What Crow prints when something around it fails. The interactive terminal shows the same sentences, and an editor gets\n\
        them as [errors](errors.md#errors-in-an-editor). The exit code is 0 only where the turn came to its end.\n\n\
        <!-- A test causes each fault and writes this page: `UPDATE_EXPECT=1 cargo test -p crow-cli --test it faults`. -->\n"
        .to_owned();
    let faults: Vec<&Fault> = CHAPTERS.iter().flat_map(|(_, faults)| *faults).collect();
    let mut sections = map_on_threads(&faults, |fault| render_fault(fault)).into_iter();
    for (chapter, faults) in CHAPTERS {
        page += &format!("\n## {chapter}\n");
        page.extend(sections.by_ref().take(faults.len()));
    }
    expect_file!["../../../../../docs/user/reference/faults.md"].assert_eq(&page);
}

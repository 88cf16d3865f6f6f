//! Agents at an address.

use std::path::Path;

use crow_acp::{
    AdmissionPolicy, AgentCommand, AgentLauncher, BearerToken, CloseReason, SocketListener, serve_socket,
    splice_transports,
};
use crow_client::{Agent, AgentOptions, FileAccess, SocketSource};
use crow_testkit::agent::command;
use expect_test::expect;
use tokio_util::sync::CancellationToken;

use crate::world::{error_text, hide_directory, run, show};

/// Serves a fake agent while `act` runs with its URL.
async fn with_agent<T>(directory: &Path, behaviors: &[&str], act: impl AsyncFnOnce(String) -> T) -> T {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let admission = AdmissionPolicy::with_token(BearerToken::new("right".into()));
    let listener = SocketListener { listener, name: None, admission };
    let url = listener.url().unwrap();
    let (program, args) = command(behaviors);
    let spec =
        AgentCommand { program, args, cwd: directory.to_owned(), env: Vec::new(), env_removed: Vec::new() };
    let launcher = AgentLauncher::new(None);
    let serve = move |lines| {
        let (launcher, spec) = (launcher.clone(), spec.clone());
        async move {
            let (agent, program) = launcher.start("far", spec).await.expect("it starts");
            splice_transports(lines, agent).await;
            let stderr = program.shut_down().await.stderr;
            CloseReason::AgentEnded { summary: "the agent exited".into(), stderr }
        }
    };
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve_socket(listener, stop.clone(), serve));
    let result = act(url).await;
    stop.cancel();
    server.await.unwrap();
    result
}

fn options(url: &str, directory: &Path, token: &str) -> AgentOptions<SocketSource> {
    let file = directory.join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    Agent::socket(url).token_file(file).cwd(directory)
}

#[test]
fn agent_at_an_address_gets_neither_files_nor_terminals() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let read = format!("reads={}/a.txt", directory.path().display());
    let shown = run(with_agent(directory.path(), &[&read, "terminal=pwd"], async |url| {
        let agent = options(&url, directory.path(), "right").connect().await.unwrap();
        let closed = show(agent.new_session().await.unwrap().prompt("go")).await;
        let agent = options(&url, directory.path(), "right").files(FileAccess::Read).connect().await.unwrap();
        let open = show(agent.new_session().await.unwrap().prompt("go")).await;
        agent.shut_down().await;
        format!("{closed}\n{open}")
    }));
    expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; fs/read_text_file: error -32603: this client does not provide files"
        text "; terminal/create: error -32603: this client does not provide terminals"
        end EndTurn text="echo: go; fs/read_text_file: error -32603: this client does not provide files; terminal/create: error -32603: this client does not provide terminals" answer="; fs/read_text_file: error -32603: this client does not provide files; terminal/create: error -32603: this client does not provide terminals" tokens=None context=None

        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; fs/read_text_file: {\"content\":\"one\\n\"}"
        text "; terminal/create: error -32603: this client does not provide terminals"
        end EndTurn text="echo: go; fs/read_text_file: {\"content\":\"one\\n\"}; terminal/create: error -32603: this client does not provide terminals" answer="; fs/read_text_file: {\"content\":\"one\\n\"}; terminal/create: error -32603: this client does not provide terminals" tokens=None context=None
    "#]].assert_eq(&hide_directory(&shown, directory.path()));
}

#[test]
fn connection_that_is_lost_has_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(with_agent(directory.path(), &["dies"], async |url| {
        let agent = options(&url, directory.path(), "right").connect().await.unwrap();
        show(agent.new_session().await.unwrap().prompt("go")).await.replace(&url, "$URL")
    }));
    expect![[r#"
        text "echo: "
        error: the connection to the agent $URL was lost during the session: the agent has disconnected: the other side closed it (1011): the agent exited: the wings fell off
    "#]].assert_eq(&shown);
}

#[test]
fn address_that_cannot_be_used_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(with_agent(directory.path(), &[], async |url| {
        let wrong = options(&url, directory.path(), "wrong").connect().await;
        let missing = Agent::socket(&url).token_file(directory.path().join("none")).connect().await;
        let unencrypted = options("ws://192.0.2.1/acp", directory.path(), "right").connect().await;
        let invalid = Agent::socket("ftp://127.0.0.1").connect().await;
        let errors = [wrong, missing, unencrypted, invalid].map(|result| error_text(result) + "\n").concat();
        let host = url.trim_start_matches("ws://").trim_end_matches("/acp");
        errors.replace(host, "$HOST")
    }));
    expect![[r#"
        the agent ws://$HOST/acp cannot be reached: $HOST rejected the connection: the token was rejected (HTTP 401)
        the agent ws://$HOST/acp cannot be reached: the token file $CWD/none does not exist
        the agent ws://192.0.2.1/acp cannot be reached: the token would be sent unencrypted; use wss://, or a tunnel such as `ssh -L`
        the agent ftp://127.0.0.1 cannot be reached: the address begins with none of ws://, wss://, http://, https://
    "#]].assert_eq(&hide_directory(&shown, directory.path()));
}

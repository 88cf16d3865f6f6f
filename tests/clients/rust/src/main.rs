//! Drives crow-cli with the Rust SDK over streamable HTTP, and over WebSocket: `run.sh rust`. The table of checks is at
//! the end.
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

mod editor;
mod model;

use std::env;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, PromptResponse, ResumeSessionRequest, SessionId,
    StopReason, TextContent,
};
use agent_client_protocol::{Agent, Error};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::editor::Editor;
use crate::model::Model;

/// What is waited for comes at once or never.
const PATIENCE: Duration = Duration::from_secs(20);

type Checked = Result<(), Box<dyn std::error::Error>>;

/// The transport that a URL selects.
#[derive(Clone, Copy)]
enum Scheme {
    Http,
    WebSocket,
}

/// What a check works with: a project, a model, and an agent process for each connection.
struct Stage {
    scheme: Scheme,
    crow: String,
    project: PathBuf,
    model: Model,
}

impl Stage {
    /// Starts a server, and connects this editor to it while `check` runs.
    async fn serve(
        &self,
        editor: &Editor,
        check: impl AsyncFnOnce(&ConnectionTo<Agent>) -> Result<(), Error>,
    ) -> Checked {
        let mut server = Command::new(&self.crow)
            .args(["acp", "--listen", "127.0.0.1:0"])
            .current_dir(&self.project)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let transport = self.transport(&mut server).await?;
        let connected = editor.connect(transport, async |connection| {
            let hello =
                InitializeRequest::new(ProtocolVersion::V1).client_capabilities(editor.capabilities());
            connection.send_request(hello).block_task().await?;
            check(&connection).await
        });
        connected.await?;
        let id = server.id().ok_or("the server ended")?;
        Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        let status = server.wait().await?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    async fn transport(&self, server: &mut Child) -> Result<HttpClient, Box<dyn std::error::Error>> {
        let output = server.stdout.take().ok_or("the server has no output")?;
        let line = BufReader::new(output).lines().next_line().await?.ok_or("the server said nothing")?;
        let ready: Value = serde_json::from_str(&line)?;
        let field = |name: &str| ready[name].as_str().ok_or_else(|| format!("no {name} in {line}"));
        let token = std::fs::read_to_string(field("token_file")?)?;
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {}", token.trim()).parse()?);
        let url = match self.scheme {
            Scheme::Http => field("url")?.replacen("ws://", "http://", 1),
            Scheme::WebSocket => field("url")?.to_owned(),
        };
        let builder = HttpClient::builder_with_endpoint(url);
        Ok(builder.configure_http(|http| http.no_proxy().default_headers(headers)).build()?)
    }

    async fn new_session(&self, crow: &ConnectionTo<Agent>) -> Result<SessionId, Error> {
        Ok(crow.send_request(NewSessionRequest::new(&self.project)).block_task().await?.session_id)
    }
}

async fn prompt(crow: &ConnectionTo<Agent>, session: &SessionId, text: &str) -> Result<StopReason, Error> {
    send_prompt(crow, session, text).await.map(|response| response.stop_reason)
}

fn send_prompt(
    crow: &ConnectionTo<Agent>,
    session: &SessionId,
    text: &str,
) -> impl Future<Output = Result<PromptResponse, Error>> + use<> {
    let text = ContentBlock::Text(TextContent::new(text));
    crow.send_request(PromptRequest::new(session.clone(), vec![text])).block_task()
}

fn same<T: PartialEq + std::fmt::Debug>(seen: T, wanted: T) -> Result<(), Error> {
    if seen == wanted { Ok(()) } else { Err(failure(format!("{seen:?} instead of {wanted:?}"))) }
}

fn failure(reason: impl Into<String>) -> Error {
    Error::internal_error().data(reason.into())
}

async fn streams(stage: &Stage) -> Checked {
    let editor = Editor::new("allow_once");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"thought "hm" | text "Hel" | text "lo""#]);
            same(prompt(crow, &session, "hi").await?, StopReason::EndTurn)?;
            same((editor.thought(), editor.text()), ("hm".into(), "Hello".into()))?;
            same(stage.model.last_texts(), vec!["hi".into()])
        })
        .await
}

async fn allows(stage: &Stage) -> Checked {
    let editor = Editor::new("allow_once");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[
                r#"call write {"file_path": "allowed.txt", "content": "yes\n"}"#,
                r#"text "done""#,
            ]);
            same(prompt(crow, &session, "write").await?, StopReason::EndTurn)?;
            same(editor.n_asked(), 1)?;
            same(std::fs::read_to_string(stage.project.join("allowed.txt")).ok(), Some("yes\n".into()))
        })
        .await
}

async fn denies(stage: &Stage) -> Checked {
    let editor = Editor::new("reject_once");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage
                .model
                .answer(&[r#"call write {"file_path": "denied.txt", "content": "no\n"}"#, r#"text "pity""#]);
            same(prompt(crow, &session, "write").await?, StopReason::EndTurn)?;
            same(stage.project.join("denied.txt").exists(), false)?;
            same(stage.model.last_texts().last().is_some_and(|text| text.contains("rejected")), true)
        })
        .await
}

async fn writes_through_client(stage: &Stage) -> Checked {
    let editor = Editor::with_files("allow_once");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage
                .model
                .answer(&[r#"call write {"file_path": "mine.txt", "content": "new\n"}"#, r#"text "done""#]);
            same(prompt(crow, &session, "write").await?, StopReason::EndTurn)?;
            same(editor.file(&stage.project.join("mine.txt")), Some("new\n".into()))?;
            same(stage.project.join("mine.txt").exists(), false)?;
            same(editor.n_missing(), 1)
        })
        .await
}

async fn reads_buffers(stage: &Stage) -> Checked {
    let editor = Editor::with_files("allow_once");
    std::fs::write(stage.project.join("open.txt"), "saved\n")?;
    editor.open_file(stage.project.join("open.txt"), "not saved\n");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"call read {"file_path": "open.txt"}"#, r#"text "done""#]);
            same(prompt(crow, &session, "read").await?, StopReason::EndTurn)?;
            same(stage.model.last_texts().last().is_some_and(|text| text.contains("not saved")), true)
        })
        .await
}

async fn cancels_reply(stage: &Stage) -> Checked {
    let editor = Editor::new("allow_once");
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"text "part" | hold"#]);
            let turn = send_prompt(crow, &session, "long");
            let cancel = async {
                editor.wait_until(|editor| editor.text() == "part").await;
                crow.send_notification(CancelNotification::new(session.clone()))
            };
            let (turn, cancelled) = tokio::join!(turn, cancel);
            cancelled?;
            same(turn?.stop_reason, StopReason::Cancelled)?;
            stage.model.answer(&[r#"text "next""#]);
            same(prompt(crow, &session, "again").await?, StopReason::EndTurn)
        })
        .await
}

async fn cancels_question(stage: &Stage) -> Checked {
    let editor = Editor::silent();
    stage
        .serve(&editor, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"call terminal {"command": "touch asked.txt"}"#]);
            let turn = send_prompt(crow, &session, "run");
            let cancel = async {
                editor.wait_until(|editor| editor.n_asked() == 1).await;
                crow.send_notification(CancelNotification::new(session.clone()))
            };
            let (turn, cancelled) = tokio::join!(turn, cancel);
            cancelled?;
            same(turn?.stop_reason, StopReason::Cancelled)
        })
        .await
}

async fn opens_again(stage: &Stage) -> Checked {
    let (first, loading, resuming) =
        (Editor::new("allow_once"), Editor::new("allow_once"), Editor::new("allow_once"));
    let mut opened = None;
    stage
        .serve(&first, async |crow| {
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"thought "hm" | text "Done.""#]);
            same(prompt(crow, &session, "tell me").await?, StopReason::EndTurn)?;
            opened = Some(session);
            Ok(())
        })
        .await?;
    let session = opened.ok_or("no session")?;
    stage
        .serve(&loading, async |crow| {
            let listed = crow.send_request(ListSessionsRequest::new()).block_task().await?;
            same(listed.sessions.first().map(|info| info.session_id.clone()), Some(session.clone()))?;
            crow.send_request(LoadSessionRequest::new(session.clone(), &stage.project)).block_task().await?;
            same((loading.thought(), loading.text()), (first.thought(), first.text()))?;
            crow.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
            same(prompt(crow, &session, "hello?").await.map_err(|error| i32::from(error.code)), Err(-32002))
        })
        .await?;
    stage
        .serve(&resuming, async |crow| {
            crow.send_request(ResumeSessionRequest::new(session.clone(), &stage.project))
                .block_task()
                .await?;
            same(resuming.text(), String::new())?;
            stage.model.answer(&[r#"text "I know.""#]);
            same(prompt(crow, &session, "remember?").await?, StopReason::EndTurn)
        })
        .await
}

async fn says_errors(stage: &Stage) -> Checked {
    let editor = Editor::new("allow_once");
    stage
        .serve(&editor, async |crow| {
            let code = async |request| match prompt(crow, &request, "hi").await {
                Ok(stop_reason) => Err(failure(format!("{stop_reason:?} instead of an error"))),
                Err(error) => Ok(i32::from(error.code)),
            };
            same(code(SessionId::new("no-such-session")).await?, -32002)?;
            let session = stage.new_session(crow).await?;
            stage.model.answer(&[r#"status 401 {"error": {"message": "who?"}}"#]);
            same(code(session).await?, -32603)
        })
        .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let only = variable("ONLY");
    let mut stage = Stage {
        scheme: Scheme::Http,
        crow: variable("CROW"),
        project: variable("PROJECT").into(),
        model: Model::open(),
    };
    let mut exit = ExitCode::SUCCESS;
    for (name, scheme) in [("rust-http", Scheme::Http), ("rust-websocket", Scheme::WebSocket)] {
        stage.scheme = scheme;
        macro_rules! run_checks {
            ($($words:literal: $check:ident,)*) => {$(
                if $words.contains(&only) {
                    stage.model.forget_answers();
                    let checked = tokio::time::timeout(PATIENCE, $check(&stage)).await;
                    match checked.unwrap_or_else(|_| Err("it takes too long".into())) {
                        Ok(()) => println!("ok {name}: {}", $words),
                        Err(error) => {
                            exit = ExitCode::FAILURE;
                            println!("FAILED {name}: {}: {}", $words, format!("{error:?}").replace('\n', " "));
                        }
                    }
                }
            )*};
        }
        run_checks! {
            "a prompt streams": streams,
            "permission allowed": allows,
            "permission denied, and the model knows": denies,
            "a write goes through the client": writes_through_client,
            "a read sees what is not saved": reads_buffers,
            "cancel in a reply": cancels_reply,
            "cancel in a question": cancels_question,
            "list, load, close and resume": opens_again,
            "errors": says_errors,
        }
    }
    exit
}

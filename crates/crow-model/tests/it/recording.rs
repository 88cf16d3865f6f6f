//! Records requests and responses, and replays them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crow_core::FailureKind;
use crow_model::RequestRecorder;
use serde_json::Value;

use super::*;

/// Sends as many requests as there are responses and records them; returns the recordings and the replies.
async fn keep(directory: &Path, script: impl Into<Script>, n_asked: usize) -> (String, String) {
    let server = ModelServer::start(script);
    let http = HttpClients::new().unwrap().with_recorder(RequestRecorder::start(directory).unwrap());
    let replies = ask_all(&http, server.base_url(), n_asked).await;
    (kept(directory), replies)
}

async fn ask_all(http: &HttpClients, base_url: &str, n_asked: usize) -> String {
    let settings = ModelSettings { retries_max: 0, ..settings(base_url) };
    let mut replies = String::new();
    for _ in 0..n_asked {
        let (ears, _heard) = mpsc::channel(HEARD_MAX);
        let reply = ask_once(http, &settings, ears, &CancellationToken::new()).await;
        _ = writeln!(replies, "{}", show(&reply));
    }
    replies.replace(base_url, "$URL")
}

/// The files of a directory, without timestamps.
fn kept(directory: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut kept = String::new();
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        _ = writeln!(kept, "{} {mode:o}", file.file_name().unwrap().to_str().unwrap());
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            for name in ["ms", "date"] {
                line.as_object_mut().unwrap().remove(name);
            }
            _ = writeln!(kept, "  {line}");
        }
    }
    assert!(!kept.contains(KEY) && !kept.contains("seven"), "{kept}");
    kept
}

#[tokio::test]
async fn recording_has_no_keys() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("a/b");
    let echo = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"Bearer {KEY}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let script = Script::new([
        Answer::raw(echo).split(40),
        Answer::parse(r#"header "retry-after" "0" | header "set-cookie" "c" | status 503 {"error":"busy"}"#),
        Answer::raw(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff".as_slice()),
    ]);
    let (files, _) = keep(&directory, script, 3).await;
    let body = r#""body":{"model":"acme-9","messages":"#;
    assert_eq!(files.matches(body).count(), 3, "{files}");
    let answers: String =
        files.lines().filter(|line| !line.contains(body)).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        0001-acme-acme-9.jsonl 600
          {"status":200,"headers":{"content-type":"text/event-stream"}}
          {"text":"data: {\"choices\":[{\"delta\":{\"content\":\"B"}
          {"text":"earer [secret]\"},\"finish_rea"}
          {"text":"son\":\"stop\"}]}\n\ndata: [DONE]\n\n"}
          {"end":"whole"}
        0002-acme-acme-9.jsonl 600
          {"status":503,"headers":{"content-type":"application/json","retry-after":"0"}}
          {"text":"{\"error\":\"busy\"}"}
          {"end":"whole"}
        0003-acme-acme-9.jsonl 600
          {"status":200,"headers":{"content-type":"text/event-stream"}}
          {"base64":"ZGF0YTogeyJjaG9pY2VzIjpbeyJkZWx0YSI6eyJjb250ZW50Ijoi/w=="}
          {"end":"whole"}
    "#]]
    .assert_eq(&answers);
    let head = files.lines().nth(1).unwrap().split_once(r#","body""#).unwrap().0;
    expect![[r#"  {"recording":1,"provider":"acme","model":"acme-9","method":"POST","path":"/v1/chat/completions","headers":{"accept":"text/event-stream, application/json","content-type":"application/json"}"#]].assert_eq(head);
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn recording_is_replayed() {
    let home = tempfile::tempdir().unwrap();
    let script = "thought \"hm\" | text \"Grüße\" | call read {\"p\":1} | usage 10 2\nstatus 400 {\"error\":{\"message\":\"no\"}}\ntext \"Half\" | cut\ncut";
    let (files, replies) = keep(home.path(), script, 4).await;
    let server = ModelServer::replay(home.path());
    let again = ask_all(&HttpClients::new().unwrap(), server.base_url(), 5).await;
    assert_eq!(server.rejections(), ["request 4: everything recorded was asked already"]);
    let same: String = again.lines().take(4).map(|line| format!("{line}\n")).collect();
    assert_eq!(same, replies, "{files}");
}

#[tokio::test]
async fn abandoned_request_leaves_a_recording() {
    let home = tempfile::tempdir().unwrap();
    let server = ModelServer::start("text \"Begun\" | hold");
    let http = HttpClients::new().unwrap().with_recorder(RequestRecorder::start(home.path()).unwrap());
    let (ears, mut heard) = mpsc::channel(HEARD_MAX);
    let (cancel, settings) = (CancellationToken::new(), settings(server.base_url()));
    let (reply, ()) = tokio::join!(ask_once(&http, &settings, ears, &cancel), async {
        heard.recv().await.unwrap();
        cancel.cancel();
    });
    assert_eq!(reply.end, ReplyEnd::Cancelled);
    // The last one waits for the disk.
    drop(http);
    let kept = kept(home.path());
    assert!(kept.ends_with("  {\"end\":\"left\"}\n") && kept.contains("Begun"), "{kept}");
}

#[tokio::test]
async fn recordings_are_not_overwritten() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("0007-acme-acme-9.jsonl"), "{}").unwrap();
    let (server, other) = (ModelServer::start("text \"1\""), ModelServer::start("text \"2\""));
    let http = || HttpClients::new().unwrap().with_recorder(RequestRecorder::start(home.path()).unwrap());
    // Both counted before either wrote.
    let (one, two) = (http(), http());
    ask_all(&one, server.base_url(), 1).await;
    ask_all(&two, other.base_url(), 1).await;
    let files: Vec<String> =
        kept(home.path()).lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect();
    let expected = ["0007-acme-acme-9.jsonl", "0008-acme-acme-9.jsonl 600", "0009-acme-acme-9.jsonl 600"];
    assert!(files.iter().zip(expected).all(|(file, name)| file.starts_with(name)), "{files:?}");
    assert_eq!(files.len(), 3);
}

#[tokio::test]
async fn unusable_recording_directory_is_reported_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let failure = RequestRecorder::start(&file).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config);
    assert!(failure.message.starts_with(&format!("could not record in {}: ", file.display())));

    let directory = home.path().join("gone");
    let http = HttpClients::new().unwrap().with_recorder(RequestRecorder::start(&directory).unwrap());
    std::fs::remove_dir(&directory).unwrap();
    let server = ModelServer::start("text \"Hello\"");
    assert_eq!(ask_all(&http, server.base_url(), 1).await, "= \"\" \"Hello\" Complete\n");
    assert!(!directory.exists());
}

//! Messages of every kind, and damaged ones.

use std::fs;

use expect_test::expect;
use serde_json::json;

use super::{Old, check};
use crow_store::Timestamp;

#[test]
fn parallel_calls_with_their_results() {
    let mut old = Old::of_0_1_48();
    let agent = old.forked("s", 1, 1, None);
    old.user(&agent, "look");
    old.calls(
        &agent,
        &[
            ("c1", "read", r#"{"file_path": "src/a.rs"}"#),
            ("c2", "crow-mcp_terminal", r#"{"command": "ls\nwc"}"#),
            ("c3", "web_search", r#"{"queries": ["crows", "ravens"]}"#),
            ("c4", "tickets_find", "{}"),
        ],
    );
    old.result(&agent, "c2", "a.rs");
    old.result(&agent, "c1", "fn main() {}");
    old.result(&agent, "c4", "Error: no such ticket");
    old.result(&agent, "c3", "");
    old.assistant(&agent, "done");
    check(
        &old,
        expect![[r#"
            s in /p with qwen3: look
              prompt "look"
              reply "" call-1-0=c1:read {"file_path":"src/a.rs"} call-1-1=c2:crow-mcp_terminal {"command":"ls\nwc"} call-1-2=c3:web_search {"queries":["crows","ravens"]} call-1-3=c4:tickets_find {}
              call-1-1 Execute `ls…`[] Completed: "a.rs"
              call-1-0 Read `Read src/a.rs`["/p/src/a.rs"] Completed: "fn main() {}"
              call-1-3 Other `tickets_find`[] Failed: "Error: no such ticket"
              call-1-2 Search `Search the web: crows · ravens`[] Completed: "(no output)"
              reply "done"
        "#]],
    );
}

#[test]
fn calls_without_results_and_results_without_calls() {
    let mut old = Old::of_0_1_22();
    let agent = old.agent("s", 1, "/p");
    old.result(&agent, "c0", "for no call");
    old.user(&agent, "look");
    old.calls(&agent, &[("c1", "read", "{}"), ("c1", "read", "{}"), ("", "edit", "{}"), ("c4", "", "{}")]);
    old.result(&agent, "c1", "the first");
    old.user(&agent, "meanwhile");
    old.result(&agent, "", "edited");
    old.result(&agent, "c4", "of no tool");
    old.assistant(&agent, "go on");
    old.result(&agent, "c1", "too late");
    old.calls(&agent, &[("c1", "write", "{}")]);
    check(
        &old,
        expect![[r#"
            s in /p with qwen3: look
              prompt "look"
              reply "" call-1-0=c1:read {} call-1-1=c1:read {} call-1-2=call-1-2:edit {}
              call-1-0 Read `read`[] Completed: "the first"
              call-1-2 Edit `edit`[] Completed: "edited"
              call-1-1 Read `read`[] Failed: "no result of this call was stored; make it again if it is still needed"
              prompt "meanwhile"
              reply "go on"
              reply "" call-7-0=c1:write {}
              call-7-0 Edit `write`[] Failed: "no result of this call was stored; make it again if it is still needed"
            lost: 3 results without a call
        "#]],
    );
}

#[test]
fn arguments_that_are_not_json() {
    let mut old = Old::of_0_1_22();
    let agent = old.agent("s", 1, "/p");
    old.user(&agent, "go");
    old.calls(
        &agent,
        &[("1", "read", r#"{"path": "a""#), ("2", "read", "nothing at all"), ("3", "read", "")],
    );
    let object =
        json!({"id": "4", "function": {"name": "write", "arguments": {"path": "/b", "content": "x"}}});
    old.say(&agent, json!({"role": "assistant", "content": null, "tool_calls": [object, 7, {"id": "5"}]}));
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: go
          prompt "go"
          reply "" call-1-0=1:read repaired {"path":"a"} call-1-1=2:read unreadable call-1-2=3:read {}
          call-1-0 Read `Read a`["/p/a"] Failed: "no result of this call was stored; make it again if it is still needed"
          call-1-1 Read `read`[] Failed: "no result of this call was stored; make it again if it is still needed"
          call-1-2 Read `read`[] Failed: "no result of this call was stored; make it again if it is still needed"
          reply "" call-5-0=4:write {"path":"/b","content":"x"}
          call-5-0 Edit `Write /b`["/b"] Failed: "no result of this call was stored; make it again if it is still needed"
    "#]],
    );
}

#[test]
fn images_are_in_the_message_or_in_files() {
    let mut old = Old::of_0_1_48();
    let images = old.directory.path().join("images");
    fs::create_dir(&images).unwrap();
    let (here, gone) = (format!("{}.png", "a1".repeat(32)), format!("{}.png", "b2".repeat(32)));
    fs::write(images.join(&here), b"png").unwrap();
    fs::write(old.directory.path().join("secret.png"), b"secret").unwrap();
    let agent = old.forked("s", 1, 1, None);
    let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let stored = |path: &str| json!({"type": "image_ref", "path": path, "mime": "image/png"});
    let pieces = json!([
        {"type": "text", "text": "see"},
        url("data:image/jpeg;base64,aGk="),
        url("https://example.org/a.png"),
        url("data:text/html;base64,aGk="),
        url("data:image/png;base64,not base64"),
        {"type": "image", "mimeType": "image/webp", "data": "aGkh"},
        stored(&here),
        stored(&gone),
        stored("../secret.png"),
    ]);
    old.say(&agent, json!({"role": "user", "content": pieces}));
    old.calls(&agent, &[("c", "read_image_file", r#"{"file_path": "/p/a.png"}"#)]);
    old.say(&agent, json!({"role": "tool", "tool_call_id": "c", "content": [stored(&here)]}));
    check(
        &old,
        expect![[r#"
            s in /p with qwen3: see…
              prompt "see" [image/jpeg aGk=] <https://example.org/a.png> "(an image here is no longer available)" "(an image here is no longer available)" [image/webp aGkh] [image/png cG5n] "(an image here is no longer available)" "(an image here is no longer available)"
              reply "" call-1-0=c:read_image_file {"file_path":"/p/a.png"}
              call-1-0 Read `Read /p/a.png`["/p/a.png"] with an image Completed: [image/png cG5n]
            lost: 4 images that are missing
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn image_links_are_not_followed() {
    let mut old = Old::of_0_1_48();
    let images = old.directory.path().join("images");
    fs::create_dir(&images).unwrap();
    fs::write(old.directory.path().join("secret"), b"secret").unwrap();
    let name = format!("{}.png", "c3".repeat(32));
    std::os::unix::fs::symlink("../secret", images.join(&name)).unwrap();
    let agent = old.forked("s", 1, 1, None);
    old.say(&agent, json!({"role": "user", "content": [{"type": "image_ref", "path": name}]}));
    check(
        &old,
        expect![[r#"
        s in /p with qwen3: (an image here is no longer available)
          prompt "(an image here is no longer available)"
        lost: 1 images that are missing
    "#]],
    );
}

#[test]
fn invalid_rows_are_counted() {
    let mut old = Old::of_0_1_48();
    let agent = old.forked("s", 1, 1, None);
    old.user(&agent, "hello");
    for data in ["", "{", "null", "[]", "7", "\"x\"", "{\"role\": \"assistant\", \"content\": NaN}"] {
        old.row(&agent, "assistant", data);
    }
    let halves = r#"{"content": "\ud83d\udc26 \ud83d, \udc80\\ud83d \n\ud83d"}"#;
    old.row(&agent, "user", halves);
    old.row(&agent, "critic", r#"{"content": "unknown role"}"#);
    old.row(&agent, "user", r#"{"content": "the row knows the role"}"#);
    old.row(
        &agent,
        "user",
        &json!(json!({"role": "user", "content": "twice encoded"}).to_string()).to_string(),
    );
    old.row(&agent, "assistant", &"[".repeat(100_000));
    old.say(
        &agent,
        json!({"role": "user", "content": ["plain", 7, {"type": "audio"}, {"type": "x", "text": "words"}]}),
    );
    for nothing in [json!(null), json!(""), json!(" \n"), json!([]), json!([{"type": "text", "text": ""}])] {
        old.say(&agent, json!({"role": "user", "content": nothing}));
        old.say(&agent, json!({"role": "assistant", "content": nothing}));
    }
    old.row("unknown-1-1", "user", r#"{"role": "user", "content": "of no session"}"#);
    old.execute(
        "INSERT INTO messages (agent_id, fork_idx, created_at, data, role) VALUES
         ('s-1-1', 1, x'00ff', x'7b22726f6c65223a2275736572222c22636f6e74656e74223a22626c6f62227d', x'ff'),
         ('s-1-1', 1, 'yesterday', x'ff', 3.5)",
    );
    check(
        &old,
        expect![[r#"
            s in /p with qwen3: hello
              prompt "hello"
              prompt "🐦 �, �\\ud83d \n�"
              prompt "the row knows the role"
              prompt "twice encoded"
              prompt "plain" "words"
              prompt "blob"
            lost: 11 messages that cannot be read, 2 pieces of an unknown kind
        "#]],
    );
}

#[test]
fn times_are_milliseconds_in_every_layout() {
    let mut old = Old::of_0_1_48();
    let agent = old.forked("s", 1, 1, None);
    old.user(&agent, "hello");
    old.execute("UPDATE messages SET created_at = '2026-01-02T05:04:05.678901+02:00' WHERE role = 'user'");
    let (sessions, _) = old.read();
    let session = sessions.first().unwrap();
    assert_eq!(session.created, Timestamp(1_767_322_800_000));
    assert_eq!(session.updated, Timestamp(1_767_323_045_679));
    assert_eq!(session.entries.first().unwrap().1, session.updated);

    // The first layout stored local times: the time zone of this machine decides, within a day.
    old.execute("UPDATE messages SET created_at = '2026-01-02 03:04:05.678901'");
    let (sessions, _) = old.read();
    let off = sessions.first().unwrap().entries.first().unwrap().1.0 - 1_767_323_045_679;
    assert!(off.abs() < 24 * 3_600_000 && off % 1_000 == 0, "{off}");

    // An invalid time becomes that of the previous message.
    old.execute("UPDATE messages SET created_at = 'yesterday'");
    let (sessions, _) = old.read();
    assert_eq!(sessions.first().unwrap().entries.first().unwrap().1, Timestamp(1_767_322_800_000));
}

#[test]
fn usage_stays_with_its_reply() {
    let mut old = Old::of_0_1_48();
    let agent = old.forked("s", 1, 1, None);
    old.user(&agent, "hello");
    old.assistant(&agent, "hi");
    old.execute("UPDATE messages SET prompt_tokens = 'many', completion_tokens = -5 WHERE role = 'user'");
    let (sessions, _) = old.read();
    let Some((crow_core::TranscriptEntry::Reply(reply), _)) = sessions.first().unwrap().entries.get(1) else {
        panic!()
    };
    assert_eq!(reply.usage, Some(crow_core::TokenUsage::new(30, 1)));
    old.execute("UPDATE messages SET prompt_tokens = 'many', completion_tokens = -5");
    let (sessions, _) = old.read();
    let Some((crow_core::TranscriptEntry::Reply(reply), _)) = sessions.first().unwrap().entries.get(1) else {
        panic!()
    };
    assert_eq!(reply.usage, None);
}

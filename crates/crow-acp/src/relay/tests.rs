//! Both halves, line by line.

mod resumed;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// Shortens a line: the method or the ID of a response, and what matters in it.
fn shorten(line: &str) -> String {
    let message: Value = serde_json::from_str(line).unwrap();
    let mut parts = Vec::new();
    if !message["id"].is_null() {
        parts.push(format!("#{}", message["id"]));
    }
    parts.extend(message["method"].as_str().map(str::to_owned));
    let params = &message["params"];
    for name in ["sessionId", "cwd", "cursor", "configId", "value", "prompt", "requestId", "update"] {
        if !params[name].is_null() {
            parts.push(format!("{name}={}", params[name]));
        }
    }
    for name in ["result", "error"] {
        if !message[name].is_null() {
            parts.push(format!("{name}={}", message[name]));
        }
    }
    parts.join(" ")
}

fn render_worker(actions: Vec<WorkerRelayAction>) -> String {
    let lines = actions.into_iter().map(|action| match action {
        WorkerRelayAction::SendToAgent(line) => format!("  agent < {}\n", shorten(&line)),
        WorkerRelayAction::SendToParent(line) => format!("  parent < {}\n", shorten(&line)),
        WorkerRelayAction::NotResumed { reason, is_missing } => {
            format!("  not resumed: {reason}, missing={is_missing}\n")
        }
        WorkerRelayAction::End(RelayOutcome { response, answer, is_complete }) => {
            format!("  end {} {answer:?} complete={is_complete}\n", Value::Object(response))
        }
    });
    lines.collect()
}

fn render_parent(actions: Vec<ParentRelayAction>) -> String {
    let lines = actions.into_iter().map(|action| match action {
        ParentRelayAction::SendToClient(line) => format!("  client < {}\n", shorten(&line)),
        ParentRelayAction::SendToWorker(line) => format!("  worker < {}\n", shorten(&line)),
        other @ (ParentRelayAction::StartTask { .. } | ParentRelayAction::CancelTask) => {
            format!("  {other:?}\n")
        }
    });
    lines.collect()
}

fn update(text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    json!({ "jsonrpc": "2.0", "method": UPDATE, "params": { "sessionId": "far", "update": update } })
        .to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads best in place")]
fn response(id: impl Into<Value>, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result }).to_string()
}

/// Parses IDs of sessions, and the cursor of a further page after an ellipsis.
fn sessions_page(page: &str) -> Value {
    let (sessions, cursor) = match page.split_once('…') {
        Some((sessions, cursor)) => (sessions, Some(cursor.trim())),
        None => (page, None),
    };
    let sessions = sessions.split_whitespace().map(|id| json!({ "sessionId": id, "cwd": "/first" }));
    json!({ "sessions": sessions.collect::<Vec<_>>(), "nextCursor": cursor })
}

fn question(id: impl Into<Value>) -> String {
    let params = json!({ "sessionId": "far", "toolCall": {}, "options": [] });
    let id: Value = id.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
        .to_string()
}

/// Runs the relay of a worker with a new session.
#[track_caller]
fn check_worker(steps: &str, expected: &Expect) {
    run_worker(None, steps, expected);
}

/// Runs a worker's relay: words separated by ` / `.
#[track_caller]
fn run_worker(session: Option<&str>, steps: &str, expected: &Expect) {
    expected.assert_eq(&log_worker(session, steps));
}

fn log_worker(session: Option<&str>, steps: &str) -> String {
    let (mut relay, actions) = WorkerRelay::start(RelayTask {
        cwd: "/work".into(),
        session: session.map(|id| ResumedSession { id: id.to_owned(), first_cwd: "/first".into() }),
        prompt: "count".to_owned(),
        model: Some("small".to_owned()),
        mode: crow_core::Mode::Ask,
        version: "0",
    });
    let mut log = render_worker(actions);
    for step in steps.split(" / ") {
        log.push_str(&format!("{step}\n"));
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        if word == "resumable" {
            log.push_str(&format!(
                "  {:?}, {} calls have ended\n",
                relay.resumable_session(),
                relay.n_ended_calls()
            ));
            continue;
        }
        let actions = step_worker(&mut relay, word, rest);
        log.push_str(&render_worker(actions));
    }
    log
}

fn step_worker(relay: &mut WorkerRelay, word: &str, rest: &str) -> Vec<WorkerRelayAction> {
    match (word, rest) {
        ("capable", _) => {
            let sessions = json!({ "sessionCapabilities": { "resume": {} } });
            relay.handle_agent_line(&response(1, json!({ "agentCapabilities": sessions })))
        }
        ("incapable", _) => relay.handle_agent_line(&response(1, json!({}))),
        ("result", id) => relay.handle_agent_line(&response(id.parse::<u64>().unwrap(), json!({}))),
        ("refused", numbers) => {
            let (id, code) = numbers.split_once(' ').unwrap();
            let error = json!({ "code": code.parse::<i64>().unwrap(), "message": "no" });
            relay.handle_agent_line(&json!({ "id": id.parse::<u64>().unwrap(), "error": error }).to_string())
        }
        ("listed", page) => {
            let (id, page) = page.split_once(' ').unwrap();
            relay.handle_agent_line(&response(id.parse::<u64>().unwrap(), sessions_page(page)))
        }
        ("again", _) => relay.resume_again(),
        ("attach", _) => relay.attach(),
        ("detach", _) => {
            relay.detach();
            Vec::new()
        }
        ("cancel", _) => relay.cancel(),
        ("fail", reason) => relay.fail(reason),
        ("opened", _) => {
            let mut actions = Vec::new();
            for (id, result) in
                [(1, json!({})), (2, json!({"sessionId": "far"})), (3, json!({})), (4, json!({}))]
            {
                actions.extend(relay.handle_agent_line(&response(id, result)));
            }
            actions
        }
        ("say", text) => relay.handle_agent_line(&update(text)),
        ("call", _) => {
            let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls" });
            let params = json!({ "sessionId": "far", "update": update });
            relay.handle_agent_line(&json!({ "method": UPDATE, "params": params }).to_string())
        }
        ("ended", status) => {
            let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": status });
            let params = json!({ "sessionId": "far", "update": update });
            relay.handle_agent_line(&json!({ "method": UPDATE, "params": params }).to_string())
        }
        ("flood", _) => relay.handle_agent_line(&update(&"x".repeat(300 * 1024))),
        ("ask", id) => relay.handle_agent_line(&question(id)),
        ("read", _) => relay
            .handle_agent_line(&json!({ "id": 1, "method": "fs/read_text_file", "params": {} }).to_string()),
        ("stopped", _) => relay.handle_agent_line(&response(5, json!({ "stopReason": "end_turn" }))),
        ("steered", _) => relay.handle_agent_line(&response(6, json!({ "outcome": "injected" }))),
        ("answer", id) => relay.handle_parent_line(&response(id, json!({ "outcome": {} }))),
        ("steer", _) => relay.handle_parent_line(
            &json!({ "id": "s", "method": STEERING, "params": { "sessionId": "near" } }).to_string(),
        ),
        ("order", method) => {
            relay.handle_parent_line(&json!({ "id": 1, "method": method, "params": {} }).to_string())
        }
        _ => panic!("{word} {rest}"),
    }
}

#[test]
fn worker_opens_a_session_and_sends_the_prompt() {
    check_worker(
        "opened / attach / say one / call / say two / stopped / say three",
        &expect![[r#"
          agent < #1 initialize
        opened
          agent < #2 session/new cwd="/work"
          agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
          agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
          agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
        attach
        say one
          parent < session/update sessionId="far" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one"}}
        call
          parent < session/update sessionId="far" update={"sessionUpdate":"tool_call","toolCallId":"1","title":"ls"}
        say two
          parent < session/update sessionId="far" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}
        stopped
          end {"result":{"stopReason":"end_turn"}} "two" complete=true
        say three
    "#]],
    );
}

#[test]
fn questions_wait_for_a_parent_and_are_asked_again() {
    check_worker(
        "opened / ask q1 / say early / detach / attach / detach / say lost / attach / answer q2 / answer q1 / answer q1 / stopped",
        &expect![[r#"
              agent < #1 initialize
            opened
              agent < #2 session/new cwd="/work"
              agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
              agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
              agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
            ask q1
            say early
            detach
            attach
              parent < session/update sessionId="far" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"early"}}
              parent < #"q1" session/request_permission sessionId="far"
            detach
            say lost
            attach
              parent < #"q1" session/request_permission sessionId="far"
            answer q2
            answer q1
              agent < #"q1" result={"outcome":{}}
            answer q1
            stopped
              end {"result":{"stopReason":"end_turn"}} "earlylost" complete=false
        "#]],
    );
}

#[test]
fn too_many_early_updates_are_dropped_and_the_answer_is_kept() {
    check_worker(
        "opened / say early / flood / attach / call / say end / stopped",
        &expect![[r#"
          agent < #1 initialize
        opened
          agent < #2 session/new cwd="/work"
          agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
          agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
          agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
        say early
        flood
        attach
        call
          parent < session/update sessionId="far" update={"sessionUpdate":"tool_call","toolCallId":"1","title":"ls"}
        say end
          parent < session/update sessionId="far" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"end"}}
        stopped
          end {"result":{"stopReason":"end_turn"}} "end" complete=false
    "#]],
    );
}

#[test]
fn parent_sends_nothing_but_answers_cancellation_and_steering() {
    check_worker(
        "steer / opened / attach / steer / order session/prompt / order session/set_mode / steered / read",
        &expect![[r#"
              agent < #1 initialize
            steer
              parent < #"s" error={"code":-32601,"message":"the task does not take this at the moment"}
            opened
              agent < #2 session/new cwd="/work"
              agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
              agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
              agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
            attach
            steer
              agent < #6 _session/steering sessionId="far"
            order session/prompt
              parent < #1 error={"code":-32601,"message":"the task does not take this at the moment"}
            order session/set_mode
              parent < #1 error={"code":-32601,"message":"the task does not take this at the moment"}
            steered
              parent < #"s" result={"outcome":"injected"}
            read
              agent < #1 error={"code":-32601,"message":"this client does not have that method"}
        "#]],
    );
}

#[test]
fn cancellation_answers_open_questions() {
    check_worker(
        "opened / attach / ask q1 / cancel / stopped / cancel",
        &expect![[r#"
          agent < #1 initialize
        opened
          agent < #2 session/new cwd="/work"
          agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
          agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
          agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
        attach
        ask q1
          parent < #"q1" session/request_permission sessionId="far"
        cancel
          agent < session/cancel sessionId="far"
          agent < #"q1" result={"outcome":{"outcome":"cancelled"}}
        stopped
          end {"result":{"stopReason":"end_turn"}} "" complete=true
        cancel
    "#]],
    );
}

#[test]
fn cancellation_before_the_prompt_ends_the_task() {
    check_worker(
        "cancel / opened",
        &expect![[r#"
          agent < #1 initialize
        cancel
          end {"result":{"stopReason":"cancelled"}} "" complete=true
        opened
    "#]],
    );
}

#[test]
fn agent_that_is_gone_fails_the_task_once() {
    check_worker(
        "opened / fail it exited / fail it exited / stopped",
        &expect![[r#"
          agent < #1 initialize
        opened
          agent < #2 session/new cwd="/work"
          agent < #3 session/set_config_option sessionId="far" configId="model" value="small"
          agent < #4 session/set_config_option sessionId="far" configId="mode" value="ask"
          agent < #5 session/prompt sessionId="far" prompt=[{"type":"text","text":"count"}]
        fail it exited
          end {"error":{"code":-32603,"message":"it exited"}} "" complete=true
        fail it exited
        stopped
    "#]],
    );
}

/// Runs the relay of a new task.
#[track_caller]
fn check_parent(steps: &str, expected: &Expect) {
    run_parent(ParentRelay::new(crow_core::SessionId::new("near"), "0"), steps, expected);
}

#[track_caller]
fn run_parent(mut relay: ParentRelay, steps: &str, expected: &Expect) {
    let mut log = String::new();
    let request = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let begin = |relay: &mut ParentRelay, method: &str, params: Value| {
        let mut actions = relay.handle_client_line(&request(1, "initialize", json!({})));
        actions.extend(relay.handle_client_line(&request(2, method, params)));
        actions
    };
    for step in steps.split(" / ") {
        log.push_str(&format!("{step}\n"));
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        let actions = match (word, rest) {
            ("open", _) => begin(&mut relay, "session/new", json!({ "cwd": "/" })),
            ("resume", session) => {
                begin(&mut relay, "session/resume", json!({ "sessionId": session, "cwd": "/" }))
            }
            ("set", option) => relay.handle_client_line(&request(
                3,
                "session/set_config_option",
                json!({ "sessionId": "near", "configId": option, "value": "small" }),
            )),
            ("prompt", kind) => {
                let block = match kind {
                    "image" => json!({ "type": "image", "data": "" }),
                    _ => json!({ "type": "text", "text": "count" }),
                };
                relay.handle_client_line(&request(4, PROMPT, json!({ "prompt": [block] })))
            }
            ("steer", _) => relay.handle_client_line(&request(5, STEERING, json!({ "sessionId": "near" }))),
            ("load", _) => relay.handle_client_line(&request(6, "session/load", json!({}))),
            ("cancel", _) => relay.handle_client_line(&json!({ "method": CANCEL, "params": {} }).to_string()),
            ("answer", id) => {
                let id: u64 = id.parse().unwrap();
                relay.handle_client_line(&response(id, json!({ "outcome": {} })))
            }
            ("attach", _) => {
                relay.attach();
                Vec::new()
            }
            ("detach", _) => relay.detach(),
            ("say", text) => relay.handle_worker_line(&update(text)),
            ("ask", id) => relay.handle_worker_line(&question(id)),
            ("withdraw", id) => relay.handle_worker_line(
                &json!({ "method": CANCEL_REQUEST, "params": { "requestId": id } }).to_string(),
            ),
            ("read", _) => relay.handle_worker_line(&request(9, "fs/read_text_file", json!({}))),
            ("steered", _) => relay.handle_worker_line(&response(5, json!({ "outcome": "injected" }))),
            ("notice", text) => vec![relay.show_notice(text)],
            ("missed", text) => vec![relay.show_answer(text)],
            ("finish", _) => {
                let result = json!({ "result": { "stopReason": "end_turn" } });
                relay.finish(result.as_object().cloned().unwrap())
            }
            ("fail", reason) => relay.fail(reason),
            _ => panic!("{step}"),
        };
        log.push_str(&render_parent(actions));
    }
    expected.assert_eq(&log);
}

#[test]
fn parent_is_answered_before_a_worker_has_the_task() {
    check_parent(
        "open / set model / set mode / load / prompt text / steer / prompt text / finish / finish",
        &expect![[r#"
            open
              client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
              client < #2 result={"sessionId":"near"}
            set model
              client < #3 result={"configOptions":[]}
            set mode
              client < #3 error={"code":-32602,"message":"tasks of a queue have only a model"}
            load
              client < #6 error={"code":-32601,"message":"tasks of a queue do not have that method"}
            prompt text
              StartTask { prompt: "count", model: Some("small") }
            steer
              client < #5 error={"code":-32602,"message":"the task waits in its queue, and takes no messages before a worker has it"}
            prompt text
              client < #4 error={"code":-32602,"message":"a task of a queue has one turn; start another task"}
            finish
              client < #4 result={"stopReason":"end_turn"}
            finish
        "#]],
    );
}

#[test]
fn task_of_an_earlier_process_is_resumed_by_its_name() {
    let relay = ParentRelay::resume(crow_core::SessionId::new("near"), "0");
    run_parent(
        relay,
        "resume far / resume near / open / prompt text / attach / ask q1 / finish",
        &expect![[r#"
        resume far
          client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{"resume":{}},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
          client < #2 error={"code":-32601,"message":"tasks of a queue do not have that method"}
        resume near
          client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{"resume":{}},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
          client < #2 result={}
        open
          client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{"resume":{}},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
          client < #2 error={"code":-32601,"message":"tasks of a queue do not have that method"}
        prompt text
          StartTask { prompt: "count", model: None }
        attach
        ask q1
          client < #1 session/request_permission sessionId="near"
        finish
          client < $/cancel_request requestId=1
          client < #4 result={"stopReason":"end_turn"}
    "#]],
    );
    check_parent(
        "resume near",
        &expect![[r#"
        resume near
          client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
          client < #2 error={"code":-32601,"message":"tasks of a queue do not have that method"}
    "#]],
    );
}

#[test]
fn parent_sees_updates_and_answers_questions() {
    check_parent(
        "open / prompt text / attach / say one / ask q1 / answer 7 / answer 1 / answer 1 / steer / steered / read / cancel / finish",
        &expect![[r#"
            open
              client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
              client < #2 result={"sessionId":"near"}
            prompt text
              StartTask { prompt: "count", model: None }
            attach
            say one
              client < session/update sessionId="near" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one"}}
            ask q1
              client < #1 session/request_permission sessionId="near"
            answer 7
            answer 1
              worker < #"q1" result={"outcome":{}}
            answer 1
            steer
              worker < #5 _session/steering sessionId="near"
            steered
              client < #5 result={"outcome":"injected"}
            read
              worker < #9 error={"code":-32601,"message":"this client does not take that request"}
            cancel
              CancelTask
            finish
              client < #4 result={"stopReason":"end_turn"}
        "#]],
    );
}

#[test]
fn questions_of_a_lost_worker_are_withdrawn() {
    check_parent(
        "open / prompt text / attach / ask q1 / steer / detach / notice the worker is lost / attach / ask q1 / withdraw q1 / withdraw q1 / missed two / fail it is over",
        &expect![[r#"
            open
              client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
              client < #2 result={"sessionId":"near"}
            prompt text
              StartTask { prompt: "count", model: None }
            attach
            ask q1
              client < #1 session/request_permission sessionId="near"
            steer
              worker < #5 _session/steering sessionId="near"
            detach
              client < $/cancel_request requestId=1
              client < #5 error={"code":-32603,"message":"the worker that had the task is gone"}
            notice the worker is lost
              client < session/update sessionId="near" update={"sessionUpdate":"notice","severity":"warning","title":"the worker is lost"}
            attach
            ask q1
              client < #2 session/request_permission sessionId="near"
            withdraw q1
              client < $/cancel_request requestId=2
            withdraw q1
            missed two
              client < session/update sessionId="near" update={"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}
            fail it is over
              client < #4 error={"code":-32603,"message":"it is over"}
        "#]],
    );
}

#[test]
fn prompt_without_text_starts_no_task() {
    check_parent(
        "open / prompt image",
        &expect![[r#"
        open
          client < #1 result={"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"authMethods":[],"agentInfo":{"name":"crow-fleet","version":"0"},"_meta":{"steering":{"supported":true}}}
          client < #2 result={"sessionId":"near"}
        prompt image
          client < #4 error={"code":-32602,"message":"tasks of a queue take text only"}
    "#]],
    );
}

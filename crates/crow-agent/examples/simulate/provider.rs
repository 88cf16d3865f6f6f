//! The simulated provider: rejects a history as a strict provider does, and answers what the seed says.

use std::fmt;
use std::io;
use std::sync::Arc;

use crow_model::{ProviderResponse, SimulatedProvider};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::process::CHILD_AGENT;
use crate::tools::TOOL_NAMES;
use crate::world::World;

/// Calls of one reply at most.
const CALLS_MAX: u64 = 4;

/// Chunks of text of one reply at most.
const CHUNKS_MAX: u64 = 5;

/// More than the context window now and then, so that the context is compacted.
const INPUT_TOKENS_MAX: u64 = 40_000;

pub(crate) struct FakeProvider {
    pub(crate) world: Arc<World>,
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeProvider")
    }
}

/// A step of a response.
#[derive(Debug)]
enum BodyStep {
    Send(String),
    /// Nothing follows, and the connection stays open.
    Stall,
    Reset,
}

impl SimulatedProvider for FakeProvider {
    fn send_request(&self, body: Vec<u8>) -> BoxFuture<'static, ProviderResponse> {
        answer_request(self.world.clone(), body).boxed()
    }

    fn retry_jitter(&self) -> f64 {
        // No number of a simulation has more than 32 bits.
        f64::from(u32::try_from(self.world.draw_below(1000)).unwrap_or_default()) / 1000.0
    }
}

async fn answer_request(world: Arc<World>, body: Vec<u8>) -> ProviderResponse {
    world.pass_boundary("model request").await;
    let request = world.read_json(&body);
    for violation in crow_testkit::violations(&request) {
        world.add_violation(format!("a provider rejects the request: {violation}"));
    }
    if world.draws_fault(Fault::ModelHangs) {
        std::future::pending::<()>().await;
    }
    if let Some((status, body)) = draw_refusal(&world) {
        let body = stream::iter([Ok(body.as_bytes().to_vec())]).boxed();
        return ProviderResponse { status, body };
    }
    let steps = plan_body(&world, &request);
    let body = stream::iter(steps).then(move |step| play_step(world.clone(), step)).boxed();
    ProviderResponse { status: 200, body }
}

async fn play_step(world: Arc<World>, step: BodyStep) -> io::Result<Vec<u8>> {
    world.pass_boundary("model chunk").await;
    match step {
        BodyStep::Send(event) => Ok(event.into_bytes()),
        BodyStep::Stall => std::future::pending().await,
        BodyStep::Reset => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

fn draw_refusal(world: &World) -> Option<(u16, &'static str)> {
    if world.draws_fault(Fault::ModelBusy) {
        return Some((429, r#"{"error":{"message":"too many requests"}}"#));
    }
    if world.draws_fault(Fault::ModelFails) {
        return Some((500, r#"{"error":{"message":"internal error"}}"#));
    }
    if world.draws_fault(Fault::ModelOverflow) {
        return Some((400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#));
    }
    world.draws_fault(Fault::ModelGarbage).then_some((200, "<html>maintenance</html>"))
}

/// Plans the body of a reply, with at most one fault in it.
fn plan_body(world: &World, request: &Value) -> Vec<BodyStep> {
    let mut events = Vec::new();
    if world.draws_chance(30) {
        events.push(chunk(&json!({"reasoning_content": world.next_words()})));
    }
    for _ in 0..world.draw_below(CHUNKS_MAX) {
        events.push(chunk(&json!({"content": world.next_words()})));
    }
    let has_tools = request.get("tools").is_some();
    let n_calls = match has_tools && !world.is_calm() && world.draws_chance(60) {
        true => 1 + world.draw_below(CALLS_MAX),
        false => 0,
    };
    events.extend((0..n_calls).map(|index| plan_call(world, index)));
    if n_calls == 0 {
        events.push(chunk(&json!({"content": world.next_words()})));
    }
    let finish = if n_calls > 0 { "tool_calls" } else { "stop" };
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    events.push(event(&with_head(finish)));
    if !world.is_calm() && world.draws_chance(50) {
        let (input, output) = (world.draw_below(INPUT_TOKENS_MAX), world.draw_below(500));
        let usage =
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        events.push(event(&with_head(json!({"choices": [], "usage": usage}))));
    }
    events.push("data: [DONE]\n\n".to_owned());
    end_body(world, events)
}

/// Lets the body end as the seed says.
fn end_body(world: &World, events: Vec<String>) -> Vec<BodyStep> {
    let n_sent = usize::try_from(world.draw_below(events.len() as u64)).unwrap_or_default();
    let (n_sent, end) = if world.draws_fault(Fault::ModelStalls) {
        (n_sent, Some(BodyStep::Stall))
    } else if world.draws_fault(Fault::ModelReset) {
        (n_sent, Some(BodyStep::Reset))
    } else if world.draws_fault(Fault::ModelTruncated) {
        (n_sent, None)
    } else {
        (events.len(), None)
    };
    events.into_iter().take(n_sent).map(BodyStep::Send).chain(end).collect()
}

fn plan_call(world: &World, index: u64) -> String {
    let mut name = world.draw_item(&TOOL_NAMES);
    let mut arguments = json!({ "what": world.next_words() }).to_string();
    if world.draws_chance(35) {
        (name, arguments) = draw_task_call(world);
    }
    if world.draws_fault(Fault::ModelRepeats) {
        (name, arguments) = ("look", json!({ "what": "the same" }).to_string());
    }
    if world.draws_fault(Fault::ModelUnknownTool) {
        name = "juggle";
    }
    if world.draws_fault(Fault::ModelBadArguments) {
        arguments = draw_broken_arguments(world);
    }
    let id = if world.draws_chance(10) {
        "call".to_owned()
    } else {
        format!("call-{}", world.next_words().trim())
    };
    let call = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    chunk(&json!({"tool_calls": [call]}))
}

/// Draws a call about a child, which may not exist.
fn draw_task_call(world: &World) -> (&'static str, String) {
    let task = format!("session-{}", 1 + world.draw_below(6));
    let (prompt, wait) = (world.next_words(), world.draws_chance(50));
    let (name, arguments) = match world.draw_below(6) {
        0 => ("task_read", json!({ "task": task })),
        1 => ("task_cancel", json!({ "task": task })),
        2 => ("task_send", json!({"task": task, "prompt": prompt, "wait": wait})),
        _ => ("task", json!({"prompt": prompt, "agent": CHILD_AGENT, "wait": wait})),
    };
    (name, arguments.to_string())
}

fn draw_broken_arguments(world: &World) -> String {
    let broken = ["", "{\"what\": \"cut", "[1, 2]", "null", "{\"other\": 1}", "{'what': 'single'}"];
    world.draw_item(&broken).to_owned()
}

fn chunk(delta: &Value) -> String {
    event(&with_head(json!({"choices": [{"index": 0, "delta": delta}]})))
}

fn with_head(mut chunk: Value) -> Value {
    chunk["id"] = "1".into();
    chunk["object"] = "chat.completion.chunk".into();
    chunk
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

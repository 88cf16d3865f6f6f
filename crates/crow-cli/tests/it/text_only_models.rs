//! A model that reads text only: its replacement for images, and the capabilities that its editor sees.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_core::decode_base64;
use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use expect_test::expect;
use serde_json::{Value, json};

/// The smallest valid PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn start(world: &TestHome) -> FakeClient {
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    FakeClient::start_with(binary, &world.home(), json!({"session": {"notices": {}}})).await
}

/// Returns the messages of the last request, without the system prompt.
fn saw(server: &ModelServer) -> String {
    assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
    let last = server.requests().last().cloned().unwrap_or_default();
    let messages = last["messages"].as_array().cloned().unwrap_or_default();
    let messages = messages.iter().skip(1);
    messages.map(|message| format!("{}\n", message).replace(PNG, "$PNG")).collect()
}

async fn set_model(client: &mut FakeClient, session: &str, model: &str) {
    let params = json!({"sessionId": session, "configId": "model", "value": model});
    client.request("session/set_config_option", params).await.expect("the model is set");
}

async fn say(client: &mut FakeClient, session: &str, blocks: Value) {
    let id = client.prompt_with(session, blocks).await;
    client.response_to(id).await.expect("the turn ends");
}

#[tokio::test]
async fn images_are_notes_for_it_and_images_for_other_models() {
    let server = ModelServer::start(Script::default());
    let world = TestHome::new(server.base_url());
    let provider = server.base_url();
    world.configure(&format!(
        "providers: {{ p: {{ base_url: '{provider}' }} }}\nmodels:\n  vision: {{ provider: p }}\n  plain: {{ provider: p, modality: [text] }}\n"
    ));
    std::fs::write(world.project().join("b.png"), decode_base64(PNG).expect("base64")).expect("a file");
    let mut client = start(&world).await;
    let session = client.new_session(&world.project()).await;
    set_model(&mut client, &session, "plain").await;
    server.replace_answers("call read {\"file_path\":\"b.png\"}\ntext \"Two.\"");
    let image = json!({"type": "image", "mimeType": "image/png", "data": PNG});
    let link = json!({"type": "resource_link", "uri": format!("{provider}/c.png"), "name": "c"});
    say(&mut client, &session, json!([{"type": "text", "text": "compare"}, image, link])).await;
    let mut told = saw(&server);
    set_model(&mut client, &session, "vision").await;
    server.replace_answers("text \"Now I see.\"");
    say(&mut client, &session, json!([{"type": "text", "text": "and you?"}])).await;
    told += &format!("---\n{}", saw(&server));
    told += &format!("---\n{}", client.log());
    let host = provider.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    expect![[r#"
        {"role":"user","content":"compare\n(an image was here: image/png, 70 bytes; this model reads text only)\n[c](http://$HOST/v1/c.png)\n<resource uri=\"crow:image:http://$HOST/v1/c.png\">\nThe image was not fetched: the model plain reads text only.\n</resource>"}
        {"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"read","arguments":"{\"file_path\":\"b.png\"}"}}]}
        {"role":"tool","tool_call_id":"call_0","content":"b.png (image/png, 70 bytes):\n(an image was here: b.png, image/png, 70 bytes; this model reads text only)"}
        ---
        {"role":"user","content":[{"type":"text","text":"compare"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}},{"type":"text","text":"[c](http://$HOST/v1/c.png)"},{"type":"text","text":"<resource uri=\"crow:image:http://$HOST/v1/c.png\">\nThe image was not fetched: the model plain reads text only.\n</resource>"}]}
        {"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"read","arguments":"{\"file_path\":\"b.png\"}"}}]}
        {"role":"tool","tool_call_id":"call_0","content":"b.png (image/png, 70 bytes):"}
        {"role":"user","content":[{"type":"text","text":"The image of the result above:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}}]}
        {"role":"assistant","content":"Two."}
        {"role":"user","content":"and you?"}
        ---
        < config_option_update
        < notice warning "The model plain reads text only and gets a note instead of the image. Type /model to switch to another." ""
        < notice warning "The image http://$HOST/v1/c.png was left out: the model plain reads text only. The model only gets its address." ""
        < call call-1-0 read "Read b.png" pending {"file_path":"b.png"}
        < call call-1-0 in_progress
        < call call-1-0 completed ""
        < text[msg-3] Two.
        < title compare
        < config_option_update
        < text[msg-5] Now I see.
    "#]].assert_eq(&told.replace(&host, "$HOST"));
    assert_eq!(server.page_heads(), Vec::<String>::new());
}

#[tokio::test]
async fn images_are_offered_to_the_editor_if_a_model_reads_them() {
    for (models, expected) in [
        ("a: { provider: p }", true),
        ("a: { provider: p, modality: [text] }\n  b: { provider: p }", true),
        ("a: { provider: p, modality: [text] }\n  b: { provider: p, modality: text }", false),
        ("a: { provider: p, modality: 7 }", true),
    ] {
        let server = ModelServer::start(Script::default());
        let world = TestHome::new(server.base_url());
        world.configure(&format!("providers: {{ p: {{ base_url: 'http://h' }} }}\nmodels:\n  {models}\n"));
        let mut client = FakeClient::start_silent(Path::new(env!("CARGO_BIN_EXE_crow-cli")), &world.home());
        let hello = client.initialize(json!({})).await.expect("it says hello");
        assert_eq!(hello["agentCapabilities"]["promptCapabilities"]["image"], expected, "{models}");
    }
}

//! Images that a prompt refers to by a web address, and images that cannot be fetched.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_core::decode_base64;
use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer, Script, Step};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// The smallest valid PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
}

impl Stage {
    async fn new(config: &str) -> Self {
        let server = ModelServer::start(Script::default());
        let world = TestHome::new(server.base_url());
        if !config.is_empty() {
            world.add_config(config);
        }
        let png = decode_base64(PNG).expect("it is base64");
        for address in ["/a.png", "/b", "/c.png"] {
            server.serve_at(address, Answer::raw(png.clone()));
        }
        server.serve_at("/page.png", Answer::raw("<html>"));
        server.serve_at("/gone.png", Answer::with_status(404, "gone"));
        server.serve_at("/large.png", Answer::raw([png, vec![0; 4_000_000]].concat()));
        server.serve_at("/slow.png", Answer::new([Step::Hold]));
        let mut client = start(&world).await;
        client.mask(host(&server), "$HOST");
        client.mask(PNG, "$PNG");
        let session = client.new_session(&world.project()).await;
        Self { server, world, client, session }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", host(&self.server))
    }

    fn link(&self, path: &str) -> Value {
        json!({"type": "resource_link", "uri": self.url(path), "name": "it"})
    }

    fn image(&self, path: &str) -> Value {
        json!({"type": "image", "mimeType": "image/png", "data": "", "uri": self.url(path)})
    }

    async fn say(&mut self, blocks: Value) {
        self.server.replace_answers("text \"Seen.\"");
        let id = self.client.prompt_with(&self.session, blocks).await;
        self.client.response_to(id).await.expect("the turn ends");
    }

    /// Returns the client's updates, the model's view of the last prompt, and the fetched images.
    fn told(&self) -> String {
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "the model refused a request");
        let last = self.server.requests().last().cloned().unwrap_or_default();
        let messages = last["messages"].as_array().cloned().unwrap_or_default();
        let content = &messages.last().expect("a message")["content"];
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let fetched: Vec<String> = self
            .server
            .page_heads()
            .iter()
            .filter_map(|head| head.lines().next().map(|line| line.replace(" HTTP/1.1", "")))
            .collect();
        let text = text.replace(&host(&self.server), "$HOST").replace(PNG, "$PNG");
        format!("{}model saw {text}\nfetched: {}\n", self.client.log(), fetched.join(", "))
    }
}

async fn start(world: &TestHome) -> FakeClient {
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    FakeClient::start_with(binary, &world.home(), json!({"session": {"notices": {}}})).await
}

fn host(server: &ModelServer) -> String {
    server.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

async fn check(config: &str, answers: &[&str], blocks: impl Fn(&Stage) -> Value, expected: Expect) {
    let mut stage = Stage::new(config).await;
    stage.client.permission_answers.extend(answers.iter().map(|&answer| answer.to_owned()));
    let blocks = blocks(&stage);
    stage.say(blocks).await;
    expected.assert_eq(&stage.told());
}

#[tokio::test]
async fn image_is_fetched_once_with_permission() {
    check(
        "",
        &["allow_always"],
        |stage| {
            let text = json!({"type": "text", "text": "compare"});
            let blob = json!({"type": "resource", "resource": {"uri": stage.url("/c.png"), "blob": ""}});
            json!([text, stage.link("/a.png"), stage.image("/b"), stage.link("/a.png"), blob])
        },
        expect![[r#"
            < call call-0-100001 web_fetch "Fetch http://$HOST/a.png" pending {"url":"http://$HOST/a.png"}
            ? Fetch http://$HOST/a.png [allow_once, allow_always, reject_once, reject_and_tell] -> allow_always
            < call call-0-100001 completed ""
            < text[msg-1] Seen.
            < title compare
            model saw [{"type":"text","text":"compare"},{"type":"text","text":"[it](http://$HOST/a.png)"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}},{"type":"text","text":"[http://$HOST/b]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}},{"type":"text","text":"[it](http://$HOST/a.png)"},{"type":"text","text":"[http://$HOST/c.png]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}}]
            fetched: GET /a.png, GET /b, GET /c.png
        "#]],
    )
    .await;
}

#[tokio::test]
async fn link_to_no_image_is_a_note_and_a_notice() {
    check(
        "",
        &["allow_always"],
        |stage| json!(["/page.png", "/gone.png", "/large.png", "/a.png"].map(|path| stage.link(path))),
        expect![[r#"
            < call call-0-100001 web_fetch "Fetch http://$HOST/page.png" pending {"url":"http://$HOST/page.png"}
            ? Fetch http://$HOST/page.png [allow_once, allow_always, reject_once, reject_and_tell] -> allow_always
            < call call-0-100001 failed "it is not a PNG, JPEG, GIF or WebP (its content type is text/event-stream)"
            < notice warning "The image http://$HOST/page.png was left out: it is not a PNG, JPEG, GIF or WebP (its content type is text/event-stream). The model only gets its address." ""
            < notice warning "The image http://$HOST/gone.png was left out: the server answered 404 Not Found. The model only gets its address." ""
            < notice warning "The image http://$HOST/large.png was left out: the image has more than 3700000 bytes. The model only gets its address." ""
            < text[msg-1] Seen.
            < title (no text)
            model saw [{"type":"text","text":"[it](http://$HOST/page.png)"},{"type":"text","text":"<resource uri=\"crow:image:http://$HOST/page.png\">\nThe image was not fetched: it is not a PNG, JPEG, GIF or WebP (its content type is text/event-stream).\n</resource>"},{"type":"text","text":"[it](http://$HOST/gone.png)"},{"type":"text","text":"<resource uri=\"crow:image:http://$HOST/gone.png\">\nThe image was not fetched: the server answered 404 Not Found.\n</resource>"},{"type":"text","text":"[it](http://$HOST/large.png)"},{"type":"text","text":"<resource uri=\"crow:image:http://$HOST/large.png\">\nThe image was not fetched: the image has more than 3700000 bytes.\n</resource>"},{"type":"text","text":"[it](http://$HOST/a.png)"},{"type":"image_url","image_url":{"url":"data:image/png;base64,$PNG"}}]
            fetched: GET /page.png, GET /gone.png, GET /large.png, GET /a.png
        "#]],
    )
    .await;
}

#[tokio::test]
async fn image_rejected_by_the_user_or_a_rule_is_not_fetched() {
    check("", &["reject_once"], |stage| json!([stage.link("/a.png")]), expect![[r#"
        < call call-0-100001 web_fetch "Fetch http://$HOST/a.png" pending {"url":"http://$HOST/a.png"}
        ? Fetch http://$HOST/a.png [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
        < call call-0-100001 failed "the user rejected it"
        < notice warning "The image http://$HOST/a.png was left out: the user rejected it. The model only gets its address." ""
        < text[msg-1] Seen.
        < title (no text)
        model saw [it](http://$HOST/a.png)
        <resource uri="crow:image:http://$HOST/a.png">
        The image was not fetched: the user rejected it.
        </resource>
        fetched: 
    "#]]).await;
    check(
        "permissions: { deny: ['tool(web_fetch)'], mode: auto }",
        &[],
        |stage| json!([stage.image("/b")]),
        expect![[r#"
            < notice warning "The image http://$HOST/b was left out: the configuration forbids it with the deny rule `tool(web_fetch)`. The model only gets its address." ""
            < text[msg-1] Seen.
            < title (no text)
            model saw [http://$HOST/b]
            <resource uri="crow:image:http://$HOST/b">
            The image was not fetched: the configuration forbids it with the deny rule `tool(web_fetch)`.
            </resource>
            fetched: 
        "#]],
    )
    .await;
}

#[tokio::test]
async fn images_are_limited_to_eight() {
    let mut stage = Stage::new("").await;
    stage.client.permission_answers.push_back("allow_always".to_owned());
    let links: Vec<Value> = (0..10).map(|n| stage.link(&format!("/a.png?{n}"))).collect();
    stage.say(json!(links)).await;
    let told = stage.told();
    assert_eq!(told.matches("the prompt links to more than 8 images. The model").count(), 2, "{told}");
}

#[tokio::test]
async fn loaded_session_fetches_nothing() {
    let mut stage = Stage::new("").await;
    stage.client.permission_answers.push_back("allow_once".to_owned());
    let blocks = json!([stage.image("/a.png"), {"type": "text", "text": "what?"}]);
    stage.say(blocks).await;
    let mut second = start(&stage.world).await;
    second.load_session(&stage.session, &stage.world.project()).await.expect("the session loads");
    stage.server.replace_answers("text \"Still.\"");
    let id = second.prompt(&stage.session, "and now?").await;
    second.response_to(id).await.expect("the turn ends");
    let asked = stage.server.requests().last().cloned().unwrap_or_default().to_string();
    assert!(asked.contains(&format!("data:image/png;base64,{PNG}")), "{asked}");
    assert_eq!(stage.server.page_heads().len(), 1);
}

#[tokio::test]
async fn cancel_ends_the_turn_while_an_image_is_fetched() {
    let mut stage = Stage::new("").await;
    stage.client.permission_answers.push_back("allow_once".to_owned());
    let blocks = json!([stage.link("/slow.png")]);
    let id = stage.client.prompt_with(&stage.session, blocks).await;
    stage.client.wait_for_line("-> allow_once").await;
    stage.client.notify("session/cancel", json!({"sessionId": stage.session})).await;
    let answered = stage.client.response_to(id).await.expect("the turn ends");
    assert_eq!(answered["stopReason"], "cancelled");
    assert_eq!(stage.server.n_requests(), 0);
}

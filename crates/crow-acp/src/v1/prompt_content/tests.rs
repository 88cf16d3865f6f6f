use crow_core::{CrowPart, SpeckitPart};
use serde_json::{Value, json};

use super::*;

/// Parses content blocks as a client sends them.
fn read(blocks: &Value) -> Vec<PromptBlock> {
    let blocks: Vec<wire::ContentBlock> = serde_json::from_value(blocks.clone()).unwrap();
    prompt_blocks(blocks).unwrap()
}

#[test]
fn client_content_is_never_marked_as_crows() {
    let own = [
        CrowPart::Command("review".to_owned()),
        CrowPart::Skills,
        CrowPart::Undo,
        CrowPart::InterruptedReply,
        CrowPart::TruncatedReply,
        CrowPart::LinkedFile("///etc/hosts".to_owned()),
        CrowPart::MissingImage("https://a.test/b.png".to_owned()),
        CrowPart::PromptHook,
        CrowPart::Speckit(SpeckitPart::Step("implement".to_owned())),
        CrowPart::Speckit(SpeckitPart::Answer),
        CrowPart::Speckit(SpeckitPart::Report),
    ];
    let uris = own.iter().map(CrowPart::uri).chain(["crow:".to_owned(), "CROW:skills".to_owned()]);
    for uri in uris {
        let contents = [
            json!({ "uri": uri, "text": "x" }),
            json!({ "uri": uri, "text": "x", "mimeType": "text/plain" }),
            json!({ "uri": uri, "text": "x", "origin": "crow", "_meta": { "origin": "crow" } }),
            json!({ "uri": uri, "blob": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "mimeType": "image/png" }),
        ];
        let resources = contents.into_iter().map(
            |resource| json!({ "type": "resource", "resource": resource, "_meta": { "origin": "crow" } }),
        );
        let others = [
            json!({ "type": "resource_link", "uri": uri, "name": uri, "origin": "crow" }),
            json!({ "type": "text", "text": uri, "origin": "crow", "what": "skills" }),
            json!({ "type": "image", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "mimeType": "image/png", "uri": uri }),
            json!({ "type": "image", "data": "", "mimeType": "image/png", "uri": uri }),
        ];
        for block in resources.chain(others) {
            for spoken in read(&json!([block])) {
                let is_crows = matches!(&spoken, PromptBlock::Part(part) if part.crow_part().is_some());
                assert!(!is_crows, "{block} is taken for {spoken:?}");
            }
        }
    }
}

#[test]
fn resource_round_trips() {
    let block = json!({
        "type": "resource",
        "resource": { "uri": "crow:speckit/report", "text": "x", "mimeType": "text/plain" },
    });
    let [PromptBlock::Part(part)] = &read(&json!([block]))[..] else { panic!("it is one part") };
    assert_eq!(serde_json::to_value(content_block(part.clone())).unwrap(), block);
}

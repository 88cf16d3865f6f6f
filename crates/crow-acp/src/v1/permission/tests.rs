use crow_core::{Facets, ToolKind, Touch};
use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::v1;

/// Spells a question about this, as Crow's own and as one of its child; the client reads both.
#[track_caller]
fn check(subject: Subject, expected: &Expect) {
    let facets = Facets {
        title: "Go on with the plan".into(),
        kind: ToolKind::Think,
        locations: Vec::new(),
        touch: Touch::Nothing,
    };
    let question = Question {
        subject,
        call: CallId::at(1, 0),
        facets: &facets,
        arguments: &Map::new(),
        preview: &[],
        why: None,
        offer_always: OfferAlways::Yes,
    };
    let request = permission_request(&SessionId::new("quiet-crow"), question);
    let spelled = serde_json::to_value(&request).unwrap();
    let names = spelled["options"].as_array().unwrap().iter().map(|option| option["name"].to_string());
    let (session, heard) = v1::question(request);
    assert_eq!(heard.subject, subject);
    let of_child = permission_request_of_child(&session, (CallId::at(1, 0), "a child"), &heard);
    let of_child = v1::question(of_child).1.subject;
    let names = names.collect::<Vec<_>>().join(" ");
    expected.assert_eq(&format!("{names} {} of a child: {of_child:?}", spelled["_meta"]));
}

#[test]
fn a_question_says_what_a_yes_is_about() {
    check(
        Subject::Call,
        &expect![[
            r#""Allow" "Reject" "Allow for this session" "Reject for this session" null of a child: Call"#
        ]],
    );
    check(
        Subject::GoOn,
        &expect![[
            r#""Go on" "Stop" "Go on, always in this session" "Stop, always in this session" {"crow/asks":"go_on"} of a child: GoOn"#
        ]],
    );
    check(
        Subject::Offer,
        &expect![[
            r#""Yes" "No" "Yes, always in this session" "Never in this session" {"crow/asks":"offer"} of a child: Call"#
        ]],
    );
}

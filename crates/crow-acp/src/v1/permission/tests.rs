use crow_core::{CallId, ToolAccess, ToolCallInfo, ToolKind};
use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::v1;

fn question<'a>(
    subject: PermissionSubject,
    answers: OfferedAnswers<'a>,
    info: &'a ToolCallInfo,
    arguments: &'a Map<String, Value>,
) -> PermissionRequest<'a> {
    PermissionRequest {
        subject,
        call: CallId::from_position(1, 0),
        info,
        arguments,
        preview: &[],
        reason: None,
        offered_answers: answers,
    }
}

fn of_a_child(request: &AgentPermissionRequest) -> ChildPermissionRequest<'_> {
    ChildPermissionRequest { parent_call: CallId::from_position(1, 0), agent_name: "a child", request }
}

/// Encodes a request with this subject, as Crow's own and as one of its child; the client parses both.
#[track_caller]
fn check(subject: PermissionSubject, answers: OfferedAnswers<'_>, expected: &Expect) {
    let info = ToolCallInfo {
        title: "Go on with the plan".into(),
        kind: ToolKind::Think,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let arguments = Map::new();
    let asked = question(subject, answers, &info, &arguments);
    let request = permission_request(&SessionId::new("quiet-crow"), asked, false);
    let spelled = serde_json::to_value(&request).unwrap();
    let options = spelled["options"].as_array().unwrap().iter();
    let options: Vec<String> =
        options.map(|option| format!("{}: {}\n", option["optionId"], option["name"])).collect();
    let (session, heard) = v1::parse_permission_request(request);
    assert_eq!(heard.subject, subject);
    let of_child = child_permission_request(&session, of_a_child(&heard), false);
    let of_child = v1::parse_permission_request(of_child).1.subject;
    expected.assert_eq(&format!("{}{} of a child: {of_child:?}\n", options.concat(), spelled["_meta"]));
}

fn prefix(words: &[&str]) -> Grant {
    Grant::RunPrefix(words.iter().map(|&word| word.to_owned()).collect())
}

#[test]
fn permission_request_has_its_subject() {
    check(
        PermissionSubject::Call,
        OfferedAnswers::Once,
        &expect![[r#"
        "allow_once": "Allow once"
        "reject_once": "Reject"
        null of a child: Call
    "#]],
    );
    check(
        PermissionSubject::Continue,
        OfferedAnswers::Once,
        &expect![[r#"
            "allow_once": "Go on"
            "reject_once": "Stop"
            {"crow/asks":"go_on"} of a child: Continue
        "#]],
    );
    check(
        PermissionSubject::Proposal,
        OfferedAnswers::Session,
        &expect![[r#"
        "allow_once": "Yes"
        "allow_always": "Yes, always in this session"
        "reject_once": "No"
        "reject_always": "Never in this session"
        {"crow/asks":"offer"} of a child: Call
    "#]],
    );
}

#[test]
fn permission_request_has_its_grants() {
    let check_offer = |session: &[Grant], project: &[Grant], expected| {
        let offer = GrantOffer { session: session.to_vec(), project: project.to_vec() };
        check(
            PermissionSubject::Call,
            OfferedAnswers::Remembered { offer: &offer, accepts_feedback: true },
            expected,
        );
    };
    let exact = Grant::Run("cargo test -p x".to_owned());
    let cargo = prefix(&["cargo", "test"]);
    check_offer(
        &[exact.clone(), cargo.clone()],
        &[cargo],
        &expect![[r#"
            "allow_once": "Allow once"
            "allow_always": "Allow `cargo test …` for this session"
            "allow_project": "Always allow `cargo test …` in this project"
            "reject_once": "Reject"
            "reject_and_tell": "Reject and say what to do instead"
            null of a child: Call
        "#]],
    );
    check_offer(
        &[exact],
        &[],
        &expect![[r#"
        "allow_once": "Allow once"
        "allow_always": "Allow for this session"
        "reject_once": "Reject"
        "reject_and_tell": "Reject and say what to do instead"
        null of a child: Call
    "#]],
    );
    check_offer(
        &[Grant::Edits],
        &[Grant::Edits],
        &expect![[r#"
            "allow_once": "Allow once"
            "allow_always": "Allow edits for this session"
            "allow_project": "Always allow edits in this project"
            "reject_once": "Reject"
            "reject_and_tell": "Reject and say what to do instead"
            null of a child: Call
        "#]],
    );
    let odd = [Grant::Site("a\nb".to_owned())];
    check_offer(
        &odd,
        &odd,
        &expect![[r#"
            "allow_once": "Allow once"
            "allow_always": "Allow for this session"
            "allow_project": "Always allow in this project"
            "reject_once": "Reject"
            "reject_and_tell": "Reject and say what to do instead"
            null of a child: Call
        "#]],
    );
}

#[test]
fn grants_of_a_child_reach_its_parent() {
    let offer = GrantOffer { session: vec![Grant::Edits, Grant::WebSearch], project: vec![Grant::Edits] };
    let info = ToolCallInfo {
        title: "x".into(),
        kind: ToolKind::Edit,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let arguments = Map::new();
    let answers = OfferedAnswers::Remembered { offer: &offer, accepts_feedback: false };
    let ask = |is_child| {
        let asked = question(PermissionSubject::Call, answers, &info, &arguments);
        v1::parse_permission_request(permission_request(&SessionId::new("quiet-crow"), asked, is_child)).1
    };
    assert_eq!(ask(false).offer, None);
    let heard = ask(true);
    let lasting = |id: &str| heard.grant_scope(&PermissionAnswer::Selected(id.to_owned()));
    assert_eq!(lasting("allow_always"), Some(GrantScope::Session));
    assert_eq!(lasting("allow_project"), Some(GrantScope::Project));
    assert_eq!(lasting("allow_once"), None);
    // A child of the child is answered further up as well.
    let session = SessionId::new("quiet-crow");
    let above = |is_child| {
        let request = child_permission_request(&session, of_a_child(&heard), is_child);
        v1::parse_permission_request(request).1.offer
    };
    assert_eq!((above(true), above(false)), (Some(offer.clone()), None));
    assert_eq!(heard.offer, Some(offer));
}

#[test]
fn prefix_can_be_changed_in_an_answer() {
    let offer =
        GrantOffer { session: vec![prefix(&["cargo", "test"])], project: vec![prefix(&["cargo", "test"])] };
    let info = ToolCallInfo {
        title: "x".into(),
        kind: ToolKind::Execute,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let arguments = Map::new();
    let answers = OfferedAnswers::Remembered { offer: &offer, accepts_feedback: false };
    let asked = question(PermissionSubject::Call, answers, &info, &arguments);
    let request = permission_request(&SessionId::new("quiet-crow"), asked, false);
    let heard = v1::parse_permission_request(request).1;
    let prefixes =
        heard.options.iter().filter_map(|option| Some(format!("{}: {}", option.id, option.prefix.as_ref()?)));
    assert_eq!(prefixes.collect::<Vec<_>>(), ["allow_project: cargo test"]);
    let outcome = |option: &str, prefix: &str| {
        let answer =
            PermissionAnswer::SelectedPrefix { option: option.to_owned(), prefix: prefix.to_owned() };
        permission_outcome(permission_response(Some(answer)), answers)
    };
    let changed = PermissionOutcome::AllowPrefixInProject("cargo test -p x".to_owned());
    assert_eq!(outcome("allow_project", "cargo test -p x"), changed);
    assert_eq!(outcome("allow_project", "cargo test"), PermissionOutcome::AllowInProject);
    assert_eq!(outcome("allow_always", "cargo test -p x"), PermissionOutcome::AllowForSession);
}

#[test]
fn approval_must_have_been_offered() {
    let offer = GrantOffer { session: vec![Grant::Edits], project: Vec::new() };
    let answer = |id: &str, answers| {
        let selected = wire::SelectedPermissionOutcome::new(id.to_owned());
        let outcome = wire::RequestPermissionOutcome::Selected(selected);
        permission_outcome(Ok(wire::RequestPermissionResponse::new(outcome)), answers)
    };
    let remembered = OfferedAnswers::Remembered { offer: &offer, accepts_feedback: false };
    for (id, answers, expected) in [
        ("allow_once", OfferedAnswers::Once, PermissionOutcome::AllowOnce),
        ("allow_always", OfferedAnswers::Once, PermissionOutcome::Reject),
        ("allow_always", remembered, PermissionOutcome::AllowForSession),
        ("allow_project", remembered, PermissionOutcome::Reject),
        ("reject_and_tell", remembered, PermissionOutcome::Reject),
        ("allow_project", OfferedAnswers::Session, PermissionOutcome::Reject),
        ("reject_always", OfferedAnswers::Session, PermissionOutcome::RejectForSession),
        ("yes", remembered, PermissionOutcome::Reject),
    ] {
        assert_eq!(answer(id, answers), expected, "{id}");
    }
}

use crow_acp::{AgentPermissionRequest, PermissionOption, PermissionSubject};
use crow_core::ToolKind;
use expect_test::{Expect, expect};

use super::{PermissionChoice, PermissionHandler, find_answer};

/// Builds a request whose options are words such as `allow`, `allow-always`, `reject` and `reject-always`; a word after
/// `=` is the ID.
fn request(options: &str) -> AgentPermissionRequest {
    let options = options.split_whitespace().map(|word| {
        let (kind, id) = word.split_once('=').unwrap_or((word, word));
        PermissionOption {
            id: id.to_owned(),
            name: String::new(),
            allows: kind.starts_with("allow"),
            always: kind.ends_with("always"),
            prefix: None,
        }
    });
    AgentPermissionRequest {
        subject: PermissionSubject::Call,
        call: "call-1".to_owned(),
        title: "Run ls".to_owned(),
        kind: ToolKind::Execute,
        input: None,
        content: Vec::new(),
        options: options.collect(),
        offer: None,
    }
}

#[track_caller]
fn check(options: &str, expected: &Expect) {
    let request = request(options);
    let choices = [
        PermissionChoice::AllowOnce,
        PermissionChoice::AllowAlways,
        PermissionChoice::RejectOnce,
        PermissionChoice::RejectAlways,
    ];
    let lines = choices.map(|choice| format!("{choice:?}: {:?}\n", find_answer(&request, choice)));
    expected.assert_eq(&lines.concat());
}

#[test]
fn option_is_found_by_its_kind() {
    check(
        "reject-always allow-always reject allow",
        &expect![[r#"
        AllowOnce: Some(Selected("allow"))
        AllowAlways: Some(Selected("allow-always"))
        RejectOnce: Some(Selected("reject"))
        RejectAlways: Some(Selected("reject-always"))
    "#]],
    );
    check(
        "allow reject",
        &expect![[r#"
        AllowOnce: Some(Selected("allow"))
        AllowAlways: Some(Selected("allow"))
        RejectOnce: Some(Selected("reject"))
        RejectAlways: Some(Selected("reject"))
    "#]],
    );
}

#[test]
fn option_that_is_missing_allows_nothing() {
    check(
        "allow-always reject-always",
        &expect![[r#"
        AllowOnce: None
        AllowAlways: Some(Selected("allow-always"))
        RejectOnce: Some(Selected("reject-always"))
        RejectAlways: Some(Selected("reject-always"))
    "#]],
    );
    check(
        "allow",
        &expect![[r#"
        AllowOnce: Some(Selected("allow"))
        AllowAlways: Some(Selected("allow"))
        RejectOnce: None
        RejectAlways: None
    "#]],
    );
    check(
        "",
        &expect![[r#"
        AllowOnce: None
        AllowAlways: None
        RejectOnce: None
        RejectAlways: None
    "#]],
    );
}

#[test]
fn option_that_is_ambiguous_is_not_chosen() {
    check(
        "allow=both reject=both",
        &expect![[r#"
        AllowOnce: None
        AllowAlways: None
        RejectOnce: None
        RejectAlways: None
    "#]],
    );
}

#[tokio::test]
async fn fixed_choice_does_not_let_a_repeating_model_continue() {
    let mut request = request("allow reject");
    request.subject = PermissionSubject::Continue;
    let handler = PermissionHandler::Fixed(PermissionChoice::AllowOnce);
    expect![[r#"Some(Selected("reject"))"#]].assert_eq(&format!("{:?}", handler.decide(request).await));
}

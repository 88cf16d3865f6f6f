//! The grants that a session remembers, and the list and removals of `/permissions`.

use super::*;

fn run(command: &str) -> Grant {
    Grant::Run(command.to_owned())
}

fn prefix(words: &[&str]) -> Grant {
    Grant::RunPrefix(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The offer for a command with a prefix that may be allowed permanently.
fn offer() -> GrantOffer {
    let prefix = prefix(&["cargo", "test"]);
    GrantOffer { session: vec![run("cargo test -q"), prefix.clone()], project: vec![prefix] }
}

/// Renders the grants of the session, those of the project, and whether the offer is covered.
#[track_caller]
fn check_grants(grants: &SessionGrants, expected: &Expect) {
    let list = |grants: &GrantSet| {
        grants.iter().map(|grant| crate::escape_hidden(&grant.description())).collect::<Vec<_>>().join(", ")
    };
    let is_covered = grants.covers_offer(&offer());
    let shown = format!(
        "session: {}; all: {}; covered: {is_covered}",
        list(grants.session_grants()),
        list(&grants.all_grants())
    );
    expected.assert_eq(&shown);
}

#[test]
fn session_grants_have_the_approved_scope() {
    let mut grants = SessionGrants::default();
    check_grants(&grants, &expect!["session: ; all: ; covered: false"]);
    assert!(grants.add_approved(GrantScope::Session, &offer()));
    assert!(!grants.add_approved(GrantScope::Session, &offer()), "they are known already");
    check_grants(
        &grants,
        &expect![
            "session: `cargo test -q`, `cargo test …`; all: `cargo test -q`, `cargo test …`; covered: true"
        ],
    );

    let mut grants = SessionGrants::default();
    assert!(grants.add_approved(GrantScope::Project, &offer()));
    check_grants(&grants, &expect!["session: `cargo test -q`; all: `cargo test -q`; covered: false"]);
    let mut stored = grants.clone();
    stored.replace_project_grants(GrantSet::from_iter(offer().project));
    check_grants(
        &stored,
        &expect!["session: `cargo test -q`; all: `cargo test -q`, `cargo test …`; covered: true"],
    );
    grants.keep_unstored(&offer());
    grants.replace_project_grants(GrantSet::default());
    check_grants(
        &grants,
        &expect![
            "session: `cargo test -q`, `cargo test …`; all: `cargo test -q`, `cargo test …`; covered: true"
        ],
    );
}

#[test]
fn session_grants_are_listed_and_removed_by_number() {
    let mut grants = SessionGrants::default();
    assert_eq!(grants.removal_of_listed(1), None, "no list was shown");
    grants.add_session_grants(&GrantSet::from_iter([run("a\nb"), run("\u{202e}c"), Grant::Edits]));
    grants.replace_project_grants(GrantSet::from_iter([Grant::Edits, Grant::WebSearch]));
    expect![[r#"
        Always allowed in /p/\u{202e}x:

        1. edits
        2. web searches

        Allowed for this session:

        3. `a\nb`
        4. `\u{202e}c`

        `/permissions remove N` removes one, `/permissions clear` removes all.
    "#]]
    .assert_eq(&grants.render_list(Some("/p/\u{202e}x")));

    let removal = grants.removal_of_listed(1).unwrap();
    grants.remove(&removal);
    assert_eq!(removal.project_grants(), [Grant::Edits]);
    check_grants(
        &grants,
        &expect![[r#"session: `a\nb`, `\u{202e}c`; all: `a\nb`, `\u{202e}c`, web searches; covered: false"#]],
    );
    // Numbers are those of the list that the user has seen.
    let removal = grants.removal_of_listed(4).unwrap();
    grants.remove(&removal);
    assert_eq!(removal.project_grants(), []);
    let results = [removal.render_result(), grants.removal_of_all().render_result()];
    expect![[r#"
        Removed: `\u{202e}c`.
        2 permissions were removed.
    "#]]
    .assert_eq(&results.concat());
    assert_eq!((grants.removal_of_listed(0), grants.removal_of_listed(5)), (None, None));

    let removal = grants.removal_of_all();
    grants.remove(&removal);
    expect![[r#"
        There are no stored permissions. A permission question offers to store one.
    "#]]
    .assert_eq(&grants.render_list(None));
    expect![[r#"
        There are no stored permissions.
    "#]]
    .assert_eq(&grants.removal_of_all().render_result());
}

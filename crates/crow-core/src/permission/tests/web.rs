use expect_test::expect;

use super::{check, check_ruled};
use crate::{Grant, GrantSet, SiteReach, ToolAccess};

fn fetches(site: &str, reach: SiteReach) -> ToolAccess {
    ToolAccess::Fetches { site: site.to_owned(), reach }
}

#[test]
fn public_site_asks_once() {
    let site = fetches("docs.rs", SiteReach::Public);
    let mut grants = GrantSet::default();
    check(
        &site,
        &grants,
        &expect![[r#"
            ask: ask, both: pages of docs.rs
            accept-edits: ask, both: pages of docs.rs
            plan: ask, both: pages of docs.rs
            auto: allow
        "#]],
    );
    grants.add_grant(Grant::Site("docs.rs".to_owned()));
    check(
        &site,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check(
        &fetches("docs.rs:8443", SiteReach::Public),
        &grants,
        &expect![[r#"
            ask: ask, both: pages of docs.rs:8443
            accept-edits: ask, both: pages of docs.rs:8443
            plan: ask, both: pages of docs.rs:8443
            auto: allow
        "#]],
    );
}

#[test]
fn private_site_asks_in_every_mode_and_under_rules() {
    let site = fetches("localhost:3000", SiteReach::Private);
    let mut grants = GrantSet::default();
    check_ruled(
        "allow: tool(web_fetch)",
        &site,
        &grants,
        &expect![[r#"
            ask: ask, session: pages of localhost:3000: localhost:3000 is not on the public internet
            accept-edits: ask, session: pages of localhost:3000: localhost:3000 is not on the public internet
            plan: ask, session: pages of localhost:3000: localhost:3000 is not on the public internet
            auto: ask, session: pages of localhost:3000: localhost:3000 is not on the public internet
        "#]],
    );
    grants.add_grant(Grant::Site("localhost:3000".to_owned()));
    check(
        &site,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check(
        &fetches("localhost:22", SiteReach::Private),
        &grants,
        &expect![[r#"
            ask: ask, session: pages of localhost:22: localhost:22 is not on the public internet
            accept-edits: ask, session: pages of localhost:22: localhost:22 is not on the public internet
            plan: ask, session: pages of localhost:22: localhost:22 is not on the public internet
            auto: ask, session: pages of localhost:22: localhost:22 is not on the public internet
        "#]],
    );
}

#[test]
fn search_asks_once() {
    let mut grants = GrantSet::default();
    check(
        &ToolAccess::Searches,
        &grants,
        &expect![[r#"
            ask: ask, both: web searches
            accept-edits: ask, both: web searches
            plan: ask, both: web searches
            auto: allow
        "#]],
    );
    grants.add_grant(Grant::WebSearch);
    check(
        &ToolAccess::Searches,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
}

#[test]
fn tool_rules_allow_and_deny_web_access() {
    let grants = GrantSet::default();
    check_ruled(
        "allow: tool(web_fetch)",
        &fetches("docs.rs", SiteReach::Public),
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: tool(web_search)",
        &ToolAccess::Searches,
        &grants,
        &expect![[r#"
        ask: allow
        accept-edits: allow
        plan: allow
        auto: allow
    "#]],
    );
    check_ruled(
        "allow: tool(web_fetch); deny: tool(web_fetch)",
        &fetches("docs.rs", SiteReach::Public),
        &grants,
        &expect![[r#"
            ask: deny: the configuration forbids it with the deny rule `tool(web_fetch)`
            accept-edits: deny: the configuration forbids it with the deny rule `tool(web_fetch)`
            plan: deny: the configuration forbids it with the deny rule `tool(web_fetch)`
            auto: deny: the configuration forbids it with the deny rule `tool(web_fetch)`
        "#]],
    );
}

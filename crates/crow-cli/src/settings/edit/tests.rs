use std::path::Path;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{find_value, insert_entry, set_value};

const TEXT: &str = "\
# My models.
providers:
  work:   # the gateway
    base_url: https://llm.work/v1
    api_key: ${WORK_KEY}
    # headers: none yet

# The first is the default.
models:
  gpt-5.1: { provider: work, model: gpt-5.1 } # quick
  big:
    provider: work
    context_window: 1000   # too small

permissions:
  mode: ask
  allow:
  - terminal(ls)
shell:
hooks: {}
";

fn edit(text: &str, key: &str, value: &str) -> String {
    set_value(Path::new("config.yaml"), text, key, value).unwrap_or_else(|error| format!("error: {error}\n"))
}

/// Shows the lines that differ.
fn check(edits: &[(&str, &str)], expect: &Expect) {
    let mut shown = String::new();
    for (key, value) in edits {
        let edited = edit(TEXT, key, value);
        shown.push_str(&format!("= {key}\n"));
        let before: Vec<&str> = TEXT.lines().collect();
        shown.extend(edited.lines().filter(|line| !before.contains(line)).map(|line| format!("{line}\n")));
    }
    expect.assert_eq(&shown);
}

#[test]
fn values_are_replaced_and_added_in_place() {
    check(
        &[
            ("permissions.mode", "auto"),
            ("models.big.context_window", "200000"),
            ("models.big.temperature", "0.2"),
            ("models.gpt-5.1.temperature", "0.2"),
            ("models.gpt-5.1.price.input", "2"),
            ("models.qwen3.8.provider", "work"),
            ("providers.work.api_key", "${NEW}"),
            ("providers.work.api", "messages"),
            ("providers.work.headers.X-Title", "a: b # c"),
            ("permissions.sandbox", "always"),
            ("permissions.allow", "[terminal(ls), read]"),
            ("shell", "bash"),
            ("hooks.Stop", "[]"),
            ("max_tools", "64"),
            ("models", "none"),
        ],
        &expect![[r#"
            = permissions.mode
              mode: auto
            = models.big.context_window
                context_window: 200000   # too small
            = models.big.temperature
                temperature: 0.2
            = models.gpt-5.1.temperature
              gpt-5.1: { provider: work, model: gpt-5.1, temperature: 0.2 } # quick
            = models.gpt-5.1.price.input
              gpt-5.1: { provider: work, model: gpt-5.1, price: { input: 2 } } # quick
            = models.qwen3.8.provider
              qwen3.8:
            = providers.work.api_key
                api_key: ${NEW}
            = providers.work.api
                api: messages
            = providers.work.headers.X-Title
                headers:
                  X-Title: "a: b # c"
            = permissions.sandbox
              sandbox: always
            = permissions.allow
            error: permissions.allow cannot be changed without changing other lines
            = shell
            shell: bash
            = hooks.Stop
            hooks: { Stop: [] }
            = max_tools
            max_tools: 64
            = models
            error: models cannot be changed without changing other lines
        "#]],
    );
}

#[test]
fn lists_and_maps_on_one_line_are_replaced() {
    let text = "\
permissions:
  allow: [git status, 'it''s [a] # list', \"]\"]   # often
  deny: []
models: { m: { provider: p, extra_body: {a: [1, 2]} } }
hooks: {}
";
    let edits = [
        ("permissions.allow", "[git status, cargo test]"),
        ("permissions.allow", "none"),
        ("permissions.deny", "[terminal(rm)]"),
        ("models.m.extra_body", "{}"),
        ("models.m.extra_body.a", "[3]"),
        ("models.m", "{ provider: q }"),
        ("hooks", "{ Stop: [] }"),
    ];
    let mut shown = String::new();
    for (key, value) in edits {
        let edited = edit(text, key, value);
        shown.extend(edited.lines().filter(|line| !text.contains(line)).map(|line| format!("{line}\n")));
    }
    expect![[r#"
          allow: [git status, cargo test]   # often
          allow: none   # often
          deny: [terminal(rm)]
        models: { m: { provider: p, extra_body: {} } }
        models: { m: { provider: p, extra_body: {a: [3]} } }
        models: { m: { provider: q } }
        hooks: { Stop: [] }
    "#]]
    .assert_eq(&shown);
}

#[test]
fn new_entry_follows_the_block() {
    let edited = insert_entry(
        Path::new("c"),
        TEXT,
        "providers",
        "  openai:\n    base_url: https://o\n    api_key: ${K}\n",
    );
    expect![[r#"
        # My models.
        providers:
          work:   # the gateway
            base_url: https://llm.work/v1
            api_key: ${WORK_KEY}
            # headers: none yet
          openai:
            base_url: https://o
            api_key: ${K}

        # The first is the default.
        models:
          gpt-5.1: { provider: work, model: gpt-5.1 } # quick
          big:
            provider: work
            context_window: 1000   # too small

        permissions:
          mode: ask
          allow:
          - terminal(ls)
        shell:
        hooks: {}
    "#]]
    .assert_eq(&edited.unwrap());
    let edited = insert_entry(Path::new("c"), "# nothing\n", "models", "  m:\n    provider: p\n");
    expect![[r#"
        # nothing
        models:
          m:
            provider: p
    "#]]
    .assert_eq(&edited.unwrap());
}

#[test]
fn value_is_found_as_written() {
    let find = |key: &str| find_value(Path::new("c"), TEXT, key).unwrap();
    assert_eq!(find("providers.work.api_key").unwrap(), "${WORK_KEY}");
    assert_eq!(find("models.gpt-5.1.model").unwrap(), "gpt-5.1");
    assert_eq!(find("models.gpt-5.2.model"), None);
}

proptest! {
    #[test]
    fn everything_else_stays(key in "(models\\.(big|gpt-5\\.1|new)|providers\\.work|permissions|[a-z]{1,8})\\.[a-z_]{1,10}", value in "[ -~]{0,12}") {
        if let Ok(edited) = set_value(Path::new("c"), TEXT, &key, &value) {
            for comment in TEXT.lines().filter_map(|line| line.split_once('#')) {
                prop_assert!(edited.contains(comment.1), "{}", edited);
            }
            let n_lines = edited.lines().count();
            prop_assert!((TEXT.lines().count()..=TEXT.lines().count() + 3).contains(&n_lines));
        }
    }
}

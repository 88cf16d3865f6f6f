//! `crow-cli config`.

use expect_test::expect;

use super::{Stage, check};

const CONFIG: &str = "# mine\nproviders:\n  fake: { base_url: $URL, api_key: sk-0123456789 } # ours\nmodels:\n  \
                      m.1: { provider: fake, model: scripted }\n";

#[test]
fn values_are_shown_as_written() {
    let stage = Stage::configured("", CONFIG);
    for (command, output) in [
        (
            "crow config path",
            expect![[r#"
            exit 0
            $HOME/.crow/config.yaml
        "#]],
        ),
        (
            "crow config get models.m.1.model",
            expect![[r#"
            exit 0
            scripted
        "#]],
        ),
        (
            "crow config get models.m.1",
            expect![[r#"
            exit 0
            {
              "provider": "fake",
              "model": "scripted"
            }
        "#]],
        ),
        (
            "crow config get providers.fake.api_key",
            expect![[r#"
            exit 0
            (hidden)
        "#]],
        ),
        (
            "crow config get permissions.mode",
            expect![[r#"
            exit 1
            error: permissions.mode is not set in $HOME/.crow/config.yaml
        "#]],
        ),
    ] {
        check(&stage, command, &output);
    }
}

#[test]
fn secrets_are_hidden_and_nothing_else() {
    let config = "db_uri: sqlite:///${HOME}/.crow/crow.db\nproviders:\n  fake: { base_url: $URL }\nmodels:\n  m: { provider: fake }\n\
        mcpServers:\n  a: { url: \"https://user:pw-1@x/mcp?key=pw-2&page=${PAGE}\" }\n  \
        b: { command: b, args: [--api-key=pw-3, --token, pw-4, --header, \"Authorization: pw-5\", --port, \"80\", \"${DIR}\"] }\n\
        hooks:\n  Stop: [{ command: \"API_KEY=pw-6 tell --password pw-7 --to ${API_KEY} http://h/a@b\" }]\n";
    let stage = Stage::configured("", config);
    for (command, output) in [
        (
            "crow config get db_uri",
            expect![[r#"
            exit 0
            sqlite:///${HOME}/.crow/crow.db
        "#]],
        ),
        (
            "crow config get mcpServers",
            expect![[r#"
            exit 0
            {
              "a": {
                "url": "https://(hidden)@x/mcp?key=(hidden)&page=${PAGE}"
              },
              "b": {
                "command": "b",
                "args": [
                  "--api-key=(hidden)",
                  "--token",
                  "(hidden)",
                  "--header",
                  "(hidden)",
                  "--port",
                  "80",
                  "${DIR}"
                ]
              }
            }
        "#]],
        ),
        (
            "crow config get hooks",
            expect![[r#"
            exit 0
            {
              "Stop": [
                {
                  "command": "API_KEY=(hidden) tell --password (hidden) --to ${API_KEY} http://h/a@b"
                }
              ]
            }
        "#]],
        ),
    ] {
        check(&stage, command, &output);
    }
}

#[test]
fn values_are_set_in_place() {
    let stage = Stage::configured("", CONFIG);
    for (command, output) in [
        (
            "crow config set permissions.mode plan",
            expect![[r#"
            exit 0
        "#]],
        ),
        (
            "crow config set models.m.1.context_window 32000",
            expect![[r#"
            exit 0
        "#]],
        ),
        (
            "crow config get models.m.1.context_window",
            expect![[r#"
            exit 0
            32000
        "#]],
        ),
        (
            "crow config set models.m.1.context_windw 32000",
            expect![[r#"
            exit 2
            error: models.m.1.context_windw is not changed: unknown key models.m.1.context_windw; did you mean context_window?
        "#]],
        ),
        (
            "crow config set permissions.mode sometimes",
            expect![[r#"
            exit 2
            error: permissions.mode is not changed: permissions.mode: expected ask, accept-edits, plan or auto
        "#]],
        ),
        (
            "crow config edit",
            expect![[r#"
            exit 2
            error: an editor needs a terminal
            hint: `crow-cli config path` prints the path of the file
        "#]],
        ),
        (
            "crow models",
            expect![[r#"
            exit 0
            NAME  PROVIDER  MODEL     WINDOW
            m.1   fake      scripted  32000   default
        "#]],
        ),
    ] {
        check(&stage, command, &output);
    }
    let config =
        std::fs::read_to_string(stage.world.home().join(".crow/config.yaml")).expect("the file is there");
    assert!(config.starts_with("# mine\n") && config.contains(" # ours\n"), "{config}");
}

#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

mod agents;
mod depth;
mod earlier;
mod hooks;
mod models;

use std::{fmt::Write as _, fs};

use crow_core::McpTransport;
use crow_model::{ModelApi, ModelSettings, ToolCallMode};
use expect_test::{Expect, expect};

use super::{ConfigWarningKind, Environment, Settings};

/// Loads a directory and compares the result; `$DIR` is the directory.
#[track_caller]
fn check(yaml: &str, env: &[(&str, &str)], expect: Expect) {
    check_directory(yaml, "", env, expect);
}

#[track_caller]
fn check_directory(yaml: &str, dotenv: &str, env: &[(&str, &str)], expect: Expect) {
    expect.assert_eq(&loaded(yaml, dotenv, env));
}

fn loaded(yaml: &str, dotenv: &str, env: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("config.yaml"), yaml).unwrap();
    fs::write(directory.path().join(".env"), dotenv).unwrap();
    let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut text = String::new();
    match Settings::load(directory.path(), &env) {
        Ok((settings, warnings)) => {
            for warning in warnings {
                match warning.kind {
                    ConfigWarningKind::Suspicious => writeln!(text, "warning: {warning}").unwrap(),
                    ConfigWarningKind::Retired => writeln!(text, "retired: {}", warning.text).unwrap(),
                }
            }
            show(&settings, &mut text);
        }
        Err(error) => writeln!(text, "error: {error}").unwrap(),
    }
    text.replace(&directory.path().display().to_string(), "$DIR")
}

/// Shows how a model is called, where that differs from the default.
fn show_model_api(model: &ModelSettings, text: &mut String) {
    if model.provider.api != ModelApi::default() {
        writeln!(text, "  api {}", model.provider.api.as_str()).unwrap();
    }
    if model.tool_calls != ToolCallMode::default() {
        writeln!(text, "  tool calls {}", model.tool_calls.as_str()).unwrap();
    }
    if model.tools != crow_core::ToolSelection::default() {
        writeln!(text, "  tools {:?}", model.tools).unwrap();
    }
    if let Some(sends) = model.send_reasoning {
        writeln!(text, "  sends its reasoning: {sends}").unwrap();
    }
    for (level, fields) in &model.thought_levels {
        writeln!(text, "  level {level}: {}", serde_json::Value::Object(fields.clone())).unwrap();
    }
    if let Some(price) = model.price {
        writeln!(text, "  {price:?}").unwrap();
    }
}

fn show(settings: &Settings, text: &mut String) {
    for model in &settings.models {
        let provider = &model.provider;
        writeln!(text, "model {}: {} at {} {}", model.name, model.model, provider.name, provider.base_url)
            .unwrap();
        writeln!(
            text,
            "  key {:?} from {:?} headers {:?}",
            provider.api_key, provider.key_variable, provider.headers
        )
        .unwrap();
        write!(text, "  window {} max {:?} ", model.context_window, model.max_tokens).unwrap();
        write!(text, "temperature {:?} effort {:?} ", model.temperature, model.reasoning_effort).unwrap();
        let body = serde_json::Value::Object(model.extra_body.clone());
        writeln!(text, "retries {} body {body}", model.retries_max).unwrap();
        if !model.reads_images {
            writeln!(text, "  reads text only").unwrap();
        }
        show_model_api(model, text);
    }
    for server in &settings.mcp_servers {
        match &server.transport {
            McpTransport::Stdio { command, args, env } => {
                writeln!(text, "server {}: stdio {command} {args:?} {env:?}", server.name).unwrap();
            }
            McpTransport::Http { url, headers } => {
                writeln!(text, "server {}: http {url} {headers:?}", server.name).unwrap();
            }
            McpTransport::Sse { url, headers } => {
                writeln!(text, "server {}: sse {url} {headers:?}", server.name).unwrap();
            }
        }
        if !server.disabled_tools.is_empty() {
            writeln!(text, "  without {:?}", server.disabled_tools).unwrap();
        }
        if server.cwd.is_some() || server.timeout.is_some() || server.included_tools.is_some() {
            let crow_core::McpServer { included_tools, cwd, timeout, .. } = server;
            writeln!(text, "  only {included_tools:?} in {cwd:?} within {timeout:?}").unwrap();
        }
    }
    agents::show(settings, text);
    for (kind, rules) in [("allow", &settings.rules.allow), ("deny", &settings.rules.deny)] {
        for rule in rules {
            writeln!(text, "{kind} {}", rule.as_str()).unwrap();
        }
    }
    for hook in &settings.hooks {
        let fits = ["read", "edit", "terminal"].into_iter().filter(|tool| hook.matcher.matches_tool(tool));
        let fits: Vec<&str> = fits.collect();
        writeln!(text, "{} {fits:?} {:?} {:?}", hook.event.as_str(), hook.command, hook.timeout).unwrap();
    }
    let Settings { database, requests_max, mode, secret_variables, .. } = settings;
    writeln!(
        text,
        "db {} requests {requests_max} mode {} secrets {secret_variables:?}",
        database,
        mode.as_str()
    )
    .unwrap();
}

#[test]
fn empty_directory_is_a_configuration_without_models() {
    check(
        "",
        &[],
        expect![[r#"
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
}

#[test]
fn configuration_directory_is_absolute() {
    let env = |home: &str| Environment::from([("HOME".to_owned(), home.to_owned())]);
    let is_resolved = |requested: Option<&str>, home: &str| {
        let dir = super::config_dir(requested.map(Into::into), &env(home)).unwrap();
        (dir.is_absolute(), dir.display().to_string().rsplit('/').next().unwrap().to_owned())
    };
    assert_eq!(is_resolved(Some("cfg"), "/h"), (true, "cfg".to_owned()));
    assert_eq!(is_resolved(Some("./cfg"), "/h"), (true, "cfg".to_owned()));
    assert_eq!(is_resolved(None, "home"), (true, ".crow".to_owned()));
    // An empty variable is an unset one.
    assert_eq!(is_resolved(Some(""), "/h"), (true, ".crow".to_owned()));
    assert!(super::config_dir(Some("".into()), &Environment::new()).is_err());
}

#[test]
fn complete_configuration_is_read() {
    check(
        "
providers:
  openrouter: { base_url: https://openrouter.ai/api/v1/, api_key: ${OPENROUTER_API_KEY}, headers: {X-Title: crow} }
  here: { base_url: 'http://localhost:11434/v1' }
models:
  sonnet: { provider: openrouter, model: anthropic/claude-sonnet-4, context_window: 200000,
            max_tokens: 32000, temperature: 0.2, reasoning_effort: medium, extra_body: {top_k: 4, user: \"${USER}\"} }
  llama: { provider: here }
mcpServers:
  crow-mcp: { transport: builtin }
agent_servers:
  codex: { command: codex-acp, args: [], env: {} }
db_uri: sqlite:///${HOME}/.crow/crow.db
MAX_COMPACT_TOKENS: 180000
MAX_TOKENS: 38192
max_retries_per_step: 5
max_turn_requests: 20
use_acp_terminal: true
fallback_to_mcp_terminal: true
permissions: { mode: accept-edits, allow: [], deny: [] }
agents: { max_depth: 2, max_children: 8 }
",
        &[("OPENROUTER_API_KEY", "very-secret"), ("HOME", "/home/me"), ("USER", "me")],
        expect![[r#"
            model sonnet: anthropic/claude-sonnet-4 at openrouter https://openrouter.ai/api/v1
              key Some(ApiKey(…)) from Some("OPENROUTER_API_KEY") headers [("X-Title", "crow")]
              window 200000 max Some(32000) temperature Some(0.2) effort Some("medium") retries 5 body {"top_k":4,"user":"me"}
            model llama: llama at here http://localhost:11434/v1
              key None from None headers []
              window 128000 max Some(38192) temperature None effort None retries 5 body {}
            agent codex: codex-acp [] []
              written codex-acp
            db /home/me/.crow/crow.db requests 20 mode accept-edits secrets ["OPENROUTER_API_KEY"]
        "#]],
    );
}

#[test]
fn upper_case_keys_of_older_versions_are_read() {
    check(
        "MAX_TURN_REQUESTS: 7\nMAX_RETRIES_PER_STEP: 0\nMAX_TOKENS: '12'\nproviders: {p: {base_url: http://h/v1}}\nmodels: {m: {provider: p}}\n",
        &[],
        expect![[r#"
            model m: m at p http://h/v1
              key None from None headers []
              window 128000 max Some(12) temperature None effort None retries 0 body {}
            db $DIR/crow.db requests 7 mode ask secrets []
        "#]],
    );
}

#[test]
fn environment_overrides_the_env_file() {
    check_directory(
        "providers: {p: {base_url: '${BASE}/v1', api_key: \"${KEY}\"}}\nmodels: {m: {provider: p, model: '${MODEL}'}}\n",
        "# keys\nexport KEY=\"from file\"\nBASE=https://file\nMODEL=small\n",
        &[("BASE", "https://real")],
        expect![[r#"
            model m: small at p https://real/v1
              key Some(ApiKey(…)) from Some("KEY") headers []
              window 128000 max None temperature None effort None retries 3 body {}
            db $DIR/crow.db requests 200 mode ask secrets ["BASE", "KEY", "MODEL"]
        "#]],
    );
}

#[test]
fn unset_variables_are_no_key_or_a_warning() {
    check(
        "providers:\n  p:\n    base_url: http://h/v1\n    api_key: ${P_KEY}\n    headers: { X-Who: '${WHO}' }\nmodels:\n  m: { provider: p }\n",
        &[],
        expect![[r#"
            warning: $DIR/config.yaml:5: providers.p.headers.X-Who: the variable WHO is not set
            model m: m at p http://h/v1
              key None from Some("P_KEY") headers []
              window 128000 max None temperature None effort None retries 3 body {}
            db $DIR/crow.db requests 200 mode ask secrets ["P_KEY"]
        "#]],
    );
}

#[test]
fn unknown_keys_get_a_warning_with_a_suggestion() {
    check(
        "provders: {}\npermissions:\n  mod: ask\nzebra: 1\nproviders:\n  p:\n    base_ulr: x\n    base_url: http://h\n",
        &[],
        expect![[r#"
            warning: $DIR/config.yaml:1: unknown key provders; did you mean providers?
            warning: $DIR/config.yaml:3: unknown key permissions.mod; did you mean mode?
            warning: $DIR/config.yaml:4: unknown key zebra
            warning: $DIR/config.yaml:7: unknown key providers.p.base_ulr; did you mean base_url?
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
}

#[test]
fn suggested_key_has_the_case_of_the_file() {
    check(
        "max_turn_request: 3\nMAX_TURN_REQUEST: 3\nmax_token: 9\nMax_Compact_Token: 9\nmax_retry_per_step: 1\nUSE_ACP_TERMINL: true\n",
        &[],
        expect![[r#"
            warning: $DIR/config.yaml:1: unknown key max_turn_request; did you mean max_turn_requests?
            warning: $DIR/config.yaml:2: unknown key MAX_TURN_REQUEST; did you mean MAX_TURN_REQUESTS?
            warning: $DIR/config.yaml:3: unknown key max_token; did you mean max_tokens?
            warning: $DIR/config.yaml:4: unknown key Max_Compact_Token; did you mean max_compact_tokens?
            warning: $DIR/config.yaml:5: unknown key max_retry_per_step; did you mean max_retries_per_step?
            warning: $DIR/config.yaml:6: unknown key USE_ACP_TERMINL; did you mean use_acp_terminal?
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
}

#[test]
fn wrong_types_are_errors_without_the_value() {
    let with_model = |model: &str| {
        format!("providers: {{p: {{base_url: http://h/v1}}}}\nmodels:\n  m:\n    provider: p\n    {model}\n")
    };
    check(
        &with_model("context_window: big"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:5: models.m.context_window: expected a positive whole number, found a string
        "#]],
    );
    check(
        &with_model("context_window: 0"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:5: models.m.context_window: expected a positive whole number, found zero
        "#]],
    );
    check(
        &with_model("max_tokens: -1"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:5: models.m.max_tokens: expected a positive whole number, found a negative number
        "#]],
    );
    check(
        &with_model("temperature: [1]"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:5: models.m.temperature: expected a number, found a list
    "#]],
    );
    check(
        &with_model("extra_body: secret"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:5: models.m.extra_body: expected a map of request fields, found a string
        "#]],
    );
}

#[test]
fn wrong_shapes_are_errors_without_the_value() {
    check(
        "models:\n  - m\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: models: expected a map from names to settings, found a list
    "#]],
    );
    check(
        "providers:\n  p:\n    api_key: [secret]\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:3: providers.p.api_key: expected a string, found a list
        "#]],
    );
    check(
        "just words\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:1: the file: expected a map of keys, found a string
        "#]],
    );
    check(
        "max_turn_requests: 99999999999\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:1: max_turn_requests: expected a positive whole number, found a number
    "#]],
    );
    check(
        "permissions:\n  mode: wild\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: permissions.mode: expected ask, accept-edits, plan or auto
    "#]],
    );
}

#[test]
fn rules_are_read_and_an_invalid_one_is_an_error() {
    check(
        "permissions:\n  allow: [git status, 'tool(read)', \"path(docs/**)\"]\n  deny:\n  - rm -rf\n  - mcp(web)\n",
        &[],
        expect![[r#"
            allow git status
            allow tool(read)
            allow path(docs/**)
            deny rm -rf
            deny mcp(web)
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
    check(
        "permissions: { allow: git status }\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:1: permissions.allow: expected a list of rules, found a string
        "#]],
    );
    check(
        "permissions:\n  deny:\n  - rm\n  - git push; ls\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:4: permissions.deny: the rule `git push; ls` must be the first words of a command; it is not one command
        "#]],
    );
    check(
        "permissions:\n  allow: ['git log *']\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: permissions.allow: the rule `git log *` already covers any further words; remove the *
        "#]],
    );
    check(
        "permissions:\n  deny: ['${UNSET}']\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: permissions.deny: the rule `` names nothing
    "#]],
    );
}

#[track_caller]
fn check_sandbox(yaml: &str, expect: Expect) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("config.yaml"), yaml).unwrap();
    let shown = match Settings::load(directory.path(), &Environment::new()) {
        Ok((settings, warnings)) => {
            format!("{:?} {:?} {}", settings.sandbox, settings.network, warnings.len())
        }
        Err(error) => error.to_string().replace(&directory.path().display().to_string(), "$DIR"),
    };
    expect.assert_eq(&shown);
}

#[test]
fn sandbox_settings_are_read() {
    check_sandbox("", expect!["Unapproved Allowed 0"]);
    check_sandbox("permissions: { sandbox: always, network: false }\n", expect!["Always Denied 0"]);
    check_sandbox("permissions: { sandbox: off, network: true }\n", expect!["Off Allowed 0"]);
    check_sandbox(
        "sandbox: always\n",
        expect!["$DIR/config.yaml:1: sandbox: this key belongs to permissions; use permissions.sandbox"],
    );
    check_sandbox(
        "permissions:\n  sandbox: on\n",
        expect!["$DIR/config.yaml:2: permissions.sandbox: expected off, unapproved or always"],
    );
    check_sandbox(
        "permissions:\n  network: closed\n",
        expect!["$DIR/config.yaml:2: permissions.network: expected true or false, found a string"],
    );
}

#[test]
fn invalid_yaml_is_reported_with_its_line() {
    check(
        "providers: {}\nmodels: {a: [\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: unclosed bracket '['
    "#]],
    );
    check(
        "models: {}\nmodels: {}\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: duplicate mapping key: models
    "#]],
    );
}

#[test]
fn database_is_given_by_a_uri() {
    check(
        "db_uri: sqlite:////var/crow.db",
        &[],
        expect![[r#"
        db /var/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        "db_uri: sqlite+aiosqlite:///~/crow.db",
        &[("HOME", "/home/me")],
        expect![[r#"
        db /home/me/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        "db_uri: sqlite:///other.db",
        &[],
        expect![[r#"
        db $DIR/other.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        "db_uri: postgresql+asyncpg://u:${PASSWORD}@h/db",
        &[("PASSWORD", "secret")],
        expect![[r#"
        db postgres://u@h:5432/db requests 200 mode ask secrets ["PASSWORD"]
    "#]],
    );
    check(
        "db_uri: postgres://u:secret@h:port/db",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:1: db_uri: expected postgres://USER@HOST/NAME (invalid value for option `port`)
    "#]],
    );
    check(
        "db_uri: mysql://u@h/db",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:1: db_uri: expected sqlite:///PATH or postgres://USER@HOST/NAME
    "#]],
    );
}

#[test]
fn invalid_env_file_is_reported_with_its_line_only() {
    check_directory(
        "",
        "A=1\nB=secret with spaces\n",
        &[],
        expect![[r#"
        warning: $DIR/.env:2: expected NAME=value; quote a value that contains spaces or #
        db $DIR/crow.db requests 200 mode ask secrets ["A"]
    "#]],
    );
}

#[test]
fn keys_are_hidden_from_commands_by_name() {
    check(
        "",
        &[("ANTHROPIC_API_KEY", "x"), ("my_api_key", "x"), ("API_KEYS", "x"), ("PATH", "x")],
        expect![[r#"
            db $DIR/crow.db requests 200 mode ask secrets ["ANTHROPIC_API_KEY", "API_KEYS", "my_api_key"]
        "#]],
    );
}

#[test]
fn mcp_servers_are_read() {
    let yaml = "
mcpServers:
  git: { command: uvx, args: [mcp-server-git, --depth, 3], env: {TOKEN: ${GIT_TOKEN}, PATH: \"${PATH}:/opt\", EMPTY: } }
  web: { url: 'https://example.org/mcp?key=${WEB_KEY}', headers: {Authorization: Bearer ${WEB_TOKEN}} }
  named: { type: streamable-http, url: 'http://localhost:1/mcp' }
  old: { transport: sse, url: 'http://localhost:1/sse', disabled_tools: [rm, send mail] }
  crow-mcp: { transport: builtin }
  older: { command: /usr/bin/uvx, args: [\"--from\", crow-mcp, crow-mcp] }
  oldest: { command: uv, args: [--project, /home/me/src/crow-mcp, run, main.py] }
  newer: { transport: stdio, command: crow-cli, args: [mcp] }
  off: { command: nothing, disabled: true }
";
    let env = [("GIT_TOKEN", "t1"), ("PATH", "/bin"), ("WEB_KEY", "t2"), ("WEB_TOKEN", "t3")];
    check(
        yaml,
        &env,
        expect![[r#"
        server git: stdio uvx ["mcp-server-git", "--depth", "3"] [("TOKEN", "t1"), ("PATH", "/bin:/opt"), ("EMPTY", "")]
        server web: http https://example.org/mcp?key=t2 [("Authorization", "Bearer t3")]
        server named: http http://localhost:1/mcp []
        server old: sse http://localhost:1/sse []
          without ["rm", "send mail"]
        db $DIR/crow.db requests 200 mode ask secrets ["GIT_TOKEN", "WEB_KEY", "WEB_TOKEN"]
    "#]],
    );
}

#[test]
fn invalid_mcp_servers_are_errors() {
    let cases = [
        "mcpServers: [a]",
        "mcpServers: { a: text }",
        "mcpServers: { a: }",
        "mcpServers: { a: { command: x, url: 'http://y' } }",
        "mcpServers: { a: { command: [x] } }",
        "mcpServers: { a: { command: x, args: x } }",
        "mcpServers: { a: { command: x, args: [{}] } }",
        "mcpServers: { a: { command: x, env: [A=b] } }",
        "mcpServers: { a: { command: x, disabled: 3 } }",
        "mcpServers: { a: { command: x, disabled_tools: rm } }",
        "mcpServers: { a: { transport: carrier-pigeon, url: 'http://y' } }",
        "mcpServers: { a: { transport: http, command: x } }",
        "mcpServers: { a: { transport: stdio, url: 'http://y' } }",
        "mcpServers: { a: { url: example.org } }",
        "mcpServers: { a: { command: x, arg: [y], env: {A: ${UNSET}} } }",
    ];
    let mut all = String::new();
    for yaml in cases {
        all += &loaded(yaml, "", &[]);
    }
    expect![[r#"
        error: $DIR/config.yaml:1: mcpServers: expected a map from names to settings, found a list
        error: $DIR/config.yaml:1: mcpServers.a: expected a map with command or url, found a string
        error: $DIR/config.yaml:1: mcpServers.a needs a command or a url
        error: $DIR/config.yaml:1: mcpServers.a has both a command and a url; remove one of them
        error: $DIR/config.yaml:1: mcpServers.a.command: expected a string, found a list
        error: $DIR/config.yaml:1: mcpServers.a.args: expected a list of strings, found a string
        error: $DIR/config.yaml:1: mcpServers.a.args: expected a string, found a map
        error: $DIR/config.yaml:1: mcpServers.a.env: expected a map from names to strings, found a list
        error: $DIR/config.yaml:1: mcpServers.a.disabled: expected true or false, found a number
        error: $DIR/config.yaml:1: mcpServers.a.disabled_tools: expected a list of strings, found a string
        error: $DIR/config.yaml:1: mcpServers.a.transport: expected stdio, http, sse or builtin
        error: $DIR/config.yaml:1: mcpServers.a needs a url that starts with https:// or http://
        error: $DIR/config.yaml:1: mcpServers.a needs a command
        error: $DIR/config.yaml:1: mcpServers.a needs a url that starts with https:// or http://
        warning: $DIR/config.yaml:1: unknown key mcpServers.a.arg; did you mean args?
        warning: $DIR/config.yaml:1: mcpServers.a.env.A: the variable UNSET is not set
        server a: stdio x [] [("A", "")]
        db $DIR/crow.db requests 200 mode ask secrets ["UNSET"]
    "#]]
    .assert_eq(&all);
}

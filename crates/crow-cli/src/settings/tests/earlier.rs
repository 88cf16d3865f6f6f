//! Configurations of earlier versions, and the shell.

use std::fs;

use expect_test::expect;

use super::super::{Environment, Settings};
use super::check;

#[test]
fn database_of_earlier_versions_is_a_plain_path() {
    let database = |yaml: &str, env: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config.yaml"), yaml).unwrap();
        let env: Environment = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (settings, warnings) = Settings::load(directory.path(), &env).unwrap();
        assert_eq!(warnings, []);
        settings.database.to_string().replace(&directory.path().display().to_string(), "$DIR")
    };
    let home = [("HOME", "/home/me"), ("DATABASE_PATH", "/elsewhere.db")];
    assert_eq!(database("db_uri: /var/crow.db", &[]), "/var/crow.db");
    assert_eq!(database("db_uri: '~/crow.db'", &home), "/home/me/crow.db");
    assert_eq!(database("db_uri: crow.db", &[]), "$DIR/crow.db");
    assert_eq!(database("memory_path: '~/memory.db'", &home), "/home/me/memory.db");
    assert_eq!(database("", &home), "/elsewhere.db");
    assert_eq!(database("", &[("DATABASE_PATH", "~/crow.db"), ("HOME", "/home/me")]), "/home/me/crow.db");
}

#[test]
fn configuration_of_0_1_22_is_read() {
    check(
        "mcpServers:
  crow-mcp: { transport: stdio, command: uv, args: [--project, /x/crow-mcp, run, crow-mcp] }
  notes:
    command: notes
    cwd: ~/notes
    timeout: 30
    description: my notes
    include_tools: [find, add]
    exclude_tools: [drop]
  slow: { url: 'https://h/mcp', timeout: 60000 }
db_uri: sqlite:///${HOME}/.crow/crow.db
providers:
  work: { base_url: 'https://llm.work/v1', api_key: '${WORK_API_KEY}' }
models:
  big: { provider: work, model: big-70b }
MAX_COMPACT_TOKENS: 190000
N_STEPS_BACK_COMPACT: 8
TERMINAL_TOOL: terminal
max_steps_per_turn: 50
max_retries_per_step: 3
TEMPERATURE: 0.2
",
        &[("HOME", "/home/me"), ("WORK_API_KEY", "sk")],
        expect![[r#"
            retired: mcpServers.notes.description
            retired: N_STEPS_BACK_COMPACT
            retired: TERMINAL_TOOL
            model big: big-70b at work https://llm.work/v1
              key Some(ApiKey(…)) from Some("WORK_API_KEY") headers []
              window 128000 max None temperature Some(0.2) effort None retries 3 body {}
            server notes: stdio notes [] []
              without ["drop"]
              only Some(["find", "add"]) in Some("/home/me/notes") within Some(30s)
            server slow: http https://h/mcp []
              only None in None within Some(60s)
            db /home/me/.crow/crow.db requests 50 mode ask secrets ["WORK_API_KEY"]
        "#]],
    );
}

#[test]
fn configuration_of_0_1_48_is_read() {
    check(
        "mcpServers:
  crow-mcp: { transport: stdio, command: crow-cli, args: [mcp] }
db_uri: sqlite:///~/.agents/crow/crow.db
image_store: { s3: { endpoint: 'http://localhost:9000', bucket: b } }
skills_dir: ~/.agents/skills
redis_url: ''
goal: { max_turns: 25 }
chunk_log: false
parallel_tool_calls: false
agent_servers:
  other: { type: custom, command: uv, args: [run, other, acp] }
providers:
  work: { base_url: 'https://llm.work/v1', api_key: '${WORK_API_KEY}' }
models:
  big:
    provider: work
    model: big-70b
    temperature: 0.6
    top_p: 0.95
    top_k: 20
    min_p: 0
    presence_penalty: 0.1
    repetition_penalty: 1.05
    max_compact_tokens: 60000
    modality: [text]
    fallbacks: [big]
MAX_COMPACT_TOKENS: 180000
MAX_TOKENS: 38192
max_retries_per_step: 3
",
        &[("HOME", "/home/me"), ("WORK_API_KEY", "sk")],
        expect![[r#"
            retired: image_store
            retired: redis_url
            retired: goal
            retired: chunk_log
            model big: big-70b at work https://llm.work/v1
              key Some(ApiKey(…)) from Some("WORK_API_KEY") headers []
              window 128000 max Some(38192) temperature Some(0.6) effort None retries 3 body {"top_p":0.95,"top_k":20,"min_p":0,"presence_penalty":0.1,"repetition_penalty":1.05,"parallel_tool_calls":false}
              reads text only
            agent other: uv ["run", "other", "acp"] []
              written uv run other acp
            db /home/me/.agents/crow/crow.db requests 200 mode ask secrets ["WORK_API_KEY"]
        "#]],
    );
}

#[test]
fn shell_is_chosen_from_the_configuration_or_path() {
    let shell = |yaml: &str, path: &str| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config.yaml"), yaml).unwrap();
        let env = Environment::from([("PATH".to_owned(), path.to_owned())]);
        match Settings::load(directory.path(), &env) {
            Ok((settings, _)) => format!("{} {}", settings.shell.name(), settings.shell.program()),
            Err(error) => error.to_string().replace(&directory.path().display().to_string(), "$DIR"),
        }
    };
    assert_eq!(shell("", "relative:/usr/bin"), "bash /usr/bin/bash");
    assert_eq!(shell("shell: sh", "/bin"), "sh /bin/sh");
    assert_eq!(shell("shell: /bin/bash", ""), "/bin/bash /bin/bash");
    let none = "$DIR/config.yaml:1: shell: program not found; expected bash, sh or dash, or the path of one";
    assert_eq!(shell("shell: no-such-shell", "/bin"), none);
    let other = "$DIR/config.yaml:1: shell: expected bash, sh or dash, or the path of one: commands of other shells cannot be evaluated";
    assert_eq!(shell("shell: /usr/bin/env", "/bin"), other);
}

#[test]
fn values_may_be_written_in_each_form_of_yaml() {
    check(
        "providers: {p: {base_url: http://h/v1}}\nmodels:\n  m: { provider: p, max_tokens: 32_000, context_window: 0x1000, temperature: 1 }\nmcpServers:\n  off: { url: http://s/mcp, disabled: Yes }\n  on: { url: http://s/mcp, disabled: off }\nmax_turn_requests: 1_000\nuse_acp_terminal: True\npermissions: { mode: ask, network: no }\n",
        &[],
        expect![[r#"
            model m: m at p http://h/v1
              key None from None headers []
              window 4096 max Some(32000) temperature Some(1.0) effort None retries 3 body {}
            server on: http http://s/mcp []
            db $DIR/crow.db requests 1000 mode ask secrets []
        "#]],
    );
}

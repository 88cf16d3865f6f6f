//! Configuration directories of earlier versions with a session and a changed prompt: they cause no warning, and the
//! session continues. The directories here are private; other tests check the ones that are not.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::commands::doctor::mask_machine;

/// The content of such a directory, besides the database.
struct Folder {
    database: &'static [u8],
    config: &'static str,
    env: &'static str,
    prompt: &'static str,
    /// The names of other files.
    more: &'static [&'static str],
}

const OF_0_1_22: Folder = Folder {
    database: include_bytes!("0.1.22.db"),
    config: "mcpServers:
  crow-mcp:
    transport: stdio
    command: uv
    args:
    - --project
    - /usr/lib/python3/site-packages/crow-mcp
    - run
    - crow-mcp
db_uri: sqlite:///${HOME}/.crow/crow.db
providers:
  work:
    base_url: $URL
    api_key: ${WORK_API_KEY}
models:
  qwen3:
    provider: work
    model: scripted
MAX_COMPACT_TOKENS: 190000
N_STEPS_BACK_COMPACT: 8
max_retries_per_step: 3
",
    env: "WORK_API_KEY=sk-very-secret\nSEARXNG_PORT=2946\n",
    prompt: "MINE in {{ workspace }}\n{{ display_tree }}\n{{ agents_content }}\n{{ db_uri }}\n{{ table_schema }}\n",
    more: &["compose.yaml", "litellm/config.yaml", "searxng/settings.yml", "logs/crow-cli.log"],
};

const OF_0_1_48: Folder = Folder {
    database: include_bytes!("0.1.48.db"),
    config: "mcpServers:
  crow-mcp:
    transport: stdio
    command: crow-cli
    args:
    - mcp
db_uri: sqlite:///~/.crow/crow.db
providers:
  work:
    base_url: $URL
    api_key: ${WORK_API_KEY}
models:
  qwen3:
    provider: work
    model: scripted
    modality: [text, image]
MAX_COMPACT_TOKENS: 190000
max_retries_per_step: 3
image_store:
  s3:
    endpoint: http://localhost:9000
    bucket: crow-images
    access_key: ${RUSTFS_ACCESS_KEY}
    secret_key: ${RUSTFS_SECRET_KEY}
agent_servers:
  crow-cli:
    type: custom
    command: env
    args: [uv, --project, /srv/crow-cli, run, crow-cli, acp]
skills_dir: ~/.agents/skills
system_prompt_path: ~/.crow/prompts/system_prompt.jinja2
",
    env: "WORK_API_KEY=sk-very-secret\nRUSTFS_ACCESS_KEY=rustfsadmin\nRUSTFS_SECRET_KEY=rustfsadmin\n",
    prompt: "MINE, {{ session_id }}, in {{ workspace }}\n{{ display_tree }}\n{% for file in agents_full %}{{ file.content }}{% endfor %}\n\
             {% if skills %}{% for skill in skills %}{{ skill.name }}{% endfor %}{% else %}none in {{ skills_dir }}{% endif %}\n",
    more: &["compose.yaml", "prompts/execute_prompt.jinja2", "logs/crow-cli.log"],
};

impl Folder {
    fn laid_out(&self, server: &ModelServer) -> TestHome {
        let world = TestHome::new(server.base_url());
        world.configure(&self.config.replace("$URL", server.base_url()));
        let folder = world.home().join(".crow");
        for (name, text) in [(".env", self.env), ("prompts/system_prompt.jinja2", self.prompt)]
            .into_iter()
            .chain(self.more.iter().map(|name| (*name, "")))
        {
            write(&folder.join(name), text.as_bytes());
        }
        write(&folder.join("crow.db"), self.database);
        for (name, mode) in
            [(".env", 0o600), ("crow.db", 0o600), ("logs", 0o700), ("logs/crow-cli.log", 0o600)]
        {
            let private = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.join(name), private).expect("it can be made private");
        }
        world
    }
}

fn write(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns the stdout and stderr of a command.
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a shell starts it")]
fn told(world: &TestHome, args: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.args(args).current_dir(world.project()).env_clear().env("HOME", world.home());
    let ran = command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().expect("it runs");
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said).replace(&world.home().display().to_string(), "$HOME");
    mask_machine(&said)
}

/// Compares the output of `doctor`, a client's view of the old session and of a new one, and the model requests.
fn check(folder: &Folder, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start("text \"Still here.\"\ntext \"Here too.\"\ntext \"And here.\"");
        let world = folder.laid_out(&server);
        let mut shown = told(&world, &["doctor"]);
        let offered = json!({"session": {"notices": {}}});
        let mut client = FakeClient::start_with(&binary(), &world.home(), offered).await;
        client.load_session("wise-otter", &world.project()).await.expect("the session loads");
        let id = client.prompt("wise-otter", "still there?").await;
        client.response_to(id).await.expect("the session goes on");
        let new = client.new_session(&world.project()).await;
        let id = client.prompt(&new, "and here?").await;
        client.response_to(id).await.expect("a new session works");
        shown += &client.log();
        assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
        for request in server.requests() {
            let system = request["messages"][0]["content"].as_str().unwrap_or_default();
            assert!(system.starts_with("MINE"), "{system}");
        }
        shown += &told(&world, &["run", "-s", "wise-otter", "again"]);
        expected.assert_eq(&shown);
    });
}

#[test]
fn directory_of_0_1_22() {
    check(
        &OF_0_1_22,
        &expect![[r#"
            ok       config           $HOME/.crow/config.yaml
            ok       keys             from earlier versions, without effect: N_STEPS_BACK_COMPACT (line 20)
            ok       work             reachable, lists 1 model
            ok       database         $HOME/.crow/crow.db is intact
                ok request about N of N tokens in the context (2 %)
                system prompt N N %
                tools N N %
                instructions N N %
                environment N N %
                conversation N N %
                free N N %
                it is compacted beyond N tokens
            ok       shell            commands run in bash
            < prompt[msg-0] what is in a.txt?
            < usage 130/128000
            < call call-1-0 read "Read a.txt" completed {"file_path":"a.txt"} "1\talpha"
            < text[msg-3] The word alpha.
            < usage 150/128000
            < title what is in a.txt?
            < text[msg-5] Still here.
            < text[msg-1] Here too.
            < title and here?
            And here.
            session     wise-otter
            continue    crow-cli run -s wise-otter "…"
        "#]],
    );
}

#[test]
fn directory_of_0_1_48() {
    check(
        &OF_0_1_48,
        &expect![[r#"
            ok       config           $HOME/.crow/config.yaml
            ok       keys             from earlier versions, without effect: image_store (line 19)
            ok       work             reachable, lists 1 model
            ok       database         $HOME/.crow/crow.db is intact
            ok       agent crow-cli   found /usr/bin/env (not started)
                ok request about N of N tokens in the context (2 %)
                system prompt N N %
                tools N N %
                instructions N N %
                environment N N %
                conversation N N %
                free N N %
                it is compacted beyond N tokens
            ok       shell            commands run in bash
            < prompt[msg-0] what is in a.txt?
            < usage 130/128000
            < call call-1-0 read "Read a.txt" completed {"file_path":"a.txt"} "1\talpha"
            < text[msg-3] The word alpha.
            < usage 150/128000
            < title what is in a.txt?
            < text[msg-5] Still here.
            < text[msg-1] Here too.
            < title and here?
            And here.
            session     wise-otter
            continue    crow-cli run -s wise-otter "…"
        "#]],
    );
}

use std::{fmt::Write as _, fs};

use crow_core::{AgentTransport, FarmAddress, NatsCredentials, NatsServer, TreeLimits};
use expect_test::expect;

use super::{super::Settings, check, loaded};

pub(super) fn show(settings: &Settings, text: &mut String) {
    for server in &settings.agent_servers {
        let name = &server.name;
        match &server.transport {
            AgentTransport::Program { command, args, env } => {
                writeln!(text, "agent {name}: {command} {args:?} {env:?}").unwrap();
            }
            AgentTransport::Socket { url, headers } => {
                writeln!(text, "agent {name}: {url} {headers:?}").unwrap();
            }
            AgentTransport::Farm(farm) => show_farm(name, farm, text),
        }
        writeln!(text, "  written {}", settings.agent_descriptions[name]).unwrap();
    }
    if settings.tree_limits != TreeLimits::default() {
        writeln!(text, "{:?}", settings.tree_limits).unwrap();
    }
}

fn show_farm(name: &str, farm: &FarmAddress, text: &mut String) {
    let FarmAddress { server: NatsServer { urls, credentials, tls_ca_file }, queue, parent_name } = farm;
    let credentials = match credentials {
        NatsCredentials::None => "nothing".to_owned(),
        NatsCredentials::Token(token) => format!("token {token}"),
        NatsCredentials::Password { user, password } => format!("{user}:{password}"),
        NatsCredentials::CredentialsFile(path) => format!("creds {}", path.display()),
        NatsCredentials::NkeyFile(path) => format!("nkey {}", path.display()),
    };
    writeln!(text, "agent {name}: {urls} {queue} as {parent_name} with {credentials}, ca {tls_ca_file:?}")
        .unwrap();
}

#[test]
fn queues_are_read() {
    check(
        "
agent_servers:
  farm: { nats: 'nats://127.0.0.1:4222', queue: build }
  near: { nats: 'tls://${N_USER}:${N_PASS}@a:4222, tls://b', queue: linux-x64, parent: me, ca_file: ca.pem }
  token: { nats: 'nats://far', queue: q, token: ' ${N_TOKEN} ' }
  user: { nats: 'nats://localhost', queue: q, user: me, password: '${N_PASS}' }
  creds: { nats: 'tls://far', queue: q, creds_file: ~/me.creds }
  nkey: { nats: 'tls://far', queue: q, nkey_file: me.nk }
",
        &[("N_USER", "u"), ("N_PASS", "p"), ("N_TOKEN", "t"), ("HOME", "/home/me")],
        expect![[r#"
            warning: $DIR/config.yaml:5: agent_servers.token.nats: nothing is encrypted; use tls://, or a tunnel such as `ssh -L`
            agent farm: nats://127.0.0.1:4222 build as crow with nothing, ca None
              written nats://127.0.0.1:4222 queue build
            agent near: tls://u:p@a:4222, tls://b linux-x64 as me with nothing, ca Some("$DIR/ca.pem")
              written tls://a:4222,tls://b queue linux-x64
            agent token: nats://far q as crow with token t, ca None
              written nats://far queue q
            agent user: nats://localhost q as crow with me:p, ca None
              written nats://localhost queue q
            agent creds: tls://far q as crow with creds /home/me/me.creds, ca None
              written tls://far queue q
            agent nkey: tls://far q as crow with nkey $DIR/me.nk, ca None
              written tls://far queue q
            db $DIR/crow.db requests 200 mode ask secrets ["N_PASS", "N_TOKEN", "N_USER"]
        "#]],
    );
}

#[test]
fn invalid_queues_are_errors() {
    let agent = |said: &str| format!("agent_servers:\n  a: {{ {said} }}\n");
    for (said, told) in [
        (
            "nats: 'nats://h'",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs both nats and queue
        "#]],
        ),
        (
            "queue: q",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs both nats and queue
        "#]],
        ),
        (
            "nats: 'http://h', queue: q",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs addresses that start with nats:// or tls:// in nats
        "#]],
        ),
        (
            "nats: 'nats://h', queue: a.b",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs a queue and a parent of at most 64 letters, digits, - and _
        "#]],
        ),
        (
            "nats: 'nats://h', queue: q, parent: '*'",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs a queue and a parent of at most 64 letters, digits, - and _
        "#]],
        ),
        (
            "nats: 'nats://h', queue: q, user: me",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs both user and password
        "#]],
        ),
        (
            "nats: 'nats://h', queue: q, token: t, nkey_file: f",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a has several credentials; leave one of them
        "#]],
        ),
        (
            "nats: 'nats://h', queue: q, command: x",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a has nats beside command, url or cwd
        "#]],
        ),
        (
            "nats: 'nats://h', queue: q, cwd: /x",
            expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a has nats beside command, url or cwd
        "#]],
        ),
    ] {
        check(&agent(said), &[], told);
    }
}

#[test]
fn passwords_of_queues_can_be_in_files() {
    let agent = |said: &str| format!("agent_servers:\n  a: {{ {said} }}\n");
    for (said, told) in [
        (
            "nats: 'nats://h', queue: q, user: me, password: a, password_file: b",
            expect![[r#"
                error: $DIR/config.yaml:2: agent_servers.a has two passwords; remove one of them
            "#]],
        ),
        (
            "nats: 'tls://h', queue: q, user: me, password_file: nowhere",
            expect![[r#"
                warning: $DIR/config.yaml:2: agent_servers.a.password_file: could not read $DIR/nowhere: No such file or directory (os error 2)
                agent a: tls://h q as crow with me:, ca None
                  written tls://h queue q
                db $DIR/crow.db requests 200 mode ask secrets []
            "#]],
        ),
    ] {
        check(&agent(said), &[], told);
    }
}

#[test]
fn agents_are_programs_or_addresses() {
    let env = [
        ("CODEX_KEY", "k1"),
        ("WHO", "k2"),
        ("FAR_TOKEN", "k3"),
        ("PATH", "/bin"),
        ("ARG", "k4"),
        ("HOST", "k5"),
    ];
    check(
        "
agent_servers:
  codex: { type: custom, command: codex-acp, args: [--fast, '${ARG}'], env: { KEY: '${CODEX_KEY}', PATH: '${PATH}:/opt' } }
  far: { command: [ssh, host, crow-cli], args: [acp] }
  cloud: { url: 'wss://me:pass@${HOST}/acp?key=secret', headers: { X-Who: '${WHO}' }, token: '${FAR_TOKEN}' }
  crow: { command: /opt/crow-cli }
",
        &env,
        expect![[r#"
            warning: $DIR/config.yaml:5: agent_servers.cloud.url: the address contains a name or password; put the token into a header instead
            agent codex: codex-acp ["--fast", "k4"] [("KEY", "k1"), ("PATH", "/bin:/opt")]
              written codex-acp --fast ${ARG}
            agent far: ssh ["host", "crow-cli", "acp"] []
              written ssh host crow-cli acp
            agent cloud: wss://me:pass@k5/acp?key=secret [("X-Who", "k2"), ("Authorization", "Bearer k3")]
              written wss://${HOST}/acp
            agent crow: /opt/crow-cli [] []
              written /opt/crow-cli
            db $DIR/crow.db requests 200 mode ask secrets ["CODEX_KEY", "FAR_TOKEN", "HOST", "WHO"]
        "#]],
    );
}

#[test]
fn tree_limits_are_read() {
    check(
        "agents: { max_depth: 0, max_children: 3, max_tokens: 2000000, max_minutes: 5 }",
        &[],
        expect![[r#"
            TreeLimits { depth_max: 0, children_max: 3, tokens_max: Some(2000000), task_timeout: 300s }
            db $DIR/crow.db requests 200 mode ask secrets []
        "#]],
    );
    check(
        "agents:\n  max_dept: 1\n",
        &[],
        expect![[r#"
        warning: $DIR/config.yaml:2: unknown key agents.max_dept; did you mean max_depth?
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        "agents:\n  max_children: 0\n",
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: agents.max_children: expected a positive whole number, found zero
        "#]],
    );
    check(
        "agents:\n  max_minutes: 99999999999\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agents.max_minutes: expected a positive whole number, found a number
    "#]],
    );
}

#[test]
fn agents_without_a_transport_are_errors() {
    let agent = |said: &str| format!("agent_servers:\n  a: {{ {said} }}\n");
    check(
        &agent(""),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs a command, a url, or nats and a queue
        "#]],
    );
    check(
        &agent("command: ''"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs a command, a url, or nats and a queue
        "#]],
    );
    check(
        &agent("command: []"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a needs a command, a url, or nats and a queue
        "#]],
    );
    check(
        &agent("command: x, url: 'ws://h'"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agent_servers.a has both a command and a url; remove one of them
    "#]],
    );
    check(
        &agent("url: 'ftp://h'"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agent_servers.a needs a url that starts with wss://, ws://, https:// or http://
    "#]],
    );
}

#[test]
fn invalid_agents_are_errors() {
    let agent = |said: &str| format!("agent_servers:\n  a: {{ {said} }}\n");
    check(
        &agent("url: 'ws://h', token: a, token_file: b"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agent_servers.a has two tokens; remove one of them
    "#]],
    );
    check(
        &agent("url: 'ws://h', token: a, headers: {authorization: b}"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agent_servers.a has both a token and an Authorization header; remove one of them
    "#]],
    );
    check(
        &agent("command: {a: b}"),
        &[],
        expect![[r#"
            error: $DIR/config.yaml:2: agent_servers.a.command: expected a string, found a map
        "#]],
    );
    check(
        &agent("command: x, env: [A]"),
        &[],
        expect![[r#"
        error: $DIR/config.yaml:2: agent_servers.a.env: expected a map from names to strings, found a list
    "#]],
    );
    check(
        "agent_servers: [codex]\n",
        &[],
        expect![[r#"
        error: $DIR/config.yaml:1: agent_servers: expected a map from names to settings, found a list
    "#]],
    );
}

#[test]
fn suspicious_agents_get_warnings() {
    check(
        "agent_servers:\n  a:\n    command: x\n    arg: [y]\n    zebra: 1\n",
        &[],
        expect![[r#"
        warning: $DIR/config.yaml:4: unknown key agent_servers.a.arg; did you mean args?
        warning: $DIR/config.yaml:5: unknown key agent_servers.a.zebra
        agent a: x [] []
          written x
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
    check(
        "agent_servers:\n  a: { url: 'ws://h', token_file: nowhere }\n",
        &[],
        expect![[r#"
        warning: $DIR/config.yaml:2: agent_servers.a.token_file: could not read $DIR/nowhere: No such file or directory (os error 2)
        agent a: ws://h []
          written ws://h
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]],
    );
}

#[test]
fn invalid_and_unencrypted_addresses_get_warnings() {
    check(
        "agent_servers:
  user: { url: 'wss://me:pass@h/acp' }
  unset: { url: 'wss://${UNSET}/acp' }
  header: { url: 'wss://h', headers: { Host: evil } }
  open:
    token: very-secret
    url: 'ws://h:1/acp'
  signed: { url: 'http://10.0.0.1', headers: { authorization: very-secret } }
  here: { url: 'ws://127.0.0.2', token: very-secret }
  name: { url: 'ws://localhost', token: very-secret }
  six: { url: 'ws://[::1]:8', token: very-secret }
  bare: { url: 'ws://h' }
",
        &[],
        expect![[r#"
            warning: $DIR/config.yaml:2: agent_servers.user.url: the address contains a name or password; put the token into a header instead
            warning: $DIR/config.yaml:3: agent_servers.unset.url: the variable UNSET is not set
            warning: $DIR/config.yaml:3: agent_servers.unset.url: the address is not a URL
            warning: $DIR/config.yaml:4: agent_servers.header.url: the header "Host" cannot be sent: its name or a character in it is not permitted
            warning: $DIR/config.yaml:7: agent_servers.open.url: the token is sent unencrypted; use wss://, or a tunnel such as `ssh -L`
            warning: $DIR/config.yaml:8: agent_servers.signed.url: the token is sent unencrypted; use https://, or a tunnel such as `ssh -L`
            agent user: wss://me:pass@h/acp []
              written wss://h/acp
            agent unset: wss:///acp []
              written wss://${UNSET}/acp
            agent header: wss://h [("Host", "evil")]
              written wss://h
            agent open: ws://h:1/acp [("Authorization", "Bearer very-secret")]
              written ws://h:1/acp
            agent signed: http://10.0.0.1 [("authorization", "very-secret")]
              written http://10.0.0.1
            agent here: ws://127.0.0.2 [("Authorization", "Bearer very-secret")]
              written ws://127.0.0.2
            agent name: ws://localhost [("Authorization", "Bearer very-secret")]
              written ws://localhost
            agent six: ws://[::1]:8 [("Authorization", "Bearer very-secret")]
              written ws://[::1]:8
            agent bare: ws://h []
              written ws://h
            db $DIR/crow.db requests 200 mode ask secrets ["UNSET"]
        "#]],
    );
}

#[test]
fn secrets_can_be_in_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, "very-secret\n").unwrap();
    let yaml = format!("agent_servers: {{ a: {{ url: 'ws://h', token_file: '{}' }} }}\n", file.display());
    expect![[r#"
        warning: $DIR/config.yaml:1: agent_servers.a.url: the token is sent unencrypted; use wss://, or a tunnel such as `ssh -L`
        agent a: ws://h [("Authorization", "Bearer very-secret")]
          written ws://h
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]]
    .assert_eq(&loaded(&yaml, "", &[]));
    let below_home = "agent_servers: { a: { url: 'ws://h', token_file: ~/token } }\n";
    expect![[r#"
        warning: $DIR/config.yaml:1: agent_servers.a.url: the token is sent unencrypted; use wss://, or a tunnel such as `ssh -L`
        agent a: ws://h [("Authorization", "Bearer very-secret")]
          written ws://h
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]]
    .assert_eq(&loaded(below_home, "", &[("HOME", &directory.path().display().to_string())]));
    let yaml = format!(
        "agent_servers: {{ a: {{ nats: 'tls://h', queue: q, user: me, password_file: '{}' }} }}\n",
        file.display()
    );
    expect![[r#"
        agent a: tls://h q as crow with me:very-secret, ca None
          written tls://h queue q
        db $DIR/crow.db requests 200 mode ask secrets []
    "#]]
    .assert_eq(&loaded(&yaml, "", &[]));
}

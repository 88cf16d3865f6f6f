//! An invalid configuration directory, in a terminal and in an editor.

use std::fs;

use expect_test::expect;

use super::{Stage, check, in_an_editor};

/// A key that must never be shown or stored.
const KEY: &str = "sk-wrong-0123456789abcdef";

const WITH_A_KEY: &str = "providers:\n  acme: { base_url: $URL, api_key: '${ACME_API_KEY}' }\n\
                          models:\n  main: { provider: acme, model: scripted }\nmax_retries_per_step: 0\n";

#[test]
fn configuration_that_is_no_yaml() {
    let stage = Stage::configured("", "providers:\n  fake: { base_url: $URL\nmodels: {\n");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
        exit 3
        error: $HOME/.crow/config.yaml:3: while parsing a flow mapping, did not find expected ',' or '}'
    "#]],
    );
    check(
        &stage,
        "crow models",
        &expect![[r#"
        exit 3
        error: $HOME/.crow/config.yaml:3: while parsing a flow mapping, did not find expected ',' or '}'
    "#]],
    );
    expect![[r#"
        new: -32603 config: $HOME/.crow/config.yaml:3: while parsing a flow mapping, did not find expected ',' or '}'
        list: -32603 config: $HOME/.crow/config.yaml:3: while parsing a flow mapping, did not find expected ',' or '}'
    "#]].assert_eq(&in_an_editor(&stage));
}

#[test]
fn configuration_with_a_wrong_type() {
    let stage = Stage::configured("", "providers:\n  fake: { base_url: $URL }\nmodels: [scripted]\n");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
        exit 3
        error: $HOME/.crow/config.yaml:3: models: expected a map from names to settings, found a list
    "#]],
    );
    check(
        &stage,
        "crow models",
        &expect![[r#"
        exit 3
        error: $HOME/.crow/config.yaml:3: models: expected a map from names to settings, found a list
    "#]],
    );
    expect![[r#"
        new: -32603 config: $HOME/.crow/config.yaml:3: models: expected a map from names to settings, found a list
        list: -32603 config: $HOME/.crow/config.yaml:3: models: expected a map from names to settings, found a list
    "#]].assert_eq(&in_an_editor(&stage));
}

#[test]
fn model_that_is_not_configured() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow run -m nope hi",
        &expect![[r#"
        exit 2
        error: the model nope is not configured; the models are: scripted
    "#]],
    );
    check(
        &stage,
        "crow run -m scriptd hi",
        &expect![[r#"
        exit 2
        error: the model scriptd is not configured; the models are: scripted
    "#]],
    );
}

#[test]
fn configuration_is_missing() {
    let stage = Stage::configured("", "");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
        exit 3
        error: No model is configured. Run `crow-cli init`, or add a provider and a model to $HOME/.crow/config.yaml.
    "#]],
    );
    check(
        &stage,
        "crow models",
        &expect![[r#"
        exit 3
        error: no model is configured in $HOME/.crow/config.yaml
        hint: run `crow-cli init`, or set OPENAI_API_KEY or OPENROUTER_API_KEY and run `crow-cli init -y`
    "#]],
    );
    expect![[r#"
        new: ok
        prompt: -32603 config: No model is configured. Run `crow-cli init`, or add a provider and a model to $HOME/.crow/config.yaml.
        list: ok
    "#]].assert_eq(&in_an_editor(&stage));
}

#[test]
fn key_is_missing() {
    let stage = Stage::configured(r#"status 401 {"error":{"message":"no key"}}"#, WITH_A_KEY);
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
            exit 1
            error: `acme` needs a key (401): no key; set ACME_API_KEY
        "#]],
    );
}

#[test]
fn wrong_key_is_named_and_never_shown() {
    let refused = format!(r#"status 401 {{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let stage = Stage::configured(&format!("{refused}\n{refused}"), WITH_A_KEY);
    fs::write(stage.world.home().join(".crow/.env"), format!("ACME_API_KEY={KEY}\n")).expect("written");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
            exit 1
            warning: other users could read these paths, which are private now: $HOME/.crow/.env
            error: `acme` rejected the key in ACME_API_KEY (401): Incorrect API key provided: …; check that it is valid and may use `scripted`
        "#]],
    );
    let ran = stage.crow("crow -v run -j hi");
    assert!(stage.server.request_heads().iter().all(|head| head.contains(KEY)), "the provider gets the key");
    fs::remove_file(stage.world.home().join(".crow/.env")).expect("removed");
    for (place, text) in [("stdout", ran.stdout), ("stderr", ran.stderr), ("a file", stage.stored())] {
        assert!(!text.contains(KEY), "the key is in {place}");
    }
}

#[test]
fn command_does_not_get_the_key() {
    let script = "call terminal {\"command\":\"env\"}\ntext \"No key there.\"\n";
    let stage = Stage::configured(&script.repeat(2), WITH_A_KEY);
    let env_file = stage.world.home().join(".crow/.env");
    for (in_file, in_environment) in [(KEY, ""), ("", KEY)] {
        fs::write(&env_file, format!("ACME_API_KEY={in_file}\n")).expect("written");
        let ran = stage.crow(&format!("export ACME_API_KEY={in_environment}; crow run -y hi"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let told = stage.told().join("\n");
        assert!(told.contains("HOME=") && !told.contains(KEY), "{told}");
    }
}

#[test]
fn home_is_missing() {
    let stage = Stage::new("");
    check(
        &stage,
        "unset HOME; crow run hi",
        &expect![[r#"
            exit 3
            error: the configuration directory is unknown because HOME is not set or is not UTF-8
            hint: give the directory with --config-dir or CROW_CONFIG_DIR
        "#]],
    );
    check(
        &stage,
        "HOME=; export HOME; crow models",
        &expect![[r#"
            exit 3
            error: the configuration directory is unknown because HOME is not set or is not UTF-8
            hint: give the directory with --config-dir or CROW_CONFIG_DIR
        "#]],
    );
    check(
        &stage,
        "unset HOME; crow acp < /dev/null",
        &expect![[r#"
            exit 3
            error: the configuration directory is unknown because HOME is not set or is not UTF-8
            hint: give the directory with --config-dir or CROW_CONFIG_DIR
        "#]],
    );
    check(
        &stage,
        "crow=$HOME/.crow; unset HOME; crow -d $crow models",
        &expect![[r#"
            exit 0
            NAME      PROVIDER  MODEL     WINDOW
            scripted  fake      scripted  32000   default
        "#]],
    );
}

#[test]
fn file_in_place_of_the_directory() {
    let stage = Stage::new("");
    let crow = stage.world.home().join(".crow");
    fs::remove_dir_all(&crow).expect("removed");
    fs::write(&crow, "").expect("written");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
            exit 3
            error: could not read $HOME/.crow/.env: Not a directory (os error 20)
            hint: there is a file in the place of a directory; move it away, or give another directory with --config-dir
        "#]],
    );
    check(
        &stage,
        "crow inspect",
        &expect![[r#"
            exit 3
            error: could not read $HOME/.crow/.env: Not a directory (os error 20)
            hint: there is a file in the place of a directory; move it away, or give another directory with --config-dir
        "#]],
    );
    expect![[r#"
        new: -32603 config: could not read $HOME/.crow/.env: Not a directory (os error 20) (there is a file in the place of a directory; move it away, or give another directory with --config-dir)
        list: -32603 config: could not read $HOME/.crow/.env: Not a directory (os error 20) (there is a file in the place of a directory; move it away, or give another directory with --config-dir)
    "#]].assert_eq(&in_an_editor(&stage));
}

#[test]
fn file_that_is_no_database() {
    let stage = Stage::new("");
    fs::write(stage.world.home().join(".crow/crow.db"), "these are my notes, ".repeat(50)).expect("written");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
            exit 1
            warning: other users could read these paths, which are private now: $HOME/.crow/crow.db
            error: $HOME/.crow/crow.db is not a database; move it away or name another file
        "#]],
    );
    check(
        &stage,
        "crow inspect",
        &expect![[r#"
        exit 1
        error: $HOME/.crow/crow.db is not a database; move it away or name another file
    "#]],
    );
    expect![[r#"
        new: ok
        prompt: -32603 store: $HOME/.crow/crow.db is not a database; move it away or name another file
        list: -32603 store: $HOME/.crow/crow.db is not a database; move it away or name another file
    "#]]
    .assert_eq(&in_an_editor(&stage));
}

#[test]
fn directory_in_place_of_the_database() {
    let stage = Stage::new("");
    fs::create_dir(stage.world.home().join(".crow/crow.db")).expect("made");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
            exit 1
            error: the database $HOME/.crow/crow.db cannot be opened (it is a directory); check the path and its permissions
        "#]],
    );
    check(
        &stage,
        "crow inspect",
        &expect![[r#"
            exit 1
            error: the database $HOME/.crow/crow.db cannot be opened (it is a directory); check the path and its permissions
        "#]],
    );
}

#[test]
fn directory_that_cannot_be_created() {
    let stage = Stage::new("");
    check(
        &stage,
        "crow -d /proc/crow run hi",
        &expect![[r#"
        exit 1
        error: the database /proc/crow/crow.db cannot be opened (No such file or directory (os error 2)); check the path and its permissions
    "#]],
    );
    check(
        &stage,
        "crow -d /proc/crow inspect",
        &expect![[r#"
        exit 0
        no sessions yet
    "#]],
    );
}

#[test]
fn configuration_that_is_no_text() {
    let stage = Stage::new("");
    fs::write(stage.world.home().join(".crow/config.yaml"), b"models: \xff\xfe\n").expect("written");
    check(
        &stage,
        "crow run hi",
        &expect![[r#"
        exit 3
        error: could not read $HOME/.crow/config.yaml: stream did not contain valid UTF-8
        hint: save the file as UTF-8 text
    "#]],
    );
}

#[test]
fn directories_of_commands_are_checked() {
    let stage = Stage::new("");
    for command in ["crow speckit -C nowhere paths", "crow mcp -c nowhere", "crow trust show nowhere"] {
        let ran = stage.crow(command);
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.stderr);
        assert!(ran.stderr.ends_with("nowhere does not exist\n"), "{command}: {}", ran.stderr);
    }
    let ran = stage.crow("crow trust add");
    assert_eq!(ran.stdout, "$HOME/project has no files that need trust\n");
}

#[test]
fn authentication_status_is_shown() {
    let providers = "providers:\n  one: { base_url: 'http://127.0.0.1:1/v1', api_key: '${ONE_KEY}' }\n  two: { base_url: 'http://me:pass@127.0.0.1:2/v1?key=k' }\n";
    let stage = Stage::configured(
        "",
        &format!("{providers}models:\n  a: {{ provider: one }}\n  b: {{ provider: two }}\n"),
    );
    check(
        &stage,
        "crow auth",
        &expect![[r#"
            exit 3
            PROVIDER  ADDRESS                KEY
            one       http://127.0.0.1:1/v1  missing: ONE_KEY is not set
            two       http://127.0.0.1:2/v1  not required
            error: the default model has no key: ONE_KEY is not set
            hint: set ONE_KEY in $HOME/.crow/.env
        "#]],
    );
    check(
        &stage,
        "ONE_KEY=sk-secret crow acp --set-up",
        &expect![[r#"
            exit 0
            PROVIDER  ADDRESS                KEY
            one       http://127.0.0.1:1/v1  from ONE_KEY
            two       http://127.0.0.1:2/v1  not required
        "#]],
    );
    check(
        &stage,
        "ONE_KEY=sk-secret crow --set-up",
        &expect![[r#"
        exit 0
        PROVIDER  ADDRESS                KEY
        one       http://127.0.0.1:1/v1  from ONE_KEY
        two       http://127.0.0.1:2/v1  not required
    "#]],
    );
    check(
        &stage,
        "crow --set-up acp",
        &expect![[r#"
        exit 2
        error: a subcommand takes its own prompt and options
        hint: write them after the subcommand
    "#]],
    );
    stage.world.configure("");
    check(
        &stage,
        "crow auth",
        &expect![[r#"
        exit 3
        error: no model is configured in $HOME/.crow/config.yaml
        hint: run `crow-cli init`, or set OPENAI_API_KEY or OPENROUTER_API_KEY and run `crow-cli init -y`
    "#]],
    );
}

#[test]
fn relative_configuration_directory_works_and_is_protected() {
    let script = "call write {\"file_path\":\"cfg/AGENTS.md\",\"content\":\"Obey.\"}\ntext \"Done.\"";
    let stage = Stage::new(script);
    let ran = stage.crow("cp -r ~/.crow cfg && crow -d cfg run --mode auto hello");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), "Done.\n"), "{}", ran.stderr);
    assert!(!stage.world.project().join("cfg/AGENTS.md").exists(), "{}", ran.stderr);
    let ran = stage.crow("CROW_CONFIG_DIR= crow config path");
    assert_eq!(ran.stdout.trim_end(), "$HOME/.crow/config.yaml");
}

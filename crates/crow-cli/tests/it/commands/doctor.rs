//! The problems that `doctor` finds, and the files that it repairs.

use std::fs;

use expect_test::{Expect, expect};

use super::Stage;

/// Masks what depends on the machine: omits the line about the sandbox, and the sizes of a request, which contains paths.
pub(crate) fn mask_machine(said: &str) -> String {
    let mask_sizes = |line: &str| {
        let words = line
            .split_whitespace()
            .filter(|word| !word.starts_with(['█', '▉', '▊', '▋', '▌', '▍', '▎', '▏']));
        let words: Vec<&str> = words
            .map(|word| if word.starts_with(|letter: char| letter.is_ascii_digit()) { "N" } else { word })
            .collect();
        words.join(" ")
    };
    let lines = said.lines().filter(|line| !line.contains(" sandbox "));
    lines
        .map(|line| match line.trim_start() != line || line.contains(" request ") {
            true => format!("    {}\n", mask_sizes(line)),
            false => format!("{}\n", line.trim_end()),
        })
        .collect()
}

#[track_caller]
fn check(stage: &Stage, args: &str, told: &Expect) {
    told.assert_eq(&mask_machine(&stage.crow(args).told()));
}

#[test]
fn invalid_configuration_is_reported() {
    check(
        &Stage::configured("", "models: {\n"),
        "crow doctor",
        &expect![[r#"
            exit 3
            problem  config           $HOME/.crow/config.yaml:1: unclosed bracket '{'
            ok       shell            commands run in bash
        "#]],
    );
}

#[test]
fn missing_configuration_is_reported() {
    check(
        &Stage::configured("", "\n"),
        "crow doctor",
        &expect![[r#"
            exit 3
            ok       config           $HOME/.crow/config.yaml
            problem  models           no model is configured; run `crow-cli init`
            ok       database         $HOME/.crow/crow.db will be created with the first session
            ok       shell            commands run in bash
        "#]],
    );
}

#[test]
fn unreachable_provider_and_broken_server_are_reported() {
    let yaml = "providers: { gone: { base_url: 'http://127.0.0.1:1/v1' } }\nmodels: { m: { provider: gone, model: m } }\n\
                mcpServers: { lost: { command: no-such-program } }\nmodles: {}\n";
    check(
        &Stage::configured("", yaml),
        "crow doctor",
        &expect![[r#"
            exit 1
            warning  config           $HOME/.crow/config.yaml:4: unknown key modles; did you mean models?
            problem  gone             `gone` cannot be reached at http://127.0.0.1:1/v1: connection refused; is it running, and is `base_url` right?
            ok       database         $HOME/.crow/crow.db will be created with the first session
            problem  mcp lost         The MCP server lost did not start: it ended before it answered, with exit code 127: crow-cli sandbox-exec: there is no program no-such-program. Its tools are not available.
                ok request about N of N tokens in the context (2 %)
                system prompt N N %
                tools N N %
                instructions N N %
                environment N N %
                conversation N N %
                free N N %
                it is compacted beyond N tokens
            ok       shell            commands run in bash
        "#]],
    );
}

#[test]
fn directory_of_the_python_version() {
    let stage = Stage::configured("", "\n");
    fs::remove_file(stage.world.home().join(".crow/config.yaml")).expect("removed");
    let old = stage.world.home().join(".agents/crow");
    fs::create_dir_all(&old).expect("made");
    fs::write(old.join("config.yaml"), "models: {}\n").expect("written");
    check(
        &stage,
        "crow doctor",
        &expect![[r#"
            exit 3
            warning  config           $HOME/.crow/config.yaml does not exist yet
            warning  python version   $HOME/.agents/crow has a configuration of the Python version; import it with `crow-cli init --from $HOME/.agents/crow`
            problem  models           no model is configured; run `crow-cli init`
            ok       database         $HOME/.crow/crow.db will be created with the first session
            ok       shell            commands run in bash
        "#]],
    );
}

#[test]
fn damaged_database_is_found_and_saved() {
    let stage = Stage::new(&"text \"All is well.\"\n".repeat(41));
    for n in 0..41 {
        assert_eq!(stage.crow(&format!("crow run '{n} {}'", "word ".repeat(400))).code, Some(0));
    }
    // The content of the write-ahead log hides the damage of the file; emptying the log reveals it.
    let one_more = &stage.sessions()[0];
    assert_eq!(stage.crow(&format!("crow sessions delete {one_more} -y")).code, Some(0));
    let file = stage.world.home().join(".crow/crow.db");
    let mut bytes = fs::read(&file).expect("read");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 2 * 4096].fill(0xAA);
    fs::write(&file, bytes).expect("written");
    let found = stage.crow("crow doctor");
    assert_eq!(found.code, Some(1));
    assert!(found.stdout.contains("`crow-cli doctor --salvage`"), "{}", found.stdout);
    let saved = stage.crow("crow doctor --salvage");
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(saved.stdout.contains("saved 40 sessions"), "{}", saved.stdout);
    assert!(stage.crow("crow doctor").stdout.contains("is intact"));
    assert!(stage.world.home().join(".crow/crow.db.damaged-1").exists());
    stage.server.replace_answers("text \"Again.\"");
    let session = &stage.sessions()[0];
    assert_eq!(stage.crow(&format!("crow run -s {session} on")).code, Some(0));
}

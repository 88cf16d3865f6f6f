//! Options of `crow-cli run` that apply to one run only.

use expect_test::expect;

use super::{Stage, check};

#[test]
fn options_hold_for_one_run_only() {
    let touches = "call terminal {\"command\":\"touch ran\"}\ntext \"Done.\"";
    let stage = Stage::new(touches);
    check(
        &stage,
        "crow run --allow 'touch' --output-format json 'touch it' | sed 's/\"session\":\"[^\"]*\"/\"session\":\"NAME\"/'",
        &expect![[r#"
            exit 0
            {"type":"result","session":"NAME","stop_reason":"end_turn","text":"Done."}
        "#]],
    );
    assert!(stage.world.project().join("ran").exists());
    std::fs::remove_file(stage.world.project().join("ran")).expect("it is there");
    // The next run does not have it.
    let stage = Stage::new(touches);
    assert_eq!(stage.crow("crow run 'touch it'").code, Some(5));
    let deny = "permissions: { deny: [touch] }";
    let stage = Stage::new(touches);
    stage.world.add_config(deny);
    stage.crow("crow run --allow touch 'touch it'");
    assert!(!stage.world.project().join("ran").exists(), "a deny rule stands above it");
    let stage = Stage::new("call glob {\"pattern\":\"*\"}\ncall glob {\"pattern\":\"*\"}");
    check(
        &stage,
        "crow run --max-turns 1 loop",
        &expect![[r#"
        exit 6
        error: the turn reached a limit before the model was done
        hint: continue the session; max_turn_requests is the limit of requests in a turn
    "#]],
    );
    assert_eq!(stage.server.n_requests(), 1);
    check(
        &stage,
        "crow run --allow 'path(' x",
        &expect![[r#"
            exit 2
            error: invalid value 'path(' for '--allow <RULE>': the rule must be the first words of a command; it has a parenthesis after a word
        "#]],
    );
    check(
        &stage,
        "crow run --max-turns 0 x",
        &expect![[r#"
        exit 2
        error: invalid value '0' for '--max-turns <N>': 0 is not in 1..=4294967295
    "#]],
    );
    check(
        &stage,
        "crow run --agent other --allow touch x 2>&1 | head -n 1; false",
        &expect![[r#"
        exit 1
        error: the argument '--agent <NAME>' cannot be used with '--allow <RULE>'
    "#]],
    );
    let told = stage.crow("crow run --output-format stream-json x").stdout;
    assert!(told.starts_with("{\"type\":\"session\""), "{told}");
}

#[test]
fn run_adds_images_and_text() {
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let stage = Stage::new("text \"A pixel.\"");
    let ran = stage.crow(&format!(
        "echo {PNG} | base64 -d > a.png; crow run --image a.png --append-system-prompt 'Be brief.' 'what is it?'"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = &stage.server.requests()[0]["messages"];
    let system = request[0]["content"].to_string();
    assert!(system.trim_end_matches('"').ends_with("Be brief.\\n"), "{system}");
    let prompt = request[1]["content"].to_string();
    assert!(prompt.contains("what is it?") && prompt.contains(PNG), "{prompt}");
    check(
        &stage,
        "echo no image > b.png; crow run --image b.png x",
        &expect![[r#"
            exit 2
            error: could not attach the image b.png: the image is not a PNG, JPEG, GIF or WebP file
        "#]],
    );
    check(
        &stage,
        "crow run --image c.png x",
        &expect![[r#"
        exit 2
        error: could not attach the image c.png: it does not exist
    "#]],
    );
    check(
        &stage,
        "crow run -s some --append-system-prompt x x 2>&1 | head -n 1; false",
        &expect![[r#"
            exit 1
            error: the argument '--session <ID>' cannot be used with '--append-system-prompt <TEXT>'
        "#]],
    );
}

#[test]
fn run_fails_if_its_prompt_is_blocked() {
    let stage = Stage::configured(
        "",
        "providers: { p: { base_url: $URL } }\nmodels: { m: { provider: p } }\nhooks: { UserPromptSubmit: [{ command: 'echo no >&2; exit 2' }] }\n",
    );
    let ran = stage.crow("crow run hello");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "Not sent: a hook rejected it: no\n"));
    let ran = stage.crow(
        "echo '{\"id\": \"a\", \"prompt\": \"hello\"}' > t.jsonl; crow batch t.jsonl -o r.jsonl; cat r.jsonl",
    );
    assert!(ran.stdout.contains(r#""state":"failed""#), "{}", ran.stdout);
}

#[test]
fn errors_before_the_first_turn_are_events() {
    let stage = Stage::new("");
    for (command, expected) in [
        (
            "crow run -s nope -j hi",
            expect![[r#"
            exit 4
            {"type":"error","kind":"session_not_found","message":"there is no session nope; `crow-cli inspect` lists the sessions"}
            error: there is no session nope; `crow-cli inspect` lists the sessions
        "#]],
        ),
        (
            "crow run --output-format json -m zz hi",
            expect![[r#"
            exit 2
            {"type":"error","kind":"invalid_value","message":"the model zz is not configured; the models are: scripted"}
            error: the model zz is not configured; the models are: scripted
        "#]],
        ),
        (
            "crow run --output-format stream-json --agent zz hi",
            expect![[r#"
            exit 2
            {"type":"error","kind":"invalid_value","message":"unknown agent \"zz\""}
            error: unknown agent "zz"
            hint: configured agents: crow
        "#]],
        ),
        (
            "crow run -s nope hi",
            expect![[r#"
            exit 4
            error: there is no session nope; `crow-cli inspect` lists the sessions
        "#]],
        ),
    ] {
        check(&stage, command, &expected);
    }
    stage.world.add_config("models: [");
    check(
        &stage,
        "crow run -j hi",
        &expect![[r#"
        exit 3
        {"type":"error","kind":"config","message":"$HOME/.crow/config.yaml:6: duplicate mapping key: models"}
        error: $HOME/.crow/config.yaml:6: duplicate mapping key: models
    "#]],
    );
}

//! The hint at the end of a run.

use super::*;

#[test]
fn temporary_session_gets_no_hint() {
    let seen = FakeTerminal::default();
    play("begin\ntext Done.\nend\ngoodbye gone", Some(SIZE), &seen);
    expect![[r#"
        Done.

        session     brave-otter
    "#]]
    .assert_eq(&seen.rendered_lines(SIZE.columns));
}

#[test]
fn session_of_a_rejected_prompt_gets_no_hint() {
    let shown = |script: &str| {
        let seen = FakeTerminal::default();
        play(&format!("begin\n{script}"), Some(SIZE), &seen);
        seen.rendered_lines(SIZE.columns)
    };
    expect![[r#"

        session     brave-otter
        continue
        crow-cli run -s brave-otter "…"
    "#]]
    .assert_eq(&(shown("rejected\ngoodbye") + &shown("end\nbegin\nrejected\ngoodbye")));
}

#[test]
fn interactive_session_is_resumed_interactively() {
    let shown = |script: &str| {
        let seen = FakeTerminal::default();
        play(&format!("begin\ntext Done.\nend\n{script}"), None, &seen);
        seen.rendered_lines(SIZE.columns)
    };
    expect![[r#"
        Done.
        session     brave-otter
        continue    crow-cli --resume brave-otte
        r
        Done.
        session     brave-otter
        continue    crow-cli --agent codex --res
        ume brave-otter
    "#]]
    .assert_eq(&(shown("leave") + &shown("leave codex")));
}

#[test]
fn cost_is_shown_if_known() {
    let seen = FakeTerminal::default();
    play("begin\ncost 5\ntext Done.\ncost 12300000\ncost\nend\ngoodbye gone", Some(SIZE), &seen);
    expect![[r#"
        Done.

        session     brave-otter
        cost        $0.0123
    "#]]
    .assert_eq(&seen.rendered_lines(SIZE.columns));
}

//! Completions belong to the word at the caret, whatever replaces the text.

use expect_test::expect;

use super::{Stage, check};
use crate::{app::event::AppEvent, screen::InputEvent};

/// The files for the word `@sr` of a longer draft are offered.
fn offered() -> Stage {
    let mut stage = Stage::open();
    stage.keys("'go' enter turn-ends 'do_it' enter 'queued' tab 'look_at_@sr'");
    let paths = vec!["src/main.rs".into(), "src/lib.rs".into()];
    stage.apply(AppEvent::FilesMatched { query: "sr".into(), paths });
    assert!(stage.state.completion.is_some());
    stage.show();
    stage
}

#[test]
fn list_is_closed_with_its_text() {
    check(
        &mut offered(),
        "tab",
        &expect![[r#"
        look at @src/main.rs |
    "#]],
    );
    check(
        &mut offered(),
        "ctrl-r 'go' enter tab",
        &expect![[r#"
        history "go"
        |
    "#]],
    );
    check(
        &mut offered(),
        "alt-up tab",
        &expect![[r#"
        history "queued\nlook at @sr"
        |
    "#]],
    );
    let mut edited = offered();
    edited.apply(AppEvent::EditorClosed(Ok("x".into())));
    check(
        &mut edited,
        "tab",
        &expect![[r#"
        history "x"
        |
    "#]],
    );
    let mut command = Stage::open();
    command.keys("'go' enter turn-ends 'a/b' ctrl-u '/compact'");
    command.apply(AppEvent::EditorClosed(Ok("é".into())));
    check(
        &mut command,
        "enter",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        history "é"
        SendPrompt([Text("é")])
        |
    "#]],
    );
}

#[test]
fn pasted_word_is_not_completed() {
    for (typed, pasted) in [("", "look @zzz"), ("'look_@z'", "zz"), ("'look_'", "@zzz"), ("", "/comp")] {
        let mut stage = Stage::open();
        stage.keys(typed);
        stage.input(InputEvent::Paste { content: pasted.to_owned(), is_truncated: false });
        stage.apply(AppEvent::FilesMatched { query: "z".into(), paths: vec!["zz.rs".into()] });
        assert!(stage.state.completion.is_none(), "{typed} {pasted}");
    }
    // The list of a word that was typed goes with the paste.
    let mut stage = offered();
    stage.keys("[c]");
    check(
        &mut stage,
        "enter",
        &expect![[r#"
        history "look at @src"
        Steer("look at @src")
        |
    "#]],
    );
}

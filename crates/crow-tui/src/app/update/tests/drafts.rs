//! The draft that outlives the client.

use expect_test::expect;

use super::{Stage, check};
use crate::{
    app::event::{AppEvent, AttachedImage},
    screen::InputEvent,
};

#[test]
fn draft_is_stored_after_a_pause_and_removed_when_sent() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'hal' 200ms 'f' 200ms",
        &expect![[r#"
        half|
    "#]],
    );
    stage.wait(100);
    stage.apply(AppEvent::Tick);
    check(
        &mut stage,
        "",
        &expect![[r#"
        StoreDraft("half")
        half|
    "#]],
    );
    check(
        &mut stage,
        "enter 400ms",
        &expect![[r#"
        history "half"
        SendPrompt([Text("half")])
        |
    "#]],
    );
    stage.apply(AppEvent::Tick);
    check(
        &mut stage,
        "",
        &expect![[r#"
        StoreDraft("")
        |
    "#]],
    );
}

#[test]
fn draft_is_restored_into_an_empty_composer() {
    let mut stage = Stage::open();
    stage.apply(AppEvent::DraftLoaded("half".into()));
    check(
        &mut stage,
        "400ms ctrl-e",
        &expect![[r#"
        half|
    "#]],
    );
    let mut stage = Stage::open();
    stage.keys("'typed'");
    stage.apply(AppEvent::DraftLoaded("half".into()));
    check(
        &mut stage,
        "ctrl-d ctrl-c ctrl-c",
        &expect![[r#"
        history "typed"
        Quit
        StoreDraft("")
        |
        flash: ctrl-c again quits
    "#]],
    );
}

/// A draft of two lines with an image in each; `#` is an image.
fn illustrated() -> Stage {
    let mut stage = Stage::open();
    stage.keys("'go' enter turn-ends 'see_'");
    for (data, rest) in [("QQ==", "'_and' ctrl-j"), ("Qg==", "'_too'")] {
        let image = AttachedImage { name: "a.png".into(), mime: "image/png".into(), data: data.into() };
        stage.apply(AppEvent::ImageRead { result: Ok(image), pasted: None });
        stage.keys(rest);
    }
    stage.show();
    stage
}

#[test]
fn images_stay_in_an_edited_draft() {
    let mut stage = illustrated();
    check(
        &mut stage,
        "ctrl-g",
        &expect![[r#"
            EditText("see [image a.png] and\n[image a.png] too")
            see # and⏎# too|
        "#]],
    );
    stage.apply(AppEvent::EditorClosed(Ok("First [image a.png], then [image a.png]\n".into())));
    check(
        &mut stage,
        "enter",
        &expect![[r#"
        history "First [image a.png], then [image a.png]"
        SendPrompt([Text("First [image a.png], then [image a.png]"), Image { mime: "image/png", data: "QQ==" }, Image { mime: "image/png", data: "Qg==" }])
        |
    "#]],
    );
    let mut stage = illustrated();
    stage.apply(AppEvent::EditorClosed(Ok("only [image a.png] [image b.png]".into())));
    check(
        &mut stage,
        "",
        &expect![[r#"
        only # [image b.png]|
    "#]],
    );
}

#[test]
fn images_stay_in_the_draft_beside_the_history() {
    let mut stage = illustrated();
    check(
        &mut stage,
        "up ctrl-a up",
        &expect![[r#"
        go|
    "#]],
    );
    check(
        &mut stage,
        "down",
        &expect![[r#"
            |see # and⏎# too
        "#]],
    );
    check(
        &mut stage,
        "enter",
        &expect![[r#"
        history "see [image a.png] and\n[image a.png] too"
        SendPrompt([Text("see [image a.png] and\n[image a.png] too"), Image { mime: "image/png", data: "QQ==" }, Image { mime: "image/png", data: "Qg==" }])
        |
    "#]],
    );
}

#[test]
fn edited_earlier_prompt_is_not_replaced_by_the_draft() {
    let mut stage = illustrated();
    stage.keys("up ctrl-a up");
    stage.apply(AppEvent::EditorClosed(Ok("go far".into())));
    check(
        &mut stage,
        "down",
        &expect![[r#"
        go far|
    "#]],
    );
    let mut stage = illustrated();
    stage.keys("up ctrl-a up");
    let image = AttachedImage { name: "a.png".into(), mime: "image/png".into(), data: "QQ==".into() };
    stage.apply(AppEvent::ImageRead { result: Ok(image), pasted: None });
    stage.keys("down");
    assert_eq!(stage.state.composer.full_text(), "go[image a.png]");
    let mut stage = illustrated();
    stage.keys("up ctrl-a up");
    stage.apply(AppEvent::EditorClosed(Err("no editor".into())));
    check(
        &mut stage,
        "down",
        &expect![[r#"
            |see # and⏎# too
            flash: no editor
        "#]],
    );
}

#[test]
fn path_without_an_image_is_pasted_as_text() {
    let mut stage = Stage::open();
    stage.keys("'save_it_as_'");
    let content = "/tmp/new.png".to_owned();
    stage.input(InputEvent::Paste { content, is_truncated: false });
    check(
        &mut stage,
        "",
        &expect![[r#"
        ReadImage { path: "/tmp/new.png", pasted: "/tmp/new.png" }
        save it as |
    "#]],
    );
    let pasted = Some("/tmp/new.png".to_owned());
    stage.apply(AppEvent::ImageRead { result: Err("there is no file new.png".into()), pasted });
    check(
        &mut stage,
        "",
        &expect![[r#"
        save it as /tmp/new.png|
        flash: there is no file new.png
    "#]],
    );
}

//! The pager while its text is searched. `_x_` is underlined, `*x*` the match that was found last.

use super::{unfolding::press, *};
use crate::text::{StyledRow, StyledSpan};

fn marked_text(row: &StyledRow) -> String {
    let mark = |span: &StyledSpan| match (span.style.is_underlined, span.style.is_bold) {
        (true, true) => format!("*{}*", span.content),
        (true, false) => format!("_{}_", span.content),
        (false, _) => span.content.clone(),
    };
    row.spans.iter().map(mark).collect()
}

#[track_caller]
fn check(stage: &ViewStage, expected: &Expect) {
    let frame = view(&stage.state, stage.now);
    let rows: Vec<String> = frame.live.iter().map(marked_text).filter(|text| !text.is_empty()).collect();
    expected.assert_eq(&(rows.join("\n") + "\n"));
}

#[test]
fn matches_are_marked_and_counted() {
    let mut stage = ViewStage::new(80);
    stage.update(AgentUpdate::Text("An owl and **two owls**, `owl`.\n\nNo bird.\n\nOwls.".into()));
    press(&mut stage, "ctrl-o");
    stage.type_text("/owl\n");
    check(
        &stage,
        &expect![[r#"
            Transcript · rows to 5 of 5
            An _owl_ and two *owl*s, _owl_.
            No bird.
            *Owl*s.
            /owl · 2 of 2 · n next · N before · / search · q closes
        "#]],
    );
    press(&mut stage, "n");
    check(
        &stage,
        &expect![[r#"
            Transcript · rows to 5 of 5
            An *owl* and two *owl*s, *owl*.
            No bird.
            _Owl_s.
            /owl · 1 of 2 · n next · N before · / search · q closes
        "#]],
    );
    stage.type_text("/eagle\n");
    check(
        &stage,
        &expect![[r#"
            Transcript · rows to 5 of 5
            An owl and two owls, owl.
            No bird.
            Owls.
            /eagle · no match · / search · q closes
        "#]],
    );
    stage.type_text("/");
    press(&mut stage, "esc");
    check(
        &stage,
        &expect![[r#"
        Transcript · rows to 5 of 5
        An owl and two owls, owl.
        No bird.
        Owls.
        ↑↓ space scroll · / search · n next match · q closes
    "#]],
    );
}

use expect_test::{Expect, expect};

use super::*;

/// Applies lines: `say WORDS`, `call ID STATUS TITLE`, `diff ID PATH OLD NEW`; then compares the view.
#[track_caller]
fn check(heard: &str, expected: &Expect) {
    let view = view(heard);
    let (answer, _) = view.answer();
    let mut text = format!("{}\n-- answer\n{answer}\n", view.render_view());
    let ChangedFiles { files, n_uncounted } = view.changed_files();
    for file in files {
        text.push_str(&format!("-- {} +{} -{}\n", file.path, file.n_added, file.n_removed));
    }
    if n_uncounted > 0 {
        text.push_str(&format!("-- {n_uncounted} more\n"));
    }
    expected.assert_eq(&text);
}

pub(crate) fn view(heard: &str) -> ChildView {
    let mut view = ChildView::default();
    for line in heard.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let call = |id: &str, title: Option<&str>, status, content| AgentUpdate::Call {
            id: id.to_owned(),
            title: title.map(str::to_owned),
            kind: None,
            status,
            content,
            input: None,
        };
        let heard = match words.as_slice() {
            ["say", ..] => AgentUpdate::Text(line["say ".len()..].replace("\\n", "\n")),
            ["call", id, status, title] => {
                let status = match *status {
                    "running" => ToolCallStatus::InProgress,
                    "done" => ToolCallStatus::Completed,
                    "failed" => ToolCallStatus::Failed,
                    _ => ToolCallStatus::Pending,
                };
                call(id, Some(title).filter(|title| **title != "-").copied(), Some(status), None)
            }
            ["diff", id, path, texts] => {
                let (old, new) = texts.split_once(" => ").unwrap();
                let old = (old != "nothing").then(|| old.replace(',', "\n") + "\n");
                let diff = ToolCallContent::Diff {
                    path: (*path).to_owned(),
                    old,
                    new: new.replace(',', "\n") + "\n",
                };
                call(id, None, None, Some(vec![diff]))
            }
            _ => unreachable!("{line}"),
        };
        view.apply_update(&heard);
    }
    view
}

#[test]
fn calls_change_in_place_and_the_last_text_is_the_answer() {
    check(
        "
        say I look.
        call a pending Read src/main.rs
        call a running -
        call b running Run cargo test
        call b failed -
        call a done -
        say It fails,
        say  in two places.
        ",
        &expect![[r#"
            ✓ Read src/main.rs
            ✗ Run cargo test
            It fails, in two places.
            -- answer
            It fails, in two places.
        "#]],
    );
}

#[test]
fn file_change_spans_from_the_first_to_the_last_state() {
    check(
        "
        call a running Edit a
        diff a /a one,two => one,three
        diff a /a one,three => one,three,four
        diff a /b nothing => new
        diff a /c same => other
        diff a /c other => same
        ",
        &expect![[r#"
            ▸ Edit a
            -- answer

            -- /a +2 -1
            -- /b +1 -0
        "#]],
    );
}

#[test]
fn calls_beyond_the_limit_show_the_newest() {
    let calls: String = (0..CALLS_SHOWN + 3).map(|n| format!("call {n} done Read {n}\n")).collect();
    let shown = view(&calls).render_view();
    assert!(shown.starts_with("… 3 before\n✓ Read 3\n"), "{shown}");
    assert_eq!(shown.lines().count(), CALLS_SHOWN + 1);
}

#[test]
fn answer_of_a_child_is_bounded() {
    let mut view = ChildView::default();
    for n in 0..100_000_u32 {
        view.apply_update(&AgentUpdate::Text(format!("word {n} ")));
        let id = format!("{n}");
        view.apply_content(&ToolCallContent::Diff { path: id, old: None, new: "x".repeat(100) });
    }
    let (answer, is_cut) = view.answer();
    assert!(is_cut && answer.len() <= ANSWER_BYTES_MAX && answer.ends_with("word 99999"));
    assert!(view.render_view().chars().count() <= ANSWER_SHOWN_CHARS + 1);
    let ChangedFiles { files, n_uncounted } = view.changed_files();
    assert_eq!((files.len(), n_uncounted), (FILES_MAX, 100_000 - FILES_MAX));
}

#[test]
fn title_is_one_line_without_control_characters() {
    assert_eq!(single_line("Run\n\u{1b}[2J  rm   -rf x\u{7}"), "Run [2J rm -rf x");
    assert_eq!(single_line(&"x".repeat(500)).chars().count(), TITLE_CHARS_MAX + 1);
}

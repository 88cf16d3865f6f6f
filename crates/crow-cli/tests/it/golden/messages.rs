//! The whole agent with the Messages API. The fake server rejects what its provider rejects: changed reasoning,
//! misplaced results, duplicate ids.

use expect_test::expect;

use super::check;

#[test]
fn cancelled_reasoning_is_not_sent_again() {
    check(
        r#"
        api: messages
        model: thought "Let me" | hold
        model: thought "So." | text "Done."
        model: text "Bye."
        > prompt first
        > wait Let me
        > cancel
        > end
        > prompt second
        > end
        > kill
        > load
        > prompt third
        > end
        "#,
        &expect![[r#"
            > prompt first
            < thought[msg-1-thought] Let me
            > cancel
            < title first
            = cancelled
            > prompt second
            < thought[msg-3-thought] So.
            < text[msg-3] Done.
            = end_turn
            > kill
            > load
            < prompt[msg-0] first
            < thought[msg-1-thought] Let me
            < prompt[msg-2] second
            < thought[msg-3-thought] So.
            < text[msg-3] Done.
            < title first
            = loaded
            > prompt third
            < text[msg-5] Bye.
            = end_turn
            model saw user: "first" "second"
            model saw assistant: thinking "So." "Done."
            model saw user: "third"
        "#]],
    );
}

//! The whole agent with the Responses API.

use expect_test::expect;

use super::check;

const A_SESSION: &str = r#"
        api: responses
        file a.txt "apples\n"
        model: thought "They want a.txt." | text "I look." | call read {"file_path":"a.txt"} | usage 30 9
        model: call read {"file_path":"b.txt"}
        model: thought "Easy." | text "It says apples." | usage 50 5
        model: text "You are welcome." | usage 60 4
        model: text "As I said: apples." | usage 70 4
        > prompt what does a.txt say?
        > end
        > prompt thanks
        > end
        > kill
        > load
        > prompt again?
        > end
        "#;

#[test]
fn responses_api_runs_a_turn() {
    check(
        A_SESSION,
        &expect![[r#"
            > prompt what does a.txt say?
            < thought[msg-1-thought] They want a.txt.
            < text[msg-1] I look.
            < usage 39/32000
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < call call-3-0 read "Read b.txt" pending {"file_path":"b.txt"}
            < call call-3-0 in_progress
            < call call-3-0 failed "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            < thought[msg-5-thought] Easy.
            < text[msg-5] It says apples.
            < usage 55/32000
            < title what does a.txt say?
            = end_turn
            > prompt thanks
            < text[msg-7] You are welcome.
            < usage 64/32000
            = end_turn
            > kill
            > load
            < prompt[msg-0] what does a.txt say?
            < thought[msg-1-thought] They want a.txt.
            < text[msg-1] I look.
            < usage 39/32000
            < call call-1-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tapples\n"
            < call call-3-0 read "Read b.txt" failed {"file_path":"b.txt"} "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            < thought[msg-5-thought] Easy.
            < text[msg-5] It says apples.
            < usage 55/32000
            < prompt[msg-6] thanks
            < text[msg-7] You are welcome.
            < usage 64/32000
            < title what does a.txt say?
            = loaded
            > prompt again?
            < text[msg-9] As I said: apples.
            < usage 74/32000
            = end_turn
            model saw user "what does a.txt say?"
            model saw reasoning rs_0_0 "sealed rs_0_0"
            model saw assistant msg_0_1 "I look."
            model saw call fc_0_2 call_0_0 read("{\"file_path\":\"a.txt\"}")
            model saw output call_0_0 "     1\tapples\n"
            model saw call  call_1_0 read("{\"file_path\":\"b.txt\"}")
            model saw output call_1_0 "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            model saw reasoning rs_2_0 "sealed rs_2_0"
            model saw assistant msg_2_1 "It says apples."
            model saw user "thanks"
            model saw assistant msg_crow_7 "You are welcome."
            model saw user "again?"
        "#]],
    );
}

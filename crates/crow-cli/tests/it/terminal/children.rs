//! Child agents in the terminal, and theirs.

use expect_test::expect;

use super::stage::TerminalStage;

#[test]
fn terminal_children_of_children_are_a_tree_to_look_into() {
    let stage = TerminalStage::new(80, "call task {\"prompt\":\"ALPHA\"}\ntext \"Alpha told me.\"");
    stage.home.add_config("agents: { max_depth: 3 }");
    stage.model.add_answers_for("ALPHA", "call task {\"prompt\":\"BETA\"}\ntext \"Beta told me.\"");
    stage.model.add_answers_for("BETA", "call task {\"prompt\":\"GAMMA\"}\ntext \"Gamma told me.\"");
    stage.model.add_answers_for("GAMMA", "text \"I count.\" | hold | text \"Seven.\"");
    let steps = "
        wait · ask
        type go
        key enter
        wait Task: BETA
        type /agents
        key enter
        wait └ ALPHA
        wait   └ BETA
        wait     └ GAMMA
        wait I count.
        key down
        key down
        key enter
        wait GAMMA ·
        release
        wait Seven.
        key esc
        wait idle
        key esc
        wait Alpha told me.";
    stage.check(steps, &expect![[""]]);
}

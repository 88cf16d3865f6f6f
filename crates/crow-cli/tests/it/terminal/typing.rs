//! The composer: what is typed and pasted, completions, commands.

use expect_test::expect;

use super::stage::{TerminalStage, check};

#[test]
fn terminal_start_shows_the_composer_at_each_width() {
    let mut log = String::new();
    for columns in [40, 80, 120, 300] {
        let mut stage = TerminalStage::new(columns, "");
        stage.play("wait · ask\nshow");
        log.push_str(&stage.take_log());
    }
    expect![[r#"
        ── 40×24
        › ▮Ask anything
        crow · scripted · ask
        ── 80×24
        › ▮Ask anything; / for commands, @ for files, ! for the shell
        crow · scripted · ask
        ── 120×24
        › ▮Ask anything; / for commands, @ for files, ! for the shell
        crow · scripted · ask · ~/project · $SESSION
        ── 300×24
        › ▮Ask anything; / for commands, @ for files, ! for the shell
        crow · scripted · ask · ~/project · $SESSION
    "#]]
    .assert_eq(&log);
}

#[test]
fn terminal_wide_letters_move_the_cursor_by_their_width() {
    let steps = "
        wait · ask
        type 日本語のテキスト 🦀 naïve 한국어 a long line wraps in time
        wait in time
        show
        key ctrl-a
        key right
        key right
        type <
        wait 日本<
        show
        key ctrl-w
        key enter
        wait Fine.
        gone ⠋
        prompt";
    check(
        40,
        r#"text "Fine.""#,
        steps,
        &expect![[r#"
        ── 40×24
        › 日本語のテキスト 🦀 naïve 한국어 a
          long line wraps in time▮
        crow · scripted · ask
        ── 40×24
        › 日本<▮語のテキスト 🦀 naïve 한국어 a
          long line wraps in time
        crow · scripted · ask
        ── prompt
        語のテキスト 🦀 naïve 한국어 a long line wraps in time
    "#]],
    );
}

#[test]
fn terminal_lines_are_begun_with_three_keys_and_sent_as_one_prompt() {
    let steps = r"
        wait · ask
        type one
        key shift-enter
        type two
        key alt-enter
        type three
        key ctrl-j
        type four\
        key enter
        type five
        wait five
        show
        key up
        key up
        key ctrl-e
        type !
        wait three!
        key enter
        wait Five lines.
        gone ⠋
        prompt";
    check(
        80,
        r#"text "Five lines.""#,
        steps,
        &expect![[r#"
        ── 80×24
        › one
          two
          three
          four
          five▮
        crow · scripted · ask
        ── prompt
        one
        two
        three!
        four
        five
    "#]],
    );
}

#[test]
fn terminal_long_paste_is_folded_and_sent_whole() {
    let mut stage = TerminalStage::new(80, r#"text "Read.""#);
    stage.play("wait · ask\ntype see \nwait › see");
    let lines: Vec<String> = (1..=212).map(|line| format!("line {line}\ty")).collect();
    stage.program().paste_text(&lines.join("\r"));
    stage.play("wait pasted\ntype  end\nwait ] end\nshow\nkey enter\nwait Read.\ngone ⠋\nshow");
    let prompt = stage.model.requests()[0]["messages"].to_string();
    let sent: Vec<String> = lines.iter().map(|line| line.replace('\t', "\\t")).collect();
    assert!(prompt.contains(&sent.join("\\n")), "a line is missing: {prompt}");
    stage.check(
        "",
        &expect![[r#"
            ── 80×24
            › see [pasted 212 lines] end▮
            crow · scripted · ask
            ── 80×24
            › see [pasted 212 lines] end

            Read.

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_short_paste_is_text_and_does_not_send_itself() {
    let steps = r"
        wait · ask
        paste rm -rf /\nyes\n
        wait yes
        show
        key ctrl-c
        wait Ask anything
        show";
    check(
        80,
        "",
        steps,
        &expect![[r#"
        ── 80×24
        › rm -rf /
          yes
          ▮
        crow · scripted · ask
        ── 80×24
        › ▮Ask anything; / for commands, @ for files, ! for the shell
        ctrl-c again quits
    "#]],
    );
}

#[test]
fn terminal_unknown_command_is_refused_with_the_nearest() {
    let steps = "
        wait · ask
        type /compac
        wait › /compact
        key backspace
        type t
        wait › /compat
        key esc
        key enter
        wait did you mean
        show
        key ctrl-u
        type /zzzz
        key enter
        wait /zzzz
        wait there is no command /zzzz
        show";
    check(
        80,
        "",
        steps,
        &expect![[r#"
        ── 80×24
        › /compat▮
        there is no command /compat; did you mean /compact?
        ── 80×24
        › /zzzz▮
        there is no command /zzzz
    "#]],
    );
}

#[test]
fn terminal_file_is_completed_and_the_list_narrows() {
    let stage = TerminalStage::new(80, r#"text "Read.""#);
    stage.home.write_file("main.rs", "fn main() {}\n");
    stage.home.write_file("manifest.toml", "");
    stage.home.write_file("ignored.log", "");
    stage.home.write_file(".gitignore", "*.log\n");
    let steps = "
        wait · ask
        type look at @
        wait main.rs
        show
        type mani
        gone main.rs
        show
        key tab
        wait manifest.toml
        key enter
        wait Read.
        gone ⠋
        prompt";
    stage.check(
        steps,
        &expect![[r#"
            ── 80×24
            › .gitignore
              main.rs
              manifest.toml
            › look at @▮
            crow · scripted · ask
            ── 80×24
            › manifest.toml
            › look at @mani▮
            crow · scripted · ask
            ── prompt
            look at @manifest.toml 
        "#]],
    );
}

#[test]
fn terminal_new_file_is_completed() {
    let mut stage = TerminalStage::new(80, "");
    stage.home.write_file("old.rs", "");
    stage.play("wait · ask\ntype @\nwait old.rs\nkey ctrl-u\nwait Ask anything");
    stage.home.write_file("new.rs", "");
    stage.check(
        "type @n\nwait new.rs\ngone old.rs\nshow",
        &expect![[r#"
        ── 80×24
        › new.rs
        › @n▮
        crow · scripted · ask
    "#]],
    );
}

#[test]
fn terminal_shell_command_runs_and_is_shared_on_request() {
    let steps = r"
        wait · ask
        type !echo one; echo two; exit 3
        wait exit 3
        show
        key enter
        wait exit code 3
        show
        type /share
        wait /share
        key enter
        wait pasted
        type  why?
        wait why?
        key enter
        wait Because.
        gone ⠋
        prompt";
    check(
        80,
        r#"text "Because.""#,
        steps,
        &expect![[r#"
            ── 80×24
            › !echo one; echo two; exit 3▮
            crow · scripted · ask
            ── 80×24
            ! echo one; echo two; exit 3
              one
              two
              exit code 3

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── prompt
            $ echo one; echo two; exit 3
            one
            two
             why?
        "#]],
    );
}

#[test]
fn terminal_lists_choose_the_mode_and_the_colours() {
    let steps = "
        wait · ask
        type /mode
        wait /mode
        key enter
        wait enter
        show
        key down
        key enter
        wait crow · scripted · accept-edits
        key shift-tab
        wait mode:
        show
        type /theme
        wait /theme
        key enter
        wait plain
        show
        key esc
        wait Ask anything";
    check(
        80,
        "",
        steps,
        &expect![[r#"
        ── 80×24
        Mode: ▮
        › ask           reads freely, asks before it changes or runs anything
          accept-edits  edits, builds and tests the project freely, asks before anythi…
          plan          reads only
          auto          does everything without asking
        4 · type to search · enter chooses · esc closes
        crow · scripted · ask
        ── 80×24
        › ▮Ask anything; / for commands, @ for files, ! for the shell
        mode: plan
        ── 80×24
        Colours: ▮
        › dark   for a dark background
          light  for a light background
          plain  without colours
        3 · type to search · enter chooses · esc closes
        mode: plan
    "#]],
    );
}

#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};

use super::*;

/// Shows the commands of a line, one a line, with what they run indented.
#[track_caller]
fn check(line: &str, expected: Expect) {
    let text = match parse_line(line) {
        Ok(commands) => commands.iter().map(|command| shown(command, "")).collect::<String>(),
        Err(why) => format!("it {why}\n"),
    };
    expected.assert_eq(&text);
}

fn shown(simple: &SimpleCommand, indent: &str) -> String {
    let mut parts: Vec<String> =
        simple.assignments.iter().map(|set| format!("{}={}", set.name, word(&set.value))).collect();
    parts.extend(simple.words.iter().map(word));
    parts.extend(simple.redirections.iter().map(|file| format!("{}{}", file.operator, word(&file.target))));
    let mut text = format!("{indent}{}\n", parts.join(" "));
    if let Some(InnerCommands { commands, at, through }) = &simple.inner {
        text += &format!("{indent}  from {at}, {through:?}\n");
        commands.iter().for_each(|command| text += &shown(command, &format!("{indent}    ")));
    }
    text
}

fn word(word: &ShellWord) -> String {
    match word.extent {
        KnownExtent::Whole => format!("[{}]", word.text),
        KnownExtent::Home => format!("[{}]~", word.text),
        KnownExtent::Begins => format!("[{}…", word.text),
        KnownExtent::Splits => format!("[{}……", word.text),
    }
}

#[test]
fn words_and_quotes() {
    check(
        "git  commit -m 'a \"b\" $c'",
        expect![[r#"
        [git] [commit] [-m] [a "b" $c]
    "#]],
    );
    check(
        r#"a "b \" \$ \` \\ \n" c\ d '' e'f'"g" \#h i#j"#,
        expect![[r#"
        [a] [b " $ ` \ \n] [c d] [] [efg] [#h] [i#j]
    "#]],
    );
    check(
        "a ~ ~/x a~ A=~ --x=~/y 'a'~",
        expect![[r#"
        [a] [~]~ [~/x]~ [a~] [A=… [--x=… [a~]
    "#]],
    );
    check(
        "a $x \"$x\" b$x \"b $x c\" \"$@\" $((1+2)) ${x:-y}",
        expect![[r#"
        [a] […… [… [b…… [b … […… […… [……
    "#]],
    );
    check(
        "a *.rs src/*.rs b? [ a[bc] ~/x*",
        expect![[r#"
        [a] [… [src/… [b… [[] [a… [~/x……
    "#]],
    );
    check(
        "a {} x{y HEAD@{1} }",
        expect![[r#"
        [a] [{}] [x{y] [HEAD@{1}] [}]
    "#]],
    );
}

#[test]
fn lists_and_groups() {
    check(
        "a; b && c || d | e & f\ng",
        expect![[r#"
        [a]
        [b]
        [c]
        [d]
        [e]
        [f]
        [g]
    "#]],
    );
    check(
        "(a; { b; }) > f && ! c",
        expect![[r#"
        [a]
        [b]
        >[f]
        [c]
    "#]],
    );
    check(
        "if a; then b; elif c; then d; else e; fi",
        expect![[r#"
        [a]
        [b]
        [c]
        [d]
        [e]
    "#]],
    );
    check(
        "for i in a $(b); do c $i; done 2> x",
        expect![[r#"
            [b]
            i=[…… i=[a] i=[……
            [c] [……
            >[x]
        "#]],
    );
    check(
        "case $x in (a|b*) c;; *) d; esac; e",
        expect![[r#"
        [c]
        [d]
        [e]
    "#]],
    );
    check("", expect![[""]]);
}

#[test]
fn substitutions_come_before_the_command_they_are_in() {
    check(
        "a $(b; c `d`) \"$(e \"$(f)\")\" x$(g)",
        expect![[r#"
        [b]
        [d]
        [c] [……
        [f]
        [e] […
        [g]
        [a] […… [… [x……
    "#]],
    );
    check(
        "a <<X <<'Y' b\n$(c)\nX\n$(d)\nY\ne",
        expect![[r#"
        [a] [b]
        [c]
        [e]
    "#]],
    );
}

#[test]
fn redirections_and_assignments() {
    check(
        "A=b C=$d E= f G=h < i > j >> k 2> l 2>&1 >&2 3<&- <> m >| n",
        expect![[r#"
        A=[b] C=[…… E=[] [f] [G=h] <[i] >[j] >>[k] >[l] <>[m] >|[n]
    "#]],
    );
    check(
        "A=1",
        expect![[r#"
        A=[1]
    "#]],
    );
    check(
        "> x",
        expect![[r#"
        >[x]
    "#]],
    );
}

#[test]
fn programs_that_run_another() {
    check(
        "timeout -k 1 5 env -u X A=b nice make all",
        expect![[r#"
        [timeout] [-k] [1] [5] [env] [-u] [X] [A=b] [nice] [make] [all]
          from 4, Plainly
            [env] [-u] [X] [A=b] [nice] [make] [all]
              from 4, Plainly
                X=[…… A=[b] [nice] [make] [all]
                  from 1, Plainly
                    [make] [all]
    "#]],
    );
    check(
        "xargs -0 -I{} cp {} x/{}",
        expect![[r#"
        [xargs] [-0] [-I{}] [cp] [{}] [x/{}]
          from 3, Plainly
            [cp] [… [x/… [……
    "#]],
    );
    check(
        "sudo -u root sh -c 'a; b'",
        expect![[r#"
        [sudo] [-u] [root] [sh] [-c] [a; b]
          from 3, WithMore
            [sh] [-c] [a; b]
              from 2, Plainly
                [a]
                [b]
    "#]],
    );
    check(
        "find . -name x -exec a {} \\; -exec b {} +",
        expect![[r#"
        [find] [.] [-name] [x] [-exec] [a] [{}] [;] [-exec] [b] [{}] [+]
          from 5, WithMore
            [a] [… [……
            [b] [… [……
    "#]],
    );
    check(
        "eval 'a b' c",
        expect![[r#"
        [eval] [a b] [c]
          from 1, Plainly
            [a] [b] [c]
    "#]],
    );
    check(
        "command -v a",
        expect![[r#"
        [command] [-v] [a]
    "#]],
    );
}

#[test]
fn depth_and_length_have_an_end() {
    check(
        &"(".repeat(10_000),
        expect![[r#"
        it has ((
    "#]],
    );
    check(
        &"$(".repeat(10_000),
        expect![[r#"
        it is nested too deeply
    "#]],
    );
    check(
        &"timeout 1 ".repeat(1_000),
        expect![[r#"
        it is nested too deeply
    "#]],
    );
    check(
        &"if ".repeat(10_000),
        expect![[r#"
        it is nested too deeply
    "#]],
    );
    check(
        &"x".repeat(300_000),
        expect![[r#"
        it is too long
    "#]],
    );
    check(
        &format!("{}a", "eval ".repeat(30)),
        expect![[r#"
        it is nested too deeply
    "#]],
    );
}

#[test]
fn long_lines_are_read() {
    for piece in ["a ", "a;", "'b' ", "$x ", "a\n", "\"$(a)\" ", "a <<E\nE\n", "{ a; }; ", "`a` ", "a#"] {
        let line = format!("x; {}", piece.repeat(50_000 / piece.len()));
        assert!(parse_line(&line).is_ok(), "{piece:?}");
    }
}

#[test]
fn what_is_spelled_is_read_back() {
    for line in ["a 'b c' '' \"it's\" > x", "A=b c -x=y", "a ';' '$x' >> 'f g'"] {
        let commands = parse_line(line).unwrap_or_default();
        let spelled = commands[0].canonical_text().unwrap_or_default();
        assert_eq!(parse_line(&spelled).as_ref(), Ok(&commands), "{spelled}");
    }
    assert_eq!(parse_line("a $x").unwrap_or_default()[0].canonical_text(), None);
}

#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use expect_test::{Expect, expect};

use super::*;

/// Renders the commands of a line, one per line, with inner commands indented.
#[track_caller]
fn check(line: &str, expected: Expect) {
    let text = match parse_line(line) {
        Ok(commands) => commands.iter().map(|command| shown(command, "")).collect::<String>(),
        Err(reason) => format!("it {reason}\n"),
    };
    expected.assert_eq(&text);
}

fn shown(simple: &SimpleCommand, indent: &str) -> String {
    let mut parts: Vec<String> =
        simple.assignments.iter().map(|set| format!("{}={}", set.name, word(&set.value))).collect();
    parts.extend(simple.words.iter().map(word));
    parts.extend(simple.redirections.iter().map(|file| format!("{}{}", file.operator, word(&file.target))));
    let mut text = format!("{indent}{}\n", parts.join(" "));
    if let Some(InnerCommands { commands, first_word: at, effect: through }) = &simple.inner {
        text += &format!("{indent}  from {at}, {through:?}\n");
        commands.iter().for_each(|command| text += &shown(command, &format!("{indent}    ")));
    }
    text
}

fn word(word: &ShellWord) -> String {
    match word.extent {
        KnownExtent::Full => format!("[{}]", word.text),
        KnownExtent::Home => format!("[{}]~", word.text),
        KnownExtent::Prefix => format!("[{}…", word.text),
        KnownExtent::Unknown => format!("[{}……", word.text),
    }
}

#[test]
fn words_and_quotes_are_parsed() {
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
fn lists_and_groups_are_parsed() {
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
fn substitutions_precede_their_command() {
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
fn redirections_and_assignments_are_parsed() {
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
fn wrappers_contain_inner_commands() {
    check(
        "timeout -k 1 5 env -u X A=b nice make all",
        expect![[r#"
            [timeout] [-k] [1] [5] [env] [-u] [X] [A=b] [nice] [make] [all]
              from 4, Transparent
                [env] [-u] [X] [A=b] [nice] [make] [all]
                  from 4, Transparent
                    X=[…… A=[b] [nice] [make] [all]
                      from 1, Transparent
                        [make] [all]
        "#]],
    );
    check(
        "xargs -0 -I{} cp {} x/{}",
        expect![[r#"
            [xargs] [-0] [-I{}] [cp] [{}] [x/{}]
              from 3, Transparent
                [cp] [… [x/… [……
        "#]],
    );
    check(
        "sudo -u root sh -c 'a; b'",
        expect![[r#"
            [sudo] [-u] [root] [sh] [-c] [a; b]
              from 3, Opaque
                [sh] [-c] [a; b]
                  from 2, Transparent
                    [a]
                    [b]
        "#]],
    );
    check(
        "find . -name x -exec a {} \\; -exec b {} +",
        expect![[r#"
            [find] [.] [-name] [x] [-exec] [a] [{}] [;] [-exec] [b] [{}] [+]
              from 5, Opaque
                [a] [… [……
                [b] [… [……
        "#]],
    );
    check(
        "eval 'a b' c",
        expect![[r#"
            [eval] [a b] [c]
              from 1, Transparent
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
fn depth_and_length_are_limited() {
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
fn long_lines_are_parsed() {
    for piece in ["a ", "a;", "'b' ", "$x ", "a\n", "\"$(a)\" ", "a <<E\nE\n", "{ a; }; ", "`a` ", "a#"] {
        let line = format!("x; {}", piece.repeat(50_000 / piece.len()));
        assert!(parse_line(&line).is_ok(), "{piece:?}");
    }
}

#[test]
fn quoted_words_round_trip() {
    for line in ["a 'b c' '' \"it's\" > x", "A=b c -x=y", "a ';' '$x' >> 'f g'"] {
        let commands = parse_line(line).unwrap_or_default();
        let spelled = commands[0].canonical_text().unwrap_or_default();
        assert_eq!(parse_line(&spelled).as_ref(), Ok(&commands), "{spelled}");
    }
    assert_eq!(parse_line("a $x").unwrap_or_default()[0].canonical_text(), None);
}

use super::*;

#[track_caller]
fn check(text: &str, expected: Option<(&str, &str)>) {
    let command = parse_command(text).map(|command| (command.name, command.arguments));
    assert_eq!(command, expected, "{text:?}");
}

#[test]
fn command_has_name_and_arguments() {
    check("/help", Some(("help", "")));
    check("/help ", Some(("help", "")));
    check("/speckit.plan a\nb", Some(("speckit.plan", "a\nb")));
    check("/speckit.plan\n\n  a\n  b \n", Some(("speckit.plan", "a\n  b \n")));
    check("/my_skill-2 é /x", Some(("my_skill-2", "é /x")));
    check("/git:log main", Some(("git:log", "main")));
    check("/compact\u{a0}now", Some(("compact", "now")));
}

#[test]
fn slash_without_name_is_no_command() {
    check("", None);
    check("/", None);
    check("/ x", None);
    check("/1", None);
    check("//x", None);
    check("/.git is large", None);
    check("/etc/hosts is broken", None);
    check("/help?", None);
    check("/note: all is well", None);
    check("/:x", None);
    check("/été", None);
}

/// A leading space of an editor marks the line as text.
#[test]
fn leading_space_makes_it_a_prompt() {
    check(" /help", None);
    check("\n/help", None);
}

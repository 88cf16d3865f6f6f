use expect_test::expect;

/// Every thread but the main one has 2 MB of stack.
#[test]
fn deep_files_are_errors_without_a_stack_overflow() {
    let aliases = |n: usize| {
        let deeper = (1..n).map(|at| format!("a{at}: &a{at} [[[[[*a{}]]]]]\n", at - 1));
        format!("a0: &a0 [x]\n{}", deeper.collect::<String>())
    };
    let deep = [
        "- ".repeat(500),
        "[".repeat(500),
        "{a: ".repeat(500),
        (0..500).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
        format!("{}{}", "[".repeat(33), "]".repeat(33)),
        aliases(20),
    ];
    let fine = ["- ".repeat(32), format!("{}{}", "[".repeat(32), "]".repeat(32)), aliases(5)];
    let read = move || {
        let parse = |text: &String| {
            crate::settings::file::parse_config("config.yaml".as_ref(), text).map(|_| text.len())
        };
        let wrong = deep.iter().filter_map(|text| parse(text).err()).map(|error| format!("{error}\n"));
        (wrong.collect::<String>(), fine.iter().map(parse).filter(Result::is_ok).count())
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(read).unwrap();
    let (wrong, n_fine) = thread.join().unwrap();
    expect![[r#"
        config.yaml:1: it is nested too deeply or too large
        config.yaml:1: it is nested too deeply or too large
        config.yaml:1: it is nested too deeply or too large
        config.yaml:33: it is nested too deeply or too large
        config.yaml:1: it is nested too deeply or too large
        config.yaml:8: it is nested too deeply or too large
    "#]]
    .assert_eq(&wrong);
    assert_eq!(n_fine, 3);
}

use std::fs;

use expect_test::{Expect, expect};

use super::*;

/// Creates files, and compares the instructions for `cwd`.
#[track_caller]
fn check(files: &[(&str, &str)], cwd: &str, expected: &Expect) {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    let instructions = read_instructions(&RepositoryLocation::find(&root.join(cwd)), &root.join("config"));
    let other_files = instructions.other_files.iter().map(|file| format!("\n(from {file})"));
    expected.assert_eq(&(instructions.text + &other_files.collect::<String>()));
}

#[test]
fn instructions_of_the_user_precede_those_of_the_repository() {
    check(
        &[
            ("AGENTS.md", "not ours"),
            ("config/AGENTS.md", "the person"),
            ("p/.git/HEAD", ""),
            ("p/AGENTS.md", "whole project"),
            ("p/src/AGENTS.md", "this part"),
        ],
        "p/src",
        &expect![[r#"
            the person

            whole project

            this part"#]],
    );
}

#[test]
fn files_of_other_agents_are_read_where_there_is_no_agents_file() {
    check(
        &[
            ("p/.git/HEAD", ""),
            ("p/CLAUDE.md", "for all"),
            ("p/GEMINI.md", "not read"),
            ("p/src/AGENTS.md", "this part"),
            ("p/src/CLAUDE.md", "not read"),
            ("p/src/ui/.cursorrules", "the windows"),
        ],
        "p/src/ui",
        &expect![[r#"
            for all

            this part

            the windows
            (from CLAUDE.md)
            (from src/ui/.cursorrules)"#]],
    );
    check(&[("p/.git/HEAD", ""), ("p/.env", "keys"), ("p/.cursorrules", "-> .env")], "p", &expect![""]);
}

#[test]
fn directory_without_a_repository_is_read_alone() {
    check(&[("AGENTS.md", "not ours"), ("p/AGENTS.md", "ours")], "p", &expect!["ours"]);
}

#[test]
fn links_out_of_the_repository_and_binary_files_are_skipped() {
    check(&[("secret", "keys"), ("p/.git/HEAD", ""), ("p/AGENTS.md", "-> ../secret")], "p", &expect![""]);
    check(&[("p/docs/AGENTS.md", "rules"), ("p/AGENTS.md", "-> docs/AGENTS.md")], "p", &expect!["rules"]);
    for target in [".env", "rules.txt", ".ssh/AGENTS.md"] {
        check(
            &[
                ("p/.env", "keys"),
                ("p/rules.txt", "keys"),
                ("p/.ssh/AGENTS.md", "keys"),
                ("p/.ignore", ".ssh"),
            ]
            .into_iter()
            .chain([("p/AGENTS.md", format!("-> {target}").as_str())])
            .collect::<Vec<_>>(),
            "p",
            &expect![""],
        );
    }
    check(
        &[("config/rules.md", "rules"), ("config/AGENTS.md", "-> rules.md"), ("p/x", "")],
        "p",
        &expect!["rules"],
    );
    check(&[("p/AGENTS.md/x", "")], "p", &expect![""]);
}

#[test]
fn instructions_are_truncated_at_the_limit() {
    let long = "é".repeat(BYTES_MAX);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(INSTRUCTIONS_FILE), long).unwrap();
    let content = read_instructions(&RepositoryLocation::find(directory.path()), Path::new("/nowhere")).text;
    assert!(content.len() < BYTES_MAX + 20 && content.ends_with("… cut"), "{}", content.len());
}

/// A program repeatedly replaces the file by a link to a file outside: the content outside is never read.
#[test]
fn link_that_appears_during_the_read_is_not_followed() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    let project = root.join("p");
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(root.join("secret.md"), "keys").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                fs::write(project.join("file"), "ours").unwrap();
                fs::rename(project.join("file"), project.join(INSTRUCTIONS_FILE)).unwrap();
                std::os::unix::fs::symlink("../secret.md", project.join("link")).unwrap();
                fs::rename(project.join("link"), project.join(INSTRUCTIONS_FILE)).unwrap();
            }
        });
        let told = (0..20_000).find_map(|_| {
            Some(read_instructions(&RepositoryLocation::find(&project), &root.join("config")).text)
                .filter(|content| content.contains("keys"))
        });
        is_over.store(true, Relaxed);
        assert_eq!(told, None);
    });
}

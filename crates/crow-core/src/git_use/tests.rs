use super::may_use_git;

#[test]
fn lines_without_git_are_recognized() {
    for line in [
        "rm -rf \"$(pwd)\"",
        "find . -type f -exec sed -i s/a/b/ {} +",
        "cd .. && rm -rf project",
        "ls -A | xargs rm -rf",
        "shopt -s dotglob; rm -rf *",
        "for f in $(ls -A); do rm -rf $f; done",
        "ls -A | while read f; do rm -rf \"$f\"; done",
        "/bin/rm -rf x",
        "timeout 5 rm -rf .",
        "env A=b rm -rf .",
        "bash -c 'rm -rf $(pwd)'",
    ] {
        assert!(!may_use_git(line), "{line}");
    }
    for line in [
        "git status",
        "rm x && git add -A",
        "echo $(git rev-parse HEAD)",
        "find . -name x -exec git add {} +",
        "make",
        "./rm",
        "bash ./rm",
        "timeout 5 ./rm",
        "env ./rm",
        "bash < x",
        "/opt/bin/rm x",
        "$X x",
        "sh -c 'git add .'",
        "xargs -n1 ./script",
        ". ./env",
        "eval \"$X\"",
        "if",
    ] {
        assert!(may_use_git(line), "{line}");
    }
}

//! Parts of a task that the model gives to children with their own worktrees.

use super::fixture::played;

/// The result of each returns on a branch, and is in the directory, uncommitted, when the task is reported.
#[test]
fn parts_of_a_task_are_merged_back() {
    let shown = played(
        r###"
        config: permissions: { mode: auto }
        tasks - [ ] T001 Make a.txt and b.txt
        repository
        model: call task {"prompt":"ALPHA","worktree":true} | call task {"prompt":"BETA","worktree":true}
        child ALPHA: call write {"file_path":"a.txt","content":"alpha\n"}
        child ALPHA: text "Made."
        child BETA: call write {"file_path":"b.txt","content":"beta\n"}
        child BETA: text "Made."
        model: call terminal {"command":"for b in $(git for-each-ref --format='%(refname)' refs/heads/crow); do git merge -q --squash $b || exit 1; done; git log --format=%s; git status --short a.txt b.txt"}
        model: call speckit_task {"id":"T001","state":"done","note":"made by two, merged"}
        > prompt /speckit.implement
        > end
        > show a.txt
        > show b.txt
        > ticks
        "###,
    );
    for wanted in [r"x\nA  a.txt\nA  b.txt\n", "# | alpha", "# | beta", "# [X] T001;", "= end_turn"] {
        assert!(shown.contains(wanted), "{wanted} is not in:\n{shown}");
    }
}

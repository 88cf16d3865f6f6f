//! Tasks that become issues on GitHub.

use expect_test::expect;

use super::check;

/// A project with two open tasks and a remote on GitHub.
const PROJECT: &str = r#"
    config: permissions: { mode: auto }
    file .git/HEAD "ref: refs/heads/main\n"
    file .git/config "[remote \"origin\"]\n\turl = git@github.com:octo/photos.git\n"
    tasks ## Phase 1: Setup
    tasks - [x] T001 Make a.txt
    tasks - [ ] T002 [P] Make b.txt
    tasks - [ ] T003 Make c.txt
    "#;

#[test]
fn open_tasks_become_issues_of_the_remote() {
    check(
        &format!(
            r###"
            {PROJECT}
            server github github
            model: call list_issues {{"owner":"octo","repo":"photos"}}
            model: call issue_write {{"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}}
            model: call issue_write {{"method":"create","owner":"Octo","repo":"photos","title":"T003: Make c.txt"}}
            model: text "T002 is #1, T003 is #2."
            > prompt /speckit.taskstoissues
            > end
            > told T003: Make c.txt
            > ticks
            "###
        ),
        &expect![[r#"
            > prompt /speckit.taskstoissues
            < call call-2-0 list_issues "github: list_issues" pending {"owner":"octo","repo":"photos"}
            < call call-2-0 in_progress
            < call call-2-0 completed "{\"owner\":\"octo\",\"repo\":\"photos\"}"
            < call call-4-0 issue_write "github: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}
            < call call-4-0 in_progress
            < call call-4-0 completed "{\"method\":\"create\",\"owner\":\"octo\",\"repo\":\"photos\",\"title\":\"T002: Make b.txt\"}"
            < call call-6-0 issue_write "github: issue_write" pending {"method":"create","owner":"Octo","repo":"photos","title":"T003: Make c.txt"}
            < call call-6-0 in_progress
            < call call-6-0 completed "{\"method\":\"create\",\"owner\":\"Octo\",\"repo\":\"photos\",\"title\":\"T003: Make c.txt\"}"
            < text[msg-8] T002 is #1, T003 is #2.
            < text[msg-9] ⏎**/speckit.taskstoissues**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 3 tasks in 1 phase, 1 done, 1 marked [P]⏎- New issues in octo/photos: T002, T003; open tasks: 2⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            # [x] T001 [ ] T002 [ ] T003; 0 bytes differ, 0 more or less
            asked user: /speckit.taskstoissues⏎<crow:speckit/taskstoissues: # Make GitHub issues of the tasks of 001-photo-albums (T002) (T003)>
            asked tool: {"owner":"octo","repo":"photos"}
            asked tool: {"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}
            asked tool: {"method":"create","owner":"Octo","repo":"photos","title":"T003: Make c.txt"}
        "#]],
    );
}

/// Another repository, an existing issue, no task, a finished task, a task with an issue, another server.
#[test]
fn issue_creation_writes_nothing_else() {
    check(
        &format!(
            r###"
            {PROJECT}
            server github github
            server other github
            model: call list_issues {{"owner":"octo","repo":"secrets"}}
            model: call issue_write {{"method":"create","owner":"evil","repo":"photos","title":"T002: Make b.txt"}}
            model: call issue_write {{"method":"create","title":"T002: Make b.txt"}}
            model: call issue_write {{"method":"update","owner":"octo","repo":"photos","title":"T002: Make b.txt"}}
            model: call issue_write {{"method":"create","owner":"octo","repo":"photos","title":"Buy milk"}}
            model: call issue_write {{"method":"create","owner":"octo","repo":"photos","title":"T001: Make a.txt"}}
            model: call other_issue_write {{"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}}
            model: call issue_write {{"method":"create","owner":"octo","repo":"photos","title":"[T002] Make b.txt"}}
            model: call issue_write {{"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}}
            model: text "One."
            > prompt /speckit.taskstoissues T002
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.taskstoissues T002
            < call call-2-0 list_issues "github: list_issues" pending {"owner":"octo","repo":"secrets"}
            < call call-2-0 failed "not run: /speckit.taskstoissues only works with octo/photos, the repository of the remote"
            < call call-4-0 issue_write "github: issue_write" pending {"method":"create","owner":"evil","repo":"photos","title":"T002: Make b.txt"}
            < call call-4-0 failed "not run: /speckit.taskstoissues only works with octo/photos, the repository of the remote"
            < call call-6-0 issue_write "github: issue_write" pending {"method":"create","title":"T002: Make b.txt"}
            < call call-6-0 failed "not run: specify the repository: owner octo, repo photos"
            < call call-8-0 issue_write "github: issue_write" pending {"method":"update","owner":"octo","repo":"photos","title":"T002: Make b.txt"}
            < call call-8-0 failed "not run: /speckit.taskstoissues only creates issues"
            < call call-10-0 issue_write "github: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"Buy milk"}
            < call call-10-0 failed "not run: the title of an issue must be the id and the text of an open task: `T001: …`"
            < call call-12-0 issue_write "github: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"T001: Make a.txt"}
            < call call-12-0 failed "not run: the title of an issue must be the id and the text of an open task: `T001: …`"
            < call call-14-0 other_issue_write "other: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}
            < call call-14-0 failed "not run: /speckit.taskstoissues only creates issues with issue_write of the server github"
            < call call-16-0 issue_write "github: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"[T002] Make b.txt"}
            < call call-16-0 in_progress
            < call call-16-0 completed "{\"method\":\"create\",\"owner\":\"octo\",\"repo\":\"photos\",\"title\":\"[T002] Make b.txt\"}"
            < call call-18-0 issue_write "github: issue_write" pending {"method":"create","owner":"octo","repo":"photos","title":"T002: Make b.txt"}
            < call call-18-0 failed "not run: T002 already has an issue"
            < text[msg-20] One.
            < text[msg-21] ⏎**/speckit.taskstoissues**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 3 tasks in 1 phase, 1 done, 1 marked [P]⏎- New issues in octo/photos: T002; open tasks: 1⏎⏎Next: `/speckit.implement`⏎
            = end_turn
            asked user: /speckit.taskstoissues T002⏎<crow:speckit/taskstoissues: # Make GitHub issues of the tasks of 001-photo-albums (T002)>
            asked tool: not run: /speckit.taskstoissues only works with octo/photos, the repository of the remote
            asked tool: not run: /speckit.taskstoissues only works with octo/photos, the repository of the remote
            asked tool: not run: specify the repository: owner octo, repo photos
            asked tool: not run: /speckit.taskstoissues only creates issues
            asked tool: not run: the title of an issue must be the id and the text of an open task: `T001: …`
            asked tool: not run: the title of an issue must be the id and the text of an open task: `T001: …`
            asked tool: not run: /speckit.taskstoissues only creates issues with issue_write of the server github
            asked tool: {"method":"create","owner":"octo","repo":"photos","title":"[T002] Make b.txt"}
            asked tool: not run: T002 already has an issue
        "#]],
    );
}

#[test]
fn missing_prerequisites_are_reported_before_anything_is_sent() {
    // Without a server.
    check(
        &format!("{PROJECT}\n> prompt /speckit.taskstoissues\n> end"),
        &expect![[r#"
            > prompt /speckit.taskstoissues
            < text[note-1] /speckit.taskstoissues creates issues with your GitHub MCP server, and no connected server has a tool `issue_write`. Add one to $HOME/.crow/config.yaml, with a token that may write issues, and start a new session:⏎⏎```yaml⏎mcpServers:⏎  github:⏎    url: https://api.githubcopilot.com/mcp/⏎    headers: { Authorization: "Bearer ${GITHUB_TOKEN}" }⏎```⏎⏎Nothing was sent.⏎
            = end_turn
        "#]],
    );
    // Another host, with a secret in its URL.
    let elsewhere = PROJECT.replace("git@github.com:", "https://me:secret@gitlab.com/");
    check(
        &format!("{elsewhere}\nserver github github\n> prompt /speckit.taskstoissues\n> end"),
        &expect![[r#"
            > prompt /speckit.taskstoissues
            < text[note-1] The remote origin is at "gitlab.com" and not on GitHub; no issue is created.⏎
            = end_turn
        "#]],
    );
    // Without a remote.
    let none = PROJECT.replace("origin", "fork");
    check(
        &format!("{none}\nserver github github\n> prompt /speckit.taskstoissues\n> end"),
        &expect![[r#"
            > prompt /speckit.taskstoissues
            < text[note-1] Issues are created in the GitHub repository of the remote origin, and this project has no such remote; add it with `git remote add origin https://github.com/OWNER/REPO.git`.⏎
            = end_turn
        "#]],
    );
    // Without open tasks.
    let done = PROJECT.replace("[ ]", "[x]");
    check(
        &format!("{done}\nserver github github\n> prompt /speckit.taskstoissues\n> end"),
        &expect![[r#"
            > prompt /speckit.taskstoissues
            < text[note-1] Every task is done, so there are no issues to create.⏎
            = end_turn
        "#]],
    );
}

//! The feature of a session in the environment of its programs.

use expect_test::expect;

use super::check;

/// A command that prints its variables.
const SHOWN: &str = r#"call terminal {"command":"env | sed -n 's/^SPECIFY_//p' | sort"}"#;

/// A session in a project without features, which specifies one.
const SPECIFIED: &str = "
    config: permissions: { mode: auto }
    model: text \"photo-days\"
    model: text \"Done.\"
    model: text \"Done.\"
    > prompt /speckit.specify albums of photos
    > end
    ";

#[test]
fn command_has_the_feature_and_another_directory_does_not() {
    check(
        &format!(
            r###"
            {SPECIFIED}
            file elsewhere/a.txt ""
            model: {SHOWN}
            model: text "Seen."
            > prompt what do they see?
            > end
            > new elsewhere
            model: {SHOWN}
            model: text "Seen."
            > prompt and here?
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.specify albums of photos
            < text[msg-2] Done.
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: specs/002-photo-days⏎- spec.md: 2 user stories, 2 requirements, 2 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Remaining problems:⏎- spec.md: line 19: the placeholder [Brief Title] is still there; replace it, or remove its line⏎- spec.md: line 21: the placeholder [Who does what, and what they have from it, in two or t
            = end_turn
            > prompt what do they see?
            < call call-7-0 terminal "`env | sed -n 's/^SPECIFY_//p' | sort`" pending {"command":"env | sed -n 's/^SPECIFY_//p' | sort"}
            < call call-7-0 in_progress
            < call call-7-0 completed "FEATURE=002-photo-days\nFEATURE_DIRECTORY=$HOME/project/specs/002-photo-days\nFEATURE_NO_PERSIST=1\nINIT_DIR=$HOME/project\n"
            < text[msg-9] Seen.
            = end_turn
            > new elsewhere
            > prompt and here?
            < call call-1-0 terminal "`env | sed -n 's/^SPECIFY_//p' | sort`" pending {"command":"env | sed -n 's/^SPECIFY_//p' | sort"}
            < call call-1-0 in_progress
            < call call-1-0 completed "(no output)"
            < text[msg-3] Seen.
            = end_turn
            asked user: Name a directory for this feature:⏎⏎<request>⏎albums of photos⏎</request>⏎⏎The name has 2 to 4 words in small letters with hyphens between, at most 40 character…
            asked user: /speckit.specify albums of photos⏎<crow:speckit/specify: # Write the spec of 002-photo-days>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:>
            asked user: <crow:speckit/report: **/speckit.specify**>⏎what do they see?
            asked tool: FEATURE=002-photo-days⏎FEATURE_DIRECTORY=$HOME/project/specs/002-photo-days⏎FEATURE_NO_PERSIST=1⏎INIT_DIR=$HOME/project⏎
            asked user: and here?
            asked tool: (no output)
        "#]],
    );
}

#[test]
fn client_terminal_has_the_feature() {
    check(
        &format!(
            r###"
            client: {{"terminal": true}}
            {SPECIFIED}
            model: {SHOWN}
            model: text "Seen."
            > prompt what do they see?
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.specify albums of photos
            < text[msg-2] Done.
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: specs/002-photo-days⏎- spec.md: 2 user stories, 2 requirements, 2 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Remaining problems:⏎- spec.md: line 19: the placeholder [Brief Title] is still there; replace it, or remove its line⏎- spec.md: line 21: the placeholder [Who does what, and what they have from it, in two or t
            = end_turn
            > prompt what do they see?
            < call call-7-0 terminal "`env | sed -n 's/^SPECIFY_//p' | sort`" pending {"command":"env | sed -n 's/^SPECIFY_//p' | sort"}
            < call call-7-0 in_progress
            > terminal create term-1: (held) bash -c env | sed -n 's/^SPECIFY_//p' | sort
            < call call-7-0 in_progress terminal term-1
            < call call-7-0 completed
            > terminal release term-1
            < text[msg-9] Seen.
            = end_turn
            asked user: Name a directory for this feature:⏎⏎<request>⏎albums of photos⏎</request>⏎⏎The name has 2 to 4 words in small letters with hyphens between, at most 40 character…
            asked user: /speckit.specify albums of photos⏎<crow:speckit/specify: # Write the spec of 002-photo-days>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:>
            asked user: <crow:speckit/report: **/speckit.specify**>⏎what do they see?
            asked tool: FEATURE=002-photo-days⏎FEATURE_DIRECTORY=$HOME/project/specs/002-photo-days⏎FEATURE_NO_PERSIST=1⏎INIT_DIR=$HOME/project⏎
        "#]],
    );
}

#[test]
fn jobs_and_children_have_the_feature() {
    check(
        &format!(
            r###"
            {SPECIFIED}
            model: call terminal {{"command":"exec 9>held; env | sed -n 's/^SPECIFY_//p' | sort >job.txt; printf . >ready; tail -f /dev/null","background":true}}
            model: call task {{"prompt":"ALPHA"}}
            model: text "Seen."
            child ALPHA: {SHOWN}
            child ALPHA: text "As I do."
            > prompt what do they see?
            > end
            > held
            > show job.txt
            "###
        ),
        &expect![[r#"
            > prompt /speckit.specify albums of photos
            < text[msg-2] Done.
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: specs/002-photo-days⏎- spec.md: 2 user stories, 2 requirements, 2 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Remaining problems:⏎- spec.md: line 19: the placeholder [Brief Title] is still there; replace it, or remove its line⏎- spec.md: line 21: the placeholder [Who does what, and what they have from it, in two or t
            = end_turn
            > prompt what do they see?
            < call call-7-0 terminal "`exec 9>held; env | sed -n 's/^SPECIFY_//p' | sort >job.txt; printf . >ready; tail -f /dev/null` in the background" pending {"command":"exec 9>held; env | sed -n 's/^SPECIFY_//p' | sort >job.txt; printf . >ready; tail -f /dev/null","background":true}
            < call call-7-0 in_progress
            < call call-7-0 completed "job-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
            < call call-9-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-9-0 in_progress
            < call call-9-0 completed "Task $TASK (ALPHA) is done.\n\nAs I do.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-11] Seen.
            = end_turn
            # job.txt
            # | FEATURE=002-photo-days
            # | FEATURE_DIRECTORY=$HOME/project/specs/002-photo-days
            # | FEATURE_NO_PERSIST=1
            # | INIT_DIR=$HOME/project
            asked user: Name a directory for this feature:⏎⏎<request>⏎albums of photos⏎</request>⏎⏎The name has 2 to 4 words in small letters with hyphens between, at most 40 character…
            asked user: /speckit.specify albums of photos⏎<crow:speckit/specify: # Write the spec of 002-photo-days>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:>
            asked user: <crow:speckit/report: **/speckit.specify**>⏎what do they see?
            asked tool: job-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended
            asked user: ALPHA
            asked tool: FEATURE=002-photo-days⏎FEATURE_DIRECTORY=$HOME/project/specs/002-photo-days⏎FEATURE_NO_PERSIST=1⏎INIT_DIR=$HOME/project⏎
            asked tool: Task $TASK (ALPHA) is done.⏎⏎As I do.⏎⏎The whole of it: query_session with session_id $TASK. To go on with it: task_send.⏎
        "#]],
    );
}

#[test]
fn feature_is_restored_in_another_process() {
    check(
        &format!(
            r###"
            {SPECIFIED}
            model: {SHOWN}
            model: text "Seen."
            > kill
            > load
            > prompt what do they see?
            > end
            "###
        ),
        &expect![[r#"
            > prompt /speckit.specify albums of photos
            < text[msg-2] Done.
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: specs/002-photo-days⏎- spec.md: 2 user stories, 2 requirements, 2 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Remaining problems:⏎- spec.md: line 19: the placeholder [Brief Title] is still there; replace it, or remove its line⏎- spec.md: line 21: the placeholder [Who does what, and what they have from it, in two or t
            = end_turn
            > kill
            > load
            < prompt[msg-0] /speckit.specify albums of photos
            < text[msg-2] Done.
            < text[msg-4] Done.
            < text[msg-5] ⏎**/speckit.specify**⏎- Feature: specs/002-photo-days⏎- spec.md: 2 user stories, 2 requirements, 2 success criteria, 0 open points⏎- checklists/requirements.md: 0 of 16 checked⏎⏎Remaining problems:⏎- spec.md: line 19: the placeholder [Brief Title] is still there; replace it, or remove its line⏎- spec.md: line 21: the placeholder [Who does what, and what they have from it, in two or t
            > prompt what do they see?
            < call call-7-0 terminal "`env | sed -n 's/^SPECIFY_//p' | sort`" pending {"command":"env | sed -n 's/^SPECIFY_//p' | sort"}
            < call call-7-0 in_progress
            < call call-7-0 completed "FEATURE=002-photo-days\nFEATURE_DIRECTORY=$HOME/project/specs/002-photo-days\nFEATURE_NO_PERSIST=1\nINIT_DIR=$HOME/project\n"
            < text[msg-9] Seen.
            = end_turn
            asked user: Name a directory for this feature:⏎⏎<request>⏎albums of photos⏎</request>⏎⏎The name has 2 to 4 words in small letters with hyphens between, at most 40 character…
            asked user: /speckit.specify albums of photos⏎<crow:speckit/specify: # Write the spec of 002-photo-days>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.specify`. This does not hold yet:>
            asked user: <crow:speckit/report: **/speckit.specify**>⏎what do they see?
            asked tool: FEATURE=002-photo-days⏎FEATURE_DIRECTORY=$HOME/project/specs/002-photo-days⏎FEATURE_NO_PERSIST=1⏎INIT_DIR=$HOME/project⏎
        "#]],
    );
}

/// A job without input is restarted when the session selects a feature; one that may have state stays.
#[test]
fn mcp_server_has_the_feature() {
    check(
        r###"
        config: permissions: { mode: auto }
        file .specify/feature.json "{}"
        file specs/002-other/spec.md ""
        server box
        model: call env {"name":"SPECIFY_FEATURE"}
        model: text "Seen."
        model: call env {"name":"SPECIFY_FEATURE"}
        model: text "Seen again."
        > prompt /speckit use 001
        > end
        > prompt what does it see?
        > end
        > prompt /speckit use 002
        > end
        > prompt and now?
        > end
        "###,
        &expect![[r#"
            > prompt /speckit use 001
            < text[note-1] Switched to `specs/001-photo-albums`: spec, plan⏎
            = end_turn
            > prompt what does it see?
            < call call-1-0 env "box: env" pending {"name":"SPECIFY_FEATURE"}
            < call call-1-0 in_progress
            < call call-1-0 completed "001-photo-albums"
            < text[msg-3] Seen.
            = end_turn
            > prompt /speckit use 002
            < text[note-2] Switched to `specs/002-other`: spec⏎
            = end_turn
            > prompt and now?
            < call call-5-0 env "box: env" pending {"name":"SPECIFY_FEATURE"}
            < call call-5-0 in_progress
            < call call-5-0 completed "001-photo-albums"
            < text[msg-7] Seen again.
            = end_turn
            asked user: what does it see?
            asked tool: 001-photo-albums
            asked user: and now?
            asked tool: 001-photo-albums
        "#]],
    );
}

#[test]
fn mcp_server_has_the_feature_in_another_process() {
    check(
        r###"
        config: permissions: { mode: auto }
        server box
        model: text "Hello."
        model: call env {"name":"SPECIFY_FEATURE_DIRECTORY"}
        model: text "Seen."
        > prompt /speckit use 001
        > end
        > prompt hello
        > end
        > kill
        > load
        > prompt what does it see?
        > end
        "###,
        &expect![[r#"
            > prompt /speckit use 001
            < text[note-1] Switched to `specs/001-photo-albums`: spec, plan⏎
            = end_turn
            > prompt hello
            < text[msg-1] Hello.
            = end_turn
            > kill
            > load
            < prompt[msg-0] hello
            < text[msg-1] Hello.
            > prompt what does it see?
            < call call-3-0 env "box: env" pending {"name":"SPECIFY_FEATURE_DIRECTORY"}
            < call call-3-0 in_progress
            < call call-3-0 completed "$HOME/project/specs/001-photo-albums"
            < text[msg-5] Seen.
            = end_turn
            asked user: hello
            asked user: what does it see?
            asked tool: $HOME/project/specs/001-photo-albums
        "#]],
    );
}

/// Without a repository, the project is searched for up to the home directory.
#[test]
fn project_is_found_above_the_session() {
    check(
        r###"
        tasks - [ ] T001 Make a.txt
        file src/deep/a.txt ""
        > new src/deep
        > prompt /speckit
        > end
        "###,
        &expect![[r#"
            > new src/deep
            > prompt /speckit
            < text[note-1] - ▸ `001-photo-albums`: spec, plan, 0 of 1 tasks done⏎⏎Next: `/speckit.implement`⏎
            = end_turn
        "#]],
    );
}

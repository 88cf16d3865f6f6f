//! `/speckit.tasks`, and the list as a plan.

use expect_test::expect;
use serde_json::json;

use super::check;

/// Returns a call that writes a valid list.
fn written() -> String {
    let list = include_str!("pages/tasks.md");
    format!("call write {}", json!({"file_path": "specs/001-photo-albums/tasks.md", "content": list}))
}

#[test]
fn list_is_written_checked_and_shown() {
    check(
        &format!(
            r###"
            model: call read {{"file_path":"specs/001-photo-albums/spec.md"}}
            model: {}
            model: text "Six tasks."
            > prompt /speckit.tasks no tests
            > end
            > plan
            > ticks
            "###,
            written()
        ),
        &expect![[r#"
            > prompt /speckit.tasks no tests
            < call call-2-0 read "Read specs/001-photo-albums/spec.md" pending {"file_path":"specs/001-photo-albums/spec.md"}
            < call call-2-0 in_progress
            < call call-2-0 completed "     1\t# Feature Specification: Photo Albums\n     2\t\n     3\t**Feature Branch**: `001-photo-albums`\n     4\t\n     5\t**Created**: 2026-11-22\n     6\t\n     7\t**Statu"
            < call call-4-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundation
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/specs/001-photo-albums/tasks.md null -> "---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundational (Blocking Prerequisites)\n\n- [ ] T002 
            < text[msg-6] Six tasks.
            < plan pending T001 Create pyproject.toml with the command `albums`, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Find photos in albums/scan.py (FR-001), pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001), pending T005 [US2] Move an album before another in albums/order.py (FR-002), pending T006 Walk through everything with 5,000 photos and put righ
            < text[msg-7] ⏎**/speckit.tasks**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 6 tasks in 5 phases, 0 done, 2 marked [P]⏎⏎Next: `/speckit.analyze`, `/speckit.implement`⏎
            = end_turn
            # high pending T001 Create pyproject.toml with the command `albums` {"id":"T001","phase":"Phase 1: Setup (Shared Infrastructure)","story":null,"parallel":false,"line":11}
            # high pending T002 Define Photo and Album in albums/model.py {"id":"T002","phase":"Phase 2: Foundational (Blocking Prerequisites)","story":null,"parallel":false,"line":15}
            # high pending T003 [US1] Find photos in albums/scan.py (FR-001) {"id":"T003","phase":"Phase 3: User Story 1 - See photos in albums by day (Priority: P1) 🎯 MVP","story":"US1","parallel":true,"line":23}
            # high pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001) {"id":"T004","phase":"Phase 3: User Story 1 - See photos in albums by day (Priority: P1) 🎯 MVP","story":"US1","parallel":true,"line":24}
            # medium pending T005 [US2] Move an album before another in albums/order.py (FR-002) {"id":"T005","phase":"Phase 4: User Story 2 - Put albums in my own order (Priority: P2)","story":"US2","parallel":false,"line":32}
            # low pending T006 Walk through everything with 5,000 photos and put right what differs in albums/scan.py (SC-001) {"id":"T006","phase":"Phase 5: Polish & Cross-Cutting Concerns","story":null,"parallel":false,"line":36}
            # [ ] T001 [ ] T002 [ ] T003 [ ] T004 [ ] T005 [ ] T006; 0 bytes differ, 1129 more or less
            asked user: /speckit.tasks no tests⏎<crow:speckit/tasks: # Write the task list of 001-photo-albums>
            asked tool:      1	# Feature Specification: Photo Albums⏎     2	⏎     3	**Feature Branch**: `001-photo-albums`⏎     4	⏎     5	**Created**: 2026-11-22⏎     6	⏎     7	**Statu…
            asked tool: created specs/001-photo-albums/tasks.md: 40 lines
        "#]],
    );
}

#[test]
fn plan_is_restored_with_the_session() {
    check(
        &format!(
            r###"
            model: {}
            model: text "Six tasks."
            > prompt /speckit.tasks
            > end
            > kill
            > load
            > wait < plan
            > plan
            "###,
            written()
        ),
        &expect![[r#"
            > prompt /speckit.tasks
            < call call-2-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundation
            < call call-2-0 in_progress
            < call call-2-0 completed diff $HOME/project/specs/001-photo-albums/tasks.md null -> "---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundational (Blocking Prerequisites)\n\n- [ ] T002 
            < text[msg-4] Six tasks.
            < plan pending T001 Create pyproject.toml with the command `albums`, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Find photos in albums/scan.py (FR-001), pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001), pending T005 [US2] Move an album before another in albums/order.py (FR-002), pending T006 Walk through everything with 5,000 photos and put righ
            < text[msg-5] ⏎**/speckit.tasks**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 6 tasks in 5 phases, 0 done, 2 marked [P]⏎⏎Next: `/speckit.analyze`, `/speckit.implement`⏎
            = end_turn
            > kill
            > load
            < prompt[msg-0] /speckit.tasks
            < call call-2-0 write "Write specs/001-photo-albums/tasks.md" completed {"file_path":"specs/001-photo-albums/tasks.md","content":"---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundati
            < text[msg-4] Six tasks.
            < text[msg-5] ⏎**/speckit.tasks**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 6 tasks in 5 phases, 0 done, 2 marked [P]⏎⏎Next: `/speckit.analyze`, `/speckit.implement`⏎
            < plan pending T001 Create pyproject.toml with the command `albums`, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Find photos in albums/scan.py (FR-001), pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001), pending T005 [US2] Move an album before another in albums/order.py (FR-002), pending T006 Walk through everything with 5,000 photos and put righ
            # high pending T001 Create pyproject.toml with the command `albums` {"id":"T001","phase":"Phase 1: Setup (Shared Infrastructure)","story":null,"parallel":false,"line":11}
            # high pending T002 Define Photo and Album in albums/model.py {"id":"T002","phase":"Phase 2: Foundational (Blocking Prerequisites)","story":null,"parallel":false,"line":15}
            # high pending T003 [US1] Find photos in albums/scan.py (FR-001) {"id":"T003","phase":"Phase 3: User Story 1 - See photos in albums by day (Priority: P1) 🎯 MVP","story":"US1","parallel":true,"line":23}
            # high pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001) {"id":"T004","phase":"Phase 3: User Story 1 - See photos in albums by day (Priority: P1) 🎯 MVP","story":"US1","parallel":true,"line":24}
            # medium pending T005 [US2] Move an album before another in albums/order.py (FR-002) {"id":"T005","phase":"Phase 4: User Story 2 - Put albums in my own order (Priority: P2)","story":"US2","parallel":false,"line":32}
            # low pending T006 Walk through everything with 5,000 photos and put right what differs in albums/scan.py (SC-001) {"id":"T006","phase":"Phase 5: Polish & Cross-Cutting Concerns","story":null,"parallel":false,"line":36}
            asked user: /speckit.tasks⏎<crow:speckit/tasks: # Write the task list of 001-photo-albums>
            asked tool: created specs/001-photo-albums/tasks.md: 40 lines
        "#]],
    );
}

#[test]
fn invalid_list_is_corrected_within_two_rounds() {
    let bad = |text: &str| {
        format!("call write {}", json!({"file_path": "specs/001-photo-albums/tasks.md", "content": text}))
    };
    check(
        &format!(
            r###"
            model: text "I thought about it."
            model: {}
            model: text "Here it is."
            model: {}
            model: text "There."
            > prompt /speckit.tasks
            > end
            > ticks
            "###,
            bad("# Tasks\n\n- [ ] T001 Do it\n"),
            written()
        ),
        &expect![[r##"
            > prompt /speckit.tasks
            < text[msg-2] I thought about it.
            < call call-4-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"# Tasks\n\n- [ ] T001 Do it\n"}
            < call call-4-0 in_progress
            < call call-4-0 completed diff $HOME/project/specs/001-photo-albums/tasks.md null -> "# Tasks\n\n- [ ] T001 Do it\n"
            < text[msg-6] Here it is.
            < call call-8-0 write "Write specs/001-photo-albums/tasks.md" pending {"file_path":"specs/001-photo-albums/tasks.md","content":"---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundation
            < call call-8-0 in_progress
            < call call-8-0 completed diff $HOME/project/specs/001-photo-albums/tasks.md "# Tasks\n\n- [ ] T001 Do it\n" -> "---\ndescription: \"The tasks of one feature\"\n---\n\n# Tasks: Photo Albums\n\n**Input**: The design documents in `specs/001-photo-albums`\n\n## Phase 1: Setup (Shared Infrastructure)\n\n- [ ] T001 Create pyproject.toml with the command `albums`\n\n## Phase 2: Foundational (Blocking Pr
            < text[msg-10] There.
            < plan pending T001 Create pyproject.toml with the command `albums`, pending T002 Define Photo and Album in albums/model.py, pending T003 [US1] Find photos in albums/scan.py (FR-001), pending T004 [US1] Read the day of a photo in albums/dates.py (FR-001), pending T005 [US2] Move an album before another in albums/order.py (FR-002), pending T006 Walk through everything with 5,000 photos and put righ
            < text[msg-11] ⏎**/speckit.tasks**⏎- Feature: specs/001-photo-albums⏎- tasks.md: 6 tasks in 5 phases, 0 done, 2 marked [P]⏎⏎Next: `/speckit.analyze`, `/speckit.implement`⏎
            = end_turn
            # [ ] T001 [ ] T002 [ ] T003 [ ] T004 [ ] T005 [ ] T006; 0 bytes differ, 1129 more or less
            asked user: /speckit.tasks⏎<crow:speckit/tasks: # Write the task list of 001-photo-albums>
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:>
            asked tool: created specs/001-photo-albums/tasks.md: 3 lines
            asked user: <crow:speckit/repair: Crow has checked what is on disk now, after `/speckit.tasks`. This does not hold yet:>
            asked tool: replaced specs/001-photo-albums/tasks.md: 3 lines before, 40 lines now
        "##]],
    );
}

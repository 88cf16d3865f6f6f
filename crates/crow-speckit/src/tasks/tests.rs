#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    let list = TaskList::parse(text);
    let mut shown = String::new();
    for task in &list.tasks {
        let phase = list.phase_for(task).map_or("-".to_owned(), |phase| format!("{phase} {:?}", phase.kind));
        let done = if task.done { "x" } else { " " };
        let parallel = if task.parallel { " P" } else { "" };
        let TaskItem { id, line, text, stories, .. } = task;
        writeln!(shown, "{line}: [{done}] {id}{parallel} {stories:?} <{phase}> {text}").unwrap();
    }
    shown
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&shown(text));
    assert_eq!(shown(&text.replace('\n', "\r\n")), shown(text), "with CRLF");
    for task in TaskList::parse(text).tasks {
        assert!(" xX".contains(char::from(text.as_bytes()[task.marker])), "{task:?}");
    }
}

const ALBUMS: &str = include_str!("tests/albums.md");
const LEDGER: &str = include_str!("tests/ledger.md");

#[test]
fn valid_list_is_parsed() {
    check(
        ALBUMS,
        expect![[r#"
        16: [x] T001 [] <Phase 1: Setup (Shared Infrastructure) Setup> Create the folders src/ and tests/
        17: [x] T002 P [] <Phase 1: Setup (Shared Infrastructure) Setup> Configure the linter in pyproject.toml
        23: [ ] T003 [] <Phase 2: Foundational (Blocking Prerequisites) Foundational> Create the schema in src/db/schema.sql
        24: [ ] T004 P [] <Phase 2: Foundational (Blocking Prerequisites) Foundational> Read settings in src/settings.py
        32: [ ] T005 P [1] <Phase 3: User Story 1 - Make an album (Priority: P1) 🎯 MVP Story { number: 1, priority: Some(1) }> Contract test in tests/contract/test_albums.py
        33: [ ] T006 P [1] <Phase 3: User Story 1 - Make an album (Priority: P1) 🎯 MVP Story { number: 1, priority: Some(1) }> Integration test in tests/integration/test_albums.py
        37: [ ] T007 [1] <Phase 3: User Story 1 - Make an album (Priority: P1) 🎯 MVP Story { number: 1, priority: Some(1) }> Model in src/models/album.py
        38: [ ] T008 [1] <Phase 3: User Story 1 - Make an album (Priority: P1) 🎯 MVP Story { number: 1, priority: Some(1) }> Service in src/services/albums.py (depends on T007)
        42: [ ] T009 [2] <Phase 4: User Story 2 - Reorder (Priority: P2) Story { number: 2, priority: Some(2) }> Positions in src/models/album.py
        43: [ ] T010 [2] <Phase 4: User Story 2 - Reorder (Priority: P2) Story { number: 2, priority: Some(2) }> Dragging in src/ui/albums.py
        47: [ ] T011 P [] <Phase 5: Polish & Cross-Cutting Concerns Polish> Documentation in docs/albums.md
    "#]],
    );
}

#[test]
fn lists_of_public_projects_are_parsed() {
    check(
        LEDGER,
        expect![[r#"
        9: [x] T001 [] <Phase 3.1: Setup Setup> Projekt anlegen, siehe
        13: [ ] T002 P [] <Phase 3.1: Setup Setup> `[SETUP]` Linter — `ruff.toml`
        17: [ ] T003 P [1, 2] <Phase 3.2: Tests First ⚠️ MUST COMPLETE BEFORE 3.3 Other> Contract test, see [the spec](spec.md#fr-001)
        18: [ ] T003 [1] <Phase 3.2: Tests First ⚠️ MUST COMPLETE BEFORE 3.3 Other> The same id again
        22: [ ] T1004 [1] <Phase 4: Benutzergeschichte eins (P1) Story { number: 1, priority: Some(1) }> Import in src/import.py
        23: [ ] T1005 [1] <Phase 4: Benutzergeschichte eins (P1) Story { number: 1, priority: Some(1) }> Rows with `<!--` in them, src/rows.py
        28: [x] T1006 [] <Später Other> Notes in docs/notes.md
    "#]],
    );
}

#[test]
fn task_formats() {
    check(
        "- [ ] T001 plain\n* [x] T002 star\n+ [X] T003 plus\n1. [ ] T004 numbered\n\
         - [ ] **T005** bold\n- [ ] **T006**: bold and colon\n- [ ] **T007 [P]** half bold\n- [ ] `T008` code\n\
         - [ ] T009: colon\n- [ ] T010 - dash\n- [ ] T011 – en\n- [ ] T012 — em\n- [ ] [T013] boxed\n\
         - [ ] T014 [US1+US2] two\n- [ ] T015 [P][US3] tight\n- [ ] T016 `[SETUP]` [P] unknown label\n\
         - [ ] T017 [docs](docs/a.md) a link\n- [ ] T018 [US1] [P]: swapped\n- [ ] T1000 four\n  - [ ] T019 nested\n",
        expect![[r#"
            1: [ ] T001 [] <-> plain
            2: [x] T002 [] <-> star
            3: [x] T003 [] <-> plus
            4: [ ] T004 [] <-> numbered
            5: [ ] T005 [] <-> bold
            6: [ ] T006 [] <-> bold and colon
            7: [ ] T007 P [] <-> half bold
            8: [ ] T008 [] <-> code
            9: [ ] T009 [] <-> colon
            10: [ ] T010 [] <-> dash
            11: [ ] T011 [] <-> en
            12: [ ] T012 [] <-> em
            13: [ ] T013 [] <-> boxed
            14: [ ] T014 [1, 2] <-> two
            15: [ ] T015 P [3] <-> tight
            16: [ ] T016 P [] <-> `[SETUP]` unknown label
            17: [ ] T017 [] <-> [docs](docs/a.md) a link
            18: [ ] T018 P [1] <-> swapped
            19: [ ] T1000 [] <-> four
            20: [ ] T019 [] <-> nested
        "#]],
    );
}

#[test]
fn lines_that_are_not_tasks() {
    check(
        "- [ ] TXXX placeholder\n- [ ] T12 short\n- [ ] T0123456789 long\n- [ ] T001a letter\n- [] T002 no box\n\
         - [-] T003 cancelled\n- T004 no box\n- [ ]T005 tight\ntext - [ ] T006 amid\n- [ ] do it\n- [ ] t007 small\n\
         <!-- - [ ] T008 hidden -->\n```\n- [ ] T009 code\n```\n~~~~ text\n- [ ] T010 code\n```\n~~~\n~~~~\n\
         <!--\n- [ ] T011 hidden\n\n- [ ] T012 hidden\n-->\n- [ ] T013 seen\n",
        expect![[r#"
            26: [ ] T013 [] <-> seen
        "#]],
    );
    check(
        "---\n- [ ] T001 matter\n---\n- [ ] T002 seen\n",
        expect![[r#"
        4: [ ] T002 [] <-> seen
    "#]],
    );
}

#[test]
fn markup_that_does_not_hide_tasks() {
    check(
        "- [ ] T001 strip `<!--` in a.rs\n- [ ] T002 seen\n",
        expect![[r#"
        1: [ ] T001 [] <-> strip `<!--` in a.rs
        2: [ ] T002 [] <-> seen
    "#]],
    );
    check(
        "- [ ] T001 strip <!-- in a.rs\n\n- [ ] T002 seen\n",
        expect![[r#"
        1: [ ] T001 [] <-> strip <!-- in a.rs
        3: [ ] T002 [] <-> seen
    "#]],
    );
    check(
        "- [ ] T001 a ```b``` c\n- [ ] T002 seen\n",
        expect![[r#"
        1: [ ] T001 [] <-> a ```b``` c
        2: [ ] T002 [] <-> seen
    "#]],
    );
    check(
        "---\n\n## Phase 1: Setup\n\n- [ ] T001 seen\n\n---\n",
        expect![[r#"
        5: [ ] T001 [] <Phase 1: Setup Setup> seen
    "#]],
    );
    check(
        "a <!-- b --> c <!--\n\n- [ ] T001 seen\n",
        expect![[r#"
        3: [ ] T001 [] <-> seen
    "#]],
    );
}

#[test]
fn phases_are_parsed() {
    check(
        "## Phase 3.1: Setup\n- [ ] T001 a\n## Phase 3.2 - Core (P2)\n- [ ] T002 [US4] b\n### Tests for it\n\
         - [ ] T003 [US4] c\n## Фаза 4: Первая история (P1)\n- [ ] T004 [US1] d\n## **Phase 5: Polish**\n- [ ] T005 e\n\
         ### Phase 6: User Story 2 — Share (Priority: P3) 🎯 MVP\n- [ ] T006 [US2] f\n## Notes\n- [ ] T007 g\n\
         ## Phase 7\n- [ ] T008 h\n# Other\n- [ ] T009 i\n",
        expect![[r#"
            2: [ ] T001 [] <Phase 3.1: Setup Setup> a
            4: [ ] T002 [4] <Phase 3.2: Core (P2) Story { number: 4, priority: Some(2) }> b
            6: [ ] T003 [4] <Phase 3.2: Core (P2) Story { number: 4, priority: Some(2) }> c
            8: [ ] T004 [1] <Phase 4: Первая история (P1) Story { number: 1, priority: Some(1) }> d
            10: [ ] T005 [] <Phase 5: Polish Polish> e
            12: [ ] T006 [2] <Phase 6: User Story 2 — Share (Priority: P3) 🎯 MVP Story { number: 2, priority: Some(3) }> f
            14: [ ] T007 [] <Notes Other> g
            16: [ ] T008 [] <Phase 7 Other> h
            18: [ ] T009 [] <-> i
        "#]],
    );
}

#[test]
fn tick_changes_one_byte() {
    let id = |id: &str| TaskId::parse(id).unwrap();
    let text = "- [ ] T001 a\r\n- [x] T002 b\r\n- [ ] T003 c\n- [ ] T003 d";
    let ticked = set_task_ticked(text, &id("T001"), TickState::Ticked).unwrap();
    assert_eq!(ticked, "- [X] T001 a\r\n- [x] T002 b\r\n- [ ] T003 c\n- [ ] T003 d");
    assert_eq!(set_task_ticked(&ticked, &id("T001"), TickState::Unticked).unwrap(), text);
    assert_eq!(set_task_ticked(text, &id("T002"), TickState::Ticked).unwrap(), text);
    assert_eq!(set_task_ticked(text, &id("T004"), TickState::Ticked), Err(TasksError::UnknownId(id("T004"))));
    assert_eq!(
        set_task_ticked(text, &id("T003"), TickState::Ticked),
        Err(TasksError::DuplicateId { id: id("T003"), first_line: 3, second_line: 4 })
    );
}

fn kind_of(name: &str) -> GapKind {
    let kinds = [GapKind::Missing, GapKind::Partial, GapKind::Contradicts, GapKind::Unrequested];
    kinds.into_iter().find(|kind| kind.as_str() == name).unwrap()
}

#[track_caller]
fn check_append(text: &str, gaps: &[(&str, &str, &str)], expected: Expect) {
    let gaps: Vec<ConvergenceGap> = gaps
        .iter()
        .map(|(text, source, kind)| ConvergenceGap {
            text: (*text).to_owned(),
            source: (*source).to_owned(),
            kind: kind_of(kind.trim_end_matches('!')),
            is_critical: kind.ends_with('!'),
        })
        .collect();
    match append_convergence(text, &gaps) {
        Ok(longer) => expected.assert_eq(&longer.strip_prefix(text).unwrap().replace("\r", "\\r")),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn convergence_tasks_are_appended() {
    let gaps = [("Add the\n\tlimit", "FR-003", "partial"), ("Hash it", "Constitution II", "missing!")];
    check_append(
        "## Phase 9: Polish\n- [x] T041 a\n",
        &gaps,
        expect![[r#"

        ## Phase 10: Convergence

        - [ ] T042 CRITICAL: Hash it per Constitution II (missing)
        - [ ] T043 Add the limit per FR-003 (partial)
    "#]],
    );
    check_append(
        "## Phase 3.4: Polish\r\n- [x] T999 a",
        &gaps,
        expect![[r#"
            \r
            \r
            ## Phase 4: Convergence\r
            \r
            - [ ] T1000 CRITICAL: Hash it per Constitution II (missing)\r
            - [ ] T1001 Add the limit per FR-003 (partial)\r
        "#]],
    );
    check_append(
        "",
        &[("a <!-- b", "- [ ] T001\u{7}", "unrequested")],
        expect![[r#"
        ## Phase 1: Convergence

        - [ ] T001 a <! -- b per - [ ] T001 (unrequested)
    "#]],
    );
    check_append("- [ ] T001 a\n", &[], expect![""]);
    check_append(
        "- [ ] T001 a\n",
        &[("a", "b", "missing"), (" \n", "FR-001", "missing")],
        expect!["new task 2 needs a text and a source"],
    );
    check_append(
        "- [ ] T999999999 a\n",
        &gaps,
        expect!["tasks.md has no ids left after its highest; give that task a lower id"],
    );
    check_append(
        "- [ ] T999999998 a\n",
        &gaps,
        expect!["tasks.md has no ids left after its highest; give that task a lower id"],
    );
    check_append(
        "- [ ] T001 a\n```\n",
        &gaps,
        expect!["tasks.md ends in a code block or a comment that is not closed; close it first"],
    );
    check_append(
        "- [ ] T001 a\n<!-- b\n",
        &gaps,
        expect!["tasks.md ends in a code block or a comment that is not closed; close it first"],
    );
}

#[track_caller]
fn check_selection(scope: &str, expected: &str) {
    let ids = |ids: Vec<TaskId>| ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ");
    let selection = TaskList::parse(ALBUMS).select_tasks(scope);
    assert_eq!(selection.map_or("for the model".into(), ids), expected, "{scope}");
}

#[test]
fn scopes_select_tasks() {
    check_selection("T005", "T005");
    check_selection("t005, T007", "T005 T007");
    check_selection("T004-T007", "T004 T005 T006 T007");
    check_selection("T004 to T006 and t009", "T004 T005 T006 T009");
    check_selection("only T001", "");
    check_selection("T099", "");
    check_selection("US2", "T009 T010");
    check_selection("the tasks [US2]", "T009 T010");
    check_selection("user story 2.", "T009 T010");
    check_selection("phase 2", "T003 T004");
    check_selection("Phases 2, 4", "T003 T004 T009 T010");
    check_selection("phases 2-3", "T003 T004 T005 T006 T007 T008");
    check_selection("Foundational + polish", "T003 T004 T011");
    check_selection("phase 2 T011 US2", "T003 T004 T009 T010 T011");
    for scope in ["", "  ", "T005 but quickly", "phase two", "phase", "US", "T005 without tests", "the"] {
        check_selection(scope, "for the model");
    }
}

#[track_caller]
fn check_step(text: &str, among: Option<&[&str]>, expected: &str) {
    let among: Option<Vec<TaskId>> =
        among.map(|ids| ids.iter().map(|id| TaskId::parse(id).unwrap()).collect());
    let list = TaskList::parse(text);
    let step: Vec<&str> = list.next_batch(among.as_deref()).iter().map(|task| task.id.as_str()).collect();
    assert_eq!(step.join(" "), expected);
}

#[test]
fn next_batch_of_tasks() {
    check_step("- [x] T001 a\n- [ ] T002 b\n- [ ] T003 [P] c\n", None, "T002");
    check_step(
        "- [ ] T001 [P] a\n- [x] T002 b\n- [ ] T003 [P] c\n- [ ] T004 d\n- [ ] T005 [P] e\n",
        None,
        "T001 T003",
    );
    check_step(
        "- [ ] T001 [P] in src/a.rs\n- [ ] T002 [P] in `src/b.rs`\n- [ ] T003 [P] (src/a.rs).\n",
        None,
        "T001 T002",
    );
    check_step("- [ ] T001 [P] a\n- [ ] T002 [P] after T001\n", None, "T001");
    check_step("## Phase 1\n- [ ] T001 [P] a\n## Phase 2\n- [ ] T002 [P] b\n", None, "T001");
    check_step(
        "- [ ] T001 [P] Node.js, e.g. and/or\n- [ ] T002 [P] Node.js, e.g. and/or\n",
        None,
        "T001 T002",
    );
    check_step("- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n", Some(&["T003", "T002"]), "T002 T003");
    check_step("- [ ] T001 a\n- [x] T002 b\n", Some(&["T002"]), "");
    check_step("", None, "");
}

#[test]
fn paths_in_a_text() {
    let found = |text| find_paths(text).collect::<Vec<_>>().join(" ");
    assert_eq!(
        found("Create `src/a.rs`, tests/test_b.py (Dockerfile) and .gitignore."),
        "src/a.rs tests/test_b.py Dockerfile .gitignore"
    );
    assert_eq!(found("Use Node.js 1.2, i.e. https://a.example/b.html, v1.0"), "");
    assert!(has_path("Make src/models") && !has_path("Do this and/or that"));
}

/// A page of comment starts is parsed in linear time.
#[test]
fn hostile_page_is_parsed_in_linear_time() {
    for piece in [
        "<!--",
        "<!-- -->",
        "a <!--\n\n",
        "a <!--\r\n\r\n",
        "`<!--",
        "`a",
        "[a]:",
        "[a](",
        " ",
        " <!-- -->",
        "a <!-- b\n",
        "``` `",
        "- [ ] T001 [a",
        "[",
        "*",
    ] {
        let text = piece.repeat(40_000);
        assert!(TaskList::parse(&text).tasks.len() < 2, "{piece}");
        assert_eq!(markdown::prose_text(&text).len(), text.len());
        crate::lint::find_placeholders(&text, "[b]");
    }
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..30_u32, "[ xX]", "[-*]", "( \\[P\\])?( \\[US[12]\\])?", "[a-zé`*<:. ]{0,8}").prop_map(
            |(id, tick, bullet, labels, text)| format!("{bullet} [{tick}] T{id:03}{labels} {text}")),
        1 => "## Phase [1-4]: [A-Za-z ]{0,9}",
        1 => prop_oneof![Just("```"), Just("<!--"), Just("-->"), Just("---"), Just(""), Just("~~~")].prop_map(str::to_owned),
        1 => "[-*#`<>!é \\[\\]xTUS01]{0,12}",
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::collection::vec((any_line(), end), 0..20), any::<bool>()).prop_map(|(lines, is_ended)| {
        let text: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        if is_ended { text } else { text.trim_end().to_owned() }
    })
}

fn found<'a>(list: &'a TaskList, id: &TaskId) -> Option<&'a TaskItem> {
    list.tasks.iter().find(|task| task.id == *id)
}

proptest! {
    #[test]
    fn parsing_does_not_panic(text in any::<String>(), page in any_text()) {
        for text in [text, page] {
            let list = TaskList::parse(&text);
            prop_assert_eq!(markdown::prose_text(&text).len(), text.len());
            prop_assert!(list.tasks.iter().all(|task| b" xX".contains(&text.as_bytes()[task.marker])));
            let _step = (list.select_tasks(&text), list.next_batch(None));
        }
    }

    #[test]
    fn ticks_change_one_byte(text in any_text(), id in 0..30_u32) {
        let id = TaskId::from_number(id).unwrap();
        let list = TaskList::parse(&text);
        let n_found = list.tasks.iter().filter(|task| task.id == id).count();
        let done = if found(&list, &id).is_some_and(|task| task.done) { TickState::Unticked } else { TickState::Ticked };
        match set_task_ticked(&text, &id, done) {
            Ok(flipped) => {
                prop_assert_eq!((n_found, flipped.len()), (1, text.len()));
                let changed: Vec<usize> = (0..text.len()).filter(|at| text.as_bytes()[*at] != flipped.as_bytes()[*at]).collect();
                prop_assert_eq!(changed, vec![found(&list, &id).unwrap().marker]);
                let mut expected = list;
                let task = expected.tasks.iter_mut().find(|task| task.id == id).unwrap();
                task.done = !task.done;
                prop_assert_eq!(TaskList::parse(&flipped), expected);
            }
            Err(_) => prop_assert_ne!(n_found, 1),
        }
    }

    #[test]
    fn appended_tasks_are_parsed_and_nothing_else_changes(
        text in any_text(), words in prop::collection::vec((".{1,20}", any::<bool>()), 1..4),
    ) {
        let gap = |(text, is_critical): &(String, bool)| ConvergenceGap {
            text: format!("a{text}"), source: format!("b{text}"), kind: GapKind::Missing, is_critical: *is_critical,
        };
        let gaps: Vec<ConvergenceGap> = words.iter().map(gap).collect();
        let before = TaskList::parse(&text);
        if let Ok(longer) = append_convergence(&text, &gaps) {
            prop_assert!(longer.starts_with(&text));
            let after = TaskList::parse(&longer);
            let n_before = before.tasks.len();
            prop_assert_eq!(&after.tasks[..n_before], &before.tasks[..]);
            let first = before.next_id().unwrap().number();
            for (at, task) in after.tasks[n_before..].iter().enumerate() {
                prop_assert_eq!(task.id.number() as usize, first as usize + at);
                prop_assert!(!task.done && after.phase_for(task).unwrap().kind == PhaseKind::Convergence);
            }
        }
    }
}

#[test]
fn list_that_exceeds_a_limit_is_rejected() {
    let tasks = |n: usize| (1..=n).map(|at| format!("- [ ] T{at:03} a\n")).collect::<String>();
    let phases = |n: usize| (1..=n).map(|at| format!("## Phase {at}: a\n")).collect::<String>();
    let line = |n: usize| format!("- [ ] T001 {}\n", "a".repeat(n - "- [ ] T001 ".len()));
    for (at, beyond, told) in [
        (tasks(5_000), tasks(5_001), "tasks.md has more than 5000 tasks; split it"),
        (phases(500), phases(501), "tasks.md has more than 500 phases; split it"),
        ("\n".repeat(50_000), "\n".repeat(50_001), "tasks.md has more than 50000 lines; split it"),
        (line(20_000), line(20_001), "tasks.md has more than 20000 bytes in a line; split it"),
    ] {
        assert!(TaskList::parse_checked(&at).is_ok(), "{told}");
        assert_eq!(TaskList::parse_checked(&beyond).unwrap_err().to_string(), told);
        let id = TaskId::from_number(1).unwrap();
        assert_eq!(set_task_ticked(&beyond, &id, TickState::Ticked).unwrap_err().to_string(), told);
        let gap = ConvergenceGap {
            text: "a".into(),
            source: "b".into(),
            kind: GapKind::Missing,
            is_critical: false,
        };
        assert_eq!(append_convergence(&beyond, &[gap]).unwrap_err().to_string(), told);
    }
}

#[test]
fn hostile_list_is_limited() {
    const BYTES: usize = 4 * 1024 * 1024;
    let many = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        (1..)
            .map(line)
            .take_while(|line| {
                let fits = text.len() + line.len() <= BYTES;
                if fits {
                    text.push_str(line);
                }
                fits
            })
            .for_each(drop);
        text
    };
    for (name, text) in [
        ("phases", many(&|at| format!("## Phase {at}: a\n- [ ] T{at:03} a\n"))),
        ("tasks", many(&|at| format!("- [ ] T{at:06} [P] a{at}.rs\n"))),
        ("labels", format!("- [ ] T001 {}", "[P] [US1] ".repeat(BYTES / 10))),
        ("fences", "```\n".repeat(BYTES / 4)),
        ("open fences", "- [ ] T001 a\n````\n```\n".repeat(BYTES / 24)),
        ("hashes", "#".repeat(BYTES)),
        ("headings", "# a\n".repeat(BYTES / 4)),
        ("comments", "<!--".repeat(BYTES / 4)),
        ("comments in text", "a <!-- `\n\n".repeat(BYTES / 10)),
        ("ticks", "`` ` ".repeat(BYTES / 5)),
        ("brackets", "- [ ] T001 [".repeat(BYTES / 12)),
        ("rules", "---\n".repeat(BYTES / 4)),
        ("empty", "\n".repeat(BYTES)),
        ("spaces", format!("- [ ] {}", " ".repeat(BYTES))),
        ("bullets", "- ".repeat(BYTES / 2)),
    ] {
        let list = TaskList::parse(&text);
        assert!(list.tasks.len() <= TASKS_MAX + 1 && list.phases.len() <= PHASES_MAX + 1, "{name}");
    }
}

#[test]
fn appended_task_is_one_line_that_hides_nothing() {
    let list = TaskList::parse("## Phase 1: a\u{1b}b\n- [ ] T001 Create \u{1b}[2Jpy\u{202e}project.toml\n");
    assert_eq!(list.tasks[0].text, "Create \u{fffd}[2Jpy\u{fffd}project.toml");
    assert_eq!(list.phases[0].title, "a\u{fffd}b");
}

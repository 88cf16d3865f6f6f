//! Pages of a Spec Kit project: any text is parsed without harm, and edits change only what they should.
//!
//! The input is a page; a line `=====` in it separates a checklist from its new version.
#![no_main]

use crow_core::FrontMatter;
use crow_speckit::{
    ReviewOutcome, TaskList, TickState, add_clarification, compare_reviewed, set_task_ticked,
};
use libfuzzer_sys::fuzz_target;

const MARK: char = '\u{feff}';

/// Returns the parts of a task list that do not depend on its position in the file.
fn shown(list: &TaskList) -> Vec<(String, bool, bool, usize, String)> {
    let task = |task: &crow_speckit::TaskItem| {
        (task.id.to_string(), task.done, task.parallel, task.line, task.text.clone())
    };
    list.tasks.iter().map(task).collect()
}

fn check_tasks(text: &str) {
    let list = TaskList::parse(text);
    for task in &list.tasks {
        assert!(matches!(text.as_bytes()[task.marker], b' ' | b'x' | b'X'), "{task:?}");
        let Ok(flipped) = set_task_ticked(text, &task.id, TickState::Ticked) else { continue };
        let n_differ = text.bytes().zip(flipped.bytes()).filter(|(one, other)| one != other).count();
        assert!(flipped.len() == text.len() && n_differ <= 1, "{flipped:?}");
        let again = TaskList::parse(&flipped);
        assert!(again.tasks.iter().any(|other| other.id == task.id && other.done), "{flipped:?}");
    }
    if !text.starts_with(MARK) {
        let marked = TaskList::parse(&format!("{MARK}{text}"));
        assert_eq!(shown(&marked), shown(&list), "a byte order mark changes what is read");
    }
}

fn check_front_matter(text: &str) {
    let front = FrontMatter::parse(text);
    assert!(text.ends_with(front.body));
    if !text.starts_with(MARK) {
        let marked = format!("{MARK}{text}");
        let marked = FrontMatter::parse(&marked);
        assert_eq!((marked.body, marked.get("description")), (front.body, front.get("description")));
    }
}

fn check_reviewed(before: &str, after: &str) {
    assert_eq!(compare_reviewed(before, before), ReviewOutcome::Unchanged);
    if let ReviewOutcome::BoxesRestored(text) = compare_reviewed(before, after) {
        assert_eq!(text.len(), after.len());
        assert_eq!(compare_reviewed(before, &text), ReviewOutcome::Unchanged);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_front_matter(text);
    check_tasks(text);
    let (before, after) = text.split_once("=====\n").unwrap_or((text, text));
    check_reviewed(before, after);
    drop(add_clarification(before, "2026-01-31", "Why?", after));
});

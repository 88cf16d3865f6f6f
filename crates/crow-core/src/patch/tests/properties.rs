use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;

/// The change of a line.
#[derive(Debug, Clone)]
enum LineChange {
    Keep,
    Remove,
    Replace(String),
    InsertAfter(String),
}

fn any_change() -> impl Strategy<Value = LineChange> {
    prop_oneof![
        3 => Just(LineChange::Keep),
        1 => Just(LineChange::Remove),
        1 => "[ ]{0,4}[a-z+*@-]{0,6}".prop_map(LineChange::Replace),
        1 => "[ ]{0,4}[a-z+*@-]{0,6}".prop_map(LineChange::InsertAfter),
    ]
}

/// The lines of a hunk that makes these changes, and the text afterwards.
fn to_hunk(lines: &[String], changes: &[LineChange]) -> (String, String) {
    let (mut hunk, mut after) = (String::new(), String::new());
    for (line, change) in lines.iter().zip(changes) {
        let (old, new) = match change {
            LineChange::Keep => (format!(" {line}\n"), vec![line]),
            LineChange::Remove => (format!("-{line}\n"), vec![]),
            LineChange::Replace(new) => (format!("-{line}\n+{new}\n"), vec![new]),
            LineChange::InsertAfter(new) => (format!(" {line}\n+{new}\n"), vec![line, new]),
        };
        hunk.push_str(&old);
        new.iter().for_each(|line| after.push_str(&format!("{line}\n")));
    }
    (hunk, after)
}

/// Lines that differ from each other, and their changes.
fn changed_lines() -> impl Strategy<Value = (Vec<String>, Vec<LineChange>)> {
    prop::collection::vec(("[ ]{0,4}[a-z]{0,5}", any_change()), 1..12).prop_map(|lines| {
        let numbered = lines.iter().enumerate().map(|(at, (line, _))| format!("{line}{at}")).collect();
        (numbered, lines.into_iter().map(|(_, change)| change).collect())
    })
}

fn apply(patch: &str, text: &str) -> Result<String, String> {
    let patch = ParsedPatch::parse(patch).map_err(|error| error.to_string())?;
    let contents = BTreeMap::from([("a".to_owned(), text.to_owned())]);
    let planned = plan_patch(&patch, &contents).map_err(|refusal| refusal.to_string())?;
    Ok(planned.into_iter().next().and_then(|file| file.new).unwrap_or_default())
}

/// The length of the longest common subsequence of the lines.
fn count_common_lines(before: &str, after: &str) -> usize {
    let after: Vec<&str> = after.lines().collect();
    let mut lengths = vec![0; after.len() + 1];
    for line in before.lines() {
        let previous = lengths.clone();
        for (index, other) in after.iter().enumerate() {
            lengths[index + 1] =
                if line == *other { previous[index] + 1 } else { previous[index + 1].max(lengths[index]) };
        }
    }
    lengths[after.len()]
}

fn is_change(change: &LineChange) -> bool {
    !matches!(change, LineChange::Keep)
}

proptest! {
    /// A patch gives what it says, as one hunk or one for each line, with either line ending.
    #[test]
    fn patch_gives_its_text((lines, changes) in changed_lines(), is_split in any::<bool>(), has_crlf in any::<bool>()) {
        prop_assume!(changes.iter().any(is_change));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (hunk, after) = to_hunk(&lines, &changes);
        prop_assume!(text != after);
        let hunks = match is_split {
            false => hunk,
            true => {
                let each = lines.iter().zip(&changes).filter(|(_, change)| is_change(change));
                let each = each.map(|(line, change)| to_hunk(std::slice::from_ref(line), std::slice::from_ref(change)).0);
                each.map(|hunk| format!("@@\n{hunk}")).collect()
            }
        };
        let patch = format!("*** Begin Patch\n*** Update File: a\n{hunks}*** End Patch\n");
        let ended = |text: &str| if has_crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        prop_assert_eq!(apply(&patch, &ended(&text)), Ok(ended(&after)));
    }

    /// Any text has an answer, and lines that no hunk removes stay in their order.
    #[test]
    fn unremoved_lines_stay(
        file in prop::collection::vec("[ \t]{0,2}[ab“\"]{0,2}", 0..8),
        hunk in prop::collection::vec("(@@|@@ )?[-+ ]?[ \t]{0,2}[ab\"]{0,2}", 0..8),
    ) {
        let patch = format!("*** Begin Patch\n*** Update File: a\n{}\n*** End Patch", hunk.join("\n"));
        let text = file.join("\n");
        let Ok(patched) = apply(&patch, &text) else { return Ok(()) };
        let n_removed = hunk.iter().filter(|line| line.starts_with('-')).count();
        let n_kept = count_common_lines(&text, &patched);
        prop_assert!(n_kept + n_removed >= text.lines().count(), "{:?} {:?}", text, patched);
    }

    #[test]
    fn any_text_has_an_answer(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: a|Delete File: a|Move to: b|End of File)|@@ ?|[-+ ]?[ab{\"<]{0,3}|\n){0,20}") {
        drop(apply(&text, "a\nb\n"));
        drop(apply(&format!("*** Begin Patch\n{text}\n*** End Patch"), "a\nb\n"));
        drop(shell_patch(&text));
    }
}

mod properties;
mod shell_commands;

use expect_test::{Expect, expect};

use super::*;

/// Applies a patch to files, each `NAME: content` with `|` for a line end, and shows what it changes.
#[track_caller]
fn check(files: &[&str], patch: &str, expected: &Expect) {
    expected.assert_eq(&show_plan(files, patch));
}

fn show_plan(files: &[&str], patch: &str) -> String {
    let contents = files.iter().map(|file| {
        let (name, text) = file.split_once(": ").expect("NAME: content");
        (name.to_owned(), text.replace('|', "\n"))
    });
    let patch = match ParsedPatch::parse(patch) {
        Ok(patch) => patch,
        Err(error) => return format!("no patch: {error}"),
    };
    match plan_patch(&patch, &contents.collect()) {
        Err(refusal) => format!("refused: {refusal}"),
        Ok(files) => {
            let show = |text: &Option<String>| {
                text.as_ref().map_or("-".to_owned(), |text| {
                    text.replace('\n', "|").replace('\r', "␍").replace('\u{feff}', "[BOM]")
                })
            };
            let shown = files.iter().map(|file| {
                let source =
                    file.source.as_ref().map_or_else(String::new, |source| format!(" (from {source})"));
                format!(
                    "{}{source}: {} => {} {:?}",
                    file.path,
                    show(&file.old),
                    show(&file.new),
                    file.matcher
                )
            });
            shown.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Puts the marks around sections.
fn patch(sections: &str) -> String {
    format!("*** Begin Patch\n{sections}\n*** End Patch")
}

#[test]
fn sections_add_delete_update_and_move() {
    check(
        &["a: one|two|three|", "b: old|", "c: same|x|"],
        &patch(
            "*** Add File: new/d\n+1\n+\n+2\n*** Delete File: b\n*** Update File: a\n@@\n one\n-two\n+2\n+2a\n three\n\
             *** Update File: c\n*** Move to: e\n@@\n-x\n+y",
        ),
        &expect![[r#"
            new/d: - => 1||2| Exact
            b: old| => - Exact
            a: one|two|three| => one|2|2a|three| Exact
            c: same|x| => - Exact
            e (from c): - => same|y| Exact"#]],
    );
    check(
        &["a: x|"],
        &patch("*** Update File: a\n*** Move to: b"),
        &expect![[r#"
        a: x| => - Exact
        b (from a): - => x| Exact"#]],
    );
    check(
        &["a: x|y|"],
        &patch("*** Update File: a\n-x\n+1\n*** Update File: a\n-y\n+2\n*** Delete File: b"),
        &expect!["refused: b does not exist; find its path, or create it with `*** Add File: b`"],
    );
    check(&["a: x|"], &patch("*** Delete File: a\n*** Add File: a\n+y"), &expect!["a: x| => y| Exact"]);
}

#[test]
fn files_that_exist_or_do_not_are_refused() {
    check(
        &["a: x|"],
        &patch("*** Add File: a\n+y"),
        &expect![
            "refused: a exists; change it with `*** Update File: a`, or delete it first in the same patch"
        ],
    );
    check(&["a: "], &patch("*** Add File: a\n+y"), &expect!["a:  => y| Exact"]);
    check(
        &[],
        &patch("*** Update File: a\n-x\n+y"),
        &expect!["refused: a does not exist; find its path, or create it with `*** Add File: a`"],
    );
    check(
        &[],
        &patch("*** Delete File: a"),
        &expect!["refused: a does not exist; find its path, or create it with `*** Add File: a`"],
    );
    check(
        &["a: x|", "b: y|"],
        &patch("*** Update File: a\n*** Move to: b"),
        &expect![
            "refused: b exists; change it with `*** Update File: b`, or delete it first in the same patch"
        ],
    );
    check(
        &["a: x|"],
        &patch("*** Update File: a\n-x\n+x"),
        &expect!["refused: it changes nothing: the files already have this content"],
    );
}

#[test]
fn text_around_a_patch_is_ignored() {
    let update = "*** Update File: a\n@@\n-x\n+y";
    let inner = patch(update);
    for text in [
        inner.clone(),
        format!("\n  {inner}  \n\n"),
        format!("```diff\n{inner}\n```"),
        format!("apply_patch <<'EOF'\n{inner}\nEOF\n"),
        format!("<<EOF\n{inner}\nEOF"),
        serde_json::json!({"input": inner}).to_string(),
        serde_json::json!({"patch": format!("<<\"PATCH\"\n{inner}\nPATCH")}).to_string(),
        format!("*** Begin Patch ***\n{update}\n*** End Patch ***"),
        inner.replace('\n', "\r\n"),
        format!("{update}\n*** End Patch"),
        "  *** Begin Patch\n  *** Update File: a\n@@\n-x\n+y\n *** End Patch".to_owned(),
    ] {
        assert_eq!(show_plan(&["a: x|"], &text), "a: x| => y| Exact", "{text}");
    }
    // Whatever a file says about patches is its text.
    check(
        &["a: *** End Patch|*** Begin Patch|"],
        &patch("*** Update File: a\n *** End Patch\n-*** Begin Patch\n+```"),
        &expect!["a: *** End Patch|*** Begin Patch| => *** End Patch|```| Exact"],
    );
}

#[test]
fn texts_that_are_no_patch_say_what_one_is() {
    check(
        &[],
        "",
        &expect![
            "no patch: there is no `*** Begin Patch`; a patch is: `*** Begin Patch`, a line such as `*** Update File: PATH`, hunks whose lines begin with a space, `+` or `-`, then `*** End Patch`"
        ],
    );
    check(
        &[],
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b",
        &expect![
            "no patch: there is no `*** Begin Patch`; a patch is: `*** Begin Patch`, a line such as `*** Update File: PATH`, hunks whose lines begin with a space, `+` or `-`, then `*** End Patch`"
        ],
    );
    check(
        &[],
        "*** Begin Patch\n*** Update File: a\n-x\n+y",
        &expect![
            "no patch: it does not end with `*** End Patch` and may be incomplete; send all of it again"
        ],
    );
    check(
        &[],
        "*** Begin Patch\n*** End Patch",
        &expect![
            "no patch: it changes no file; begin with `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`"
        ],
    );
    check(
        &[],
        &patch("-x\n+y"),
        &expect![
            "no patch: line 2 (`-x`) belongs to no file; begin with `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`"
        ],
    );
    check(
        &[],
        &patch("*** Add File: a\n+x\ny"),
        &expect!["no patch: line 4 (`y`) does not begin with `+`, as each line of an added file does"],
    );
    check(&[], &patch("*** Add File:\n+x"), &expect!["no patch: line 2 has no path"]);
    check(
        &[],
        &patch("*** Update File: a\n@@\n x"),
        &expect!["no patch: `*** Update File: a` has no lines to change"],
    );
    check(
        &[],
        &patch("*** Move to: a"),
        &expect![
            "no patch: line 2 (`*** Move to: a`) belongs to no file; begin with `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`"
        ],
    );
    let many: String = (0..=PATCH_FILES_MAX).map(|number| format!("*** Delete File: {number}\n")).collect();
    check(&[], &patch(&many), &expect!["no patch: it changes more than 100 files; send several patches"]);
}

#[test]
fn anchors_are_sought_one_after_the_other() {
    let file = "a: class A|  def f|    x|class B|  def f|    x|  def g|    x|";
    check(
        &[file],
        &patch("*** Update File: a\n@@ class B\n@@   def g\n-    x\n+    y"),
        &expect![
            "a: class A|  def f|    x|class B|  def f|    x|  def g|    x| => class A|  def f|    x|class B|  def f|    x|  def g|    y| Exact"
        ],
    );
    check(
        &[file],
        &patch("*** Update File: a\n@@ class B\n     x\n+    y"),
        &expect![
            "a: class A|  def f|    x|class B|  def f|    x|  def g|    x| => class A|  def f|    x|class B|  def f|    x|    y|  def g|    x| Exact"
        ],
    );
    // The line after `@@` is repeated, begins like this, or is closed.
    check(
        &[file],
        &patch("*** Update File: a\n@@ class B\n class B\n+  def e"),
        &expect![
            "a: class A|  def f|    x|class B|  def f|    x|  def g|    x| => class A|  def f|    x|class B|  def e|  def f|    x|  def g|    x| Exact"
        ],
    );
    check(
        &[file],
        &patch("*** Update File: a\n@@ def g @@\n-    x\n+    y"),
        &expect![
            "a: class A|  def f|    x|class B|  def f|    x|  def g|    x| => class A|  def f|    x|class B|  def f|    x|  def g|    y| Exact"
        ],
    );
    check(
        &[file],
        &patch("*** Update File: a\n@@ -4,2 +4,2 @@ class B\n   def f\n-    x\n+    y"),
        &expect![
            "a: class A|  def f|    x|class B|  def f|    x|  def g|    x| => class A|  def f|    x|class B|  def f|    y|  def g|    x| Exact"
        ],
    );
    check(
        &[file],
        &patch("*** Update File: a\n@@ class C\n-    x\n+    y"),
        &expect![
            "refused: a, hunk 1: `@@ class C` is no line of the file; write after `@@` a whole line of the file above the hunk, or nothing"
        ],
    );
    check(
        &[file],
        &patch("*** Update File: a\n@@ class\n@@ def h\n-    x\n+    y"),
        &expect![
            "refused: a, hunk 1: `@@ class` is no line of the file; write after `@@` a whole line of the file above the hunk, or nothing"
        ],
    );
}

#[test]
fn hunk_that_only_adds_follows_its_anchor_or_the_file() {
    check(&["a: 1|2|"], &patch("*** Update File: a\n@@ 1\n+1a"), &expect!["a: 1|2| => 1|1a|2| Exact"]);
    check(&["a: 1|2|"], &patch("*** Update File: a\n@@\n+3"), &expect!["a: 1|2| => 1|2|3| Exact"]);
    check(&["a: 1|2"], &patch("*** Update File: a\n+3"), &expect!["a: 1|2 => 1|2|3| Exact"]);
    check(&["a: "], &patch("*** Update File: a\n+1"), &expect!["a:  => 1| Exact"]);
}

#[test]
fn place_of_a_hunk_must_be_plain() {
    let file = "a: x|1|x|2|x|";
    check(
        &[file],
        &patch("*** Update File: a\n-x\n+y"),
        &expect![
            "refused: a, hunk 1: its lines are in more than one place (lines 1, 3, 5); write after `@@` a line above the right place, or add lines around them"
        ],
    );
    check(&[file], &patch("*** Update File: a\n@@ 1\n-x\n+y"), &expect!["a: x|1|x|2|x| => x|1|y|2|x| Exact"]);
    check(
        &[file],
        &patch("*** Update File: a\n 1\n@@\n-x\n+y"),
        &expect!["a: x|1|x|2|x| => x|1|y|2|x| Exact"],
    );
    check(
        &[file],
        &patch("*** Update File: a\n-x\n+y\n*** End of File"),
        &expect!["a: x|1|x|2|x| => x|1|x|2|y| Exact"],
    );
    check(
        &["a: x|1|"],
        &patch("*** Update File: a\n-x\n+y\n*** End of File"),
        &expect!["a: x|1| => y|1| Exact"],
    );
    check(
        &["a: 1|2|3|"],
        &patch("*** Update File: a\n-3\n+c\n@@\n-1\n+a"),
        &expect![
            "refused: a, hunk 2: its lines are at line 1, above an earlier hunk or its `@@` line; order the hunks as in the file"
        ],
    );
    check(
        &["a: 1|22|3|"],
        &patch("*** Update File: a\n 1\n-2\n 3"),
        &expect![[r#"
        refused: a, hunk 1: its lines are not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (90 % similar, the first difference is in line 2):
        1
        22
        3"#]],
    );
    // An exact place has priority over a loose one.
    check(&["a:   x|1|x|"], &patch("*** Update File: a\n-x\n+y"), &expect!["a:   x|1|x| =>   x|1|y| Exact"]);
}

#[test]
fn lines_are_compared_as_those_of_an_edit() {
    // Lines that are kept stay as they are in the file.
    check(
        &["a: “q”  |x\t|"],
        &patch("*** Update File: a\n \"q\"\n-x\n+y"),
        &expect!["a: “q”  |x	| => “q”  |y| Punctuation"],
    );
    check(
        &["a: if|    x|    z|"],
        &patch("*** Update File: a\n-  x\n+  if y\n+    x\n   z"),
        &expect!["a: if|    x|    z| => if|    if y|      x|    z| Indentation"],
    );
    check(
        &["a: 1||2|3|"],
        &patch("*** Update File: a\n 1\n 2\n-3\n+c"),
        &expect!["a: 1||2|3| => 1||2|c| BlankLines"],
    );
    check(&["a: 1|2|"], &patch("*** Update File: a\n 1\n\n-2\n+b"), &expect!["a: 1|2| => 1|b| BlankLines"]);
    // Without the blank before kept lines, and with the line numbers of a listing.
    check(
        &["a: f|    x|    y|"],
        &patch("*** Update File: a\nf\n    x\n-    y\n+    z"),
        &expect!["a: f|    x|    y| => f|    x|    z| Indentation"],
    );
    check(
        &["a: f|x|y|"],
        &patch("*** Update File: a\n      1\tf\n-     2\tx\n+     2\tz"),
        &expect!["a: f|x|y| => f|z|y| LineNumbers"],
    );
    check(&["a: 1||2|"], &patch("*** Update File: a\n@@ 1\n \n+a"), &expect!["a: 1||2| => 1||a|2| Exact"]);
}

#[test]
fn line_endings_and_the_last_line_are_kept() {
    let update = |hunks: &str| patch(&format!("*** Update File: a\n{hunks}"));
    check(&["a: 1\r|2\r|"], &update("-2\n+b\n+c"), &expect!["a: 1␍|2␍| => 1␍|b␍|c␍| Exact"]);
    check(&["a: 1|2"], &update("-2\n+b\n+c"), &expect!["a: 1|2 => 1|b|c Exact"]);
    check(&["a: 1|2"], &update(" 2\n+3"), &expect!["a: 1|2 => 1|2|3 Exact"]);
    check(&["a: 1|2|"], &update("-1\n-2"), &expect!["a: 1|2| =>  Exact"]);
    check(&["a: \u{feff}1|2|"], &update("-1\n+a"), &expect!["a: [BOM]1|2| => [BOM]a|2| Exact"]);
}

#[test]
fn empty_lines_stay_before_a_removed_last_line_without_an_ending() {
    check(&["a: x||y"], &patch("*** Update File: a\n x\n-y"), &expect!["a: x||y => x|| BlankLines"]);
    check(&["a: x||y"], &patch("*** Update File: a\n x\n \n-y"), &expect!["a: x||y => x|| Exact"]);
    check(&["a: x|  |y"], &patch("*** Update File: a\n x\n-y"), &expect!["a: x|  |y => x|   BlankLines"]);
    check(&["a: x|y"], &patch("*** Update File: a\n x\n-y"), &expect!["a: x|y => x Exact"]);
}

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::fixture::{fixture_project, mask_project_root};

#[track_caller]
fn check(registry: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(&[
        (".specify/presets/.registry", registry),
        (".specify/presets/zebra/preset.yml", ""),
        (".specify/presets/.hidden/preset.yml", ""),
        (".specify/presets/not an id/preset.yml", ""),
    ]);
    let said = match list_presets(&project) {
        Ok(presets) => presets.into_iter().map(|preset| preset.id).collect::<Vec<_>>().join(" "),
        Err(error) => mask_project_root(&project, &error.to_string()),
    };
    expect.assert_eq(&said);
}

#[test]
fn presets_are_sorted_by_priority_then_id() {
    check(
        r#"{"presets": {"d": {}, "b": {"priority": 3}, "a": {"priority": 30}, "c": {"priority": 0}}}"#,
        &expect!["b c d a"],
    );
    check(
        r#"{"presets": {"a": {"enabled": false}, "b": {"enabled": null}, "c": 7, "d": {"enabled": "no"}}}"#,
        &expect!["d"],
    );
}

#[test]
fn invalid_registry_falls_back_to_directories() {
    check("", &expect!["zebra"]);
    check(r#"{"presets": []}"#, &expect!["zebra"]);
    check("{}", &expect![""]);
}

#[test]
fn ids_that_are_paths_are_rejected() {
    check(
        r#"{"presets": {"../x": {}}}"#,
        &expect![[
            r#"$DIR/.specify/presets/.registry cannot be used: "../x" is not an id: ids have small letters, digits and hyphens"#
        ]],
    );
    check(
        r#"{"presets": {"/etc": {}}}"#,
        &expect![[
            r#"$DIR/.specify/presets/.registry cannot be used: "/etc" is not an id: ids have small letters, digits and hyphens"#
        ]],
    );
    check(
        r#"{"presets": {"": {}}}"#,
        &expect![[
            r#"$DIR/.specify/presets/.registry cannot be used: "" is not an id: ids have small letters, digits and hyphens"#
        ]],
    );
}

#[test]
fn priorities_are_numbers_from_one() {
    for (said, is) in [
        (json!(3), 3),
        (json!("4"), 4),
        (json!(5.9), 5),
        (json!(0), 10),
        (json!(-2), 10),
        (json!(true), 10),
        (json!("x"), 10),
        (json!("5.0"), 10),
        (json!(null), 10),
        (json!([1]), 10),
    ] {
        assert_eq!(parse_priority(Some(&said)), is, "{said}");
    }
    assert_eq!(parse_priority(None), 10);
}

#[test]
fn too_many_packages_are_rejected() {
    let ids: Vec<String> = (0..=INSTALLED_MAX).map(|n| format!(r#""p{n}": {{}}"#)).collect();
    check(
        &format!(r#"{{"presets": {{{}}}}}"#, ids.join(",")),
        &expect!["$DIR/.specify/presets cannot be used: more than 128 are installed"],
    );
}

#[test]
fn manifest_that_expands_without_end_is_an_error() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for text in [bomb, &deep, "\0", "%", "a: b: c", "- - -", "? ?", "!!python/object:os.system x", "<<: *x"] {
        let (_folder, project) = fixture_project(&[(".specify/presets/a/preset.yml", text)]);
        let preset = list_presets(&project).unwrap().remove(0);
        assert!(read_provided_entries(&project, &preset).is_err(), "{text}");
    }
}

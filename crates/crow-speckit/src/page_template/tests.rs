use std::fs;

use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{fixture_project, mask_project_root as plain};

const CORE: (&str, &str) = (".specify/templates/x.md", "CORE\n");
const OVERRIDE: (&str, &str) = (".specify/templates/overrides/x.md", "OVR\n");
const A: (&str, &str) = (".specify/presets/a/x.md", "A-TOP\n");
const B: (&str, &str) = (".specify/presets/b/x.md", "B<{CORE_TEMPLATE}>B\n");
const C: (&str, &str) = (".specify/presets/c/x.md", "C-BOTTOM\n");
const REGISTRY: (&str, &str) =
    (".specify/presets/.registry", r#"{"presets": {"c": {"priority": 20}, "a": {"priority": 5}, "b": {}}}"#);
const A_PREPENDS: (&str, &str) = (
    ".specify/presets/a/preset.yml",
    "provides: {templates: [{type: template, name: x, file: x.md, strategy: Prepend}]}",
);
const B_WRAPS: (&str, &str) = (
    ".specify/presets/b/preset.yml",
    "provides: {templates: [{type: template, name: x, file: x.md, strategy: wrap}]}",
);
const C_APPENDS: (&str, &str) = (
    ".specify/presets/c/preset.yml",
    "provides: {templates: [{type: template, name: x, file: x.md, strategy: append}]}",
);
const STACK: [(&str, &str); 8] = [CORE, A, B, C, REGISTRY, A_PREPENDS, B_WRAPS, C_APPENDS];

#[track_caller]
fn check(files: &[(&str, &str)], name: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(files);
    let said = match compose_page(&project, Some(&project.root().join("own")), name) {
        Ok(page) => format!("{:?}", page.text),
        Err(error) => format!("error: {}", plain(&project, &error.to_string())),
    };
    expect.assert_eq(&said);
}

#[track_caller]
fn check_layers(files: &[(&str, &str)], name: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(files);
    let layers = page_layers(&project, Some(&project.root().join("own")), name).unwrap();
    let line = |layer: &LayerInfo| {
        let file = layer.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let used = if layer.is_used { "used" } else { "-" };
        format!("{used} {} {} {}\n", layer.strategy.as_str(), layer.origin, plain(&project, &file))
    };
    expect.assert_eq(&layers.iter().map(line).collect::<String>());
}

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    // For a duplicate path, the later text wins.
    STACK.iter().chain(more).copied().collect()
}

#[test]
fn layers_compose_as_the_real_tool_does_it() {
    check(&STACK, "x", &expect![[r#""A-TOP\n\n\nB<CORE\n\n\nC-BOTTOM\n>B\n""#]]);
    let disabled = r#"{"presets": {"c": {"priority": 20}, "a": {"priority": 5}, "b": {"enabled": false}}}"#;
    check(&with(&[(REGISTRY.0, disabled)]), "x", &expect![[r#""A-TOP\n\n\nCORE\n\n\nC-BOTTOM\n""#]]);
    let replaces = C_APPENDS.1.replace("append", "replace");
    check(
        &with(&[(REGISTRY.0, disabled), (C_APPENDS.0, &replaces)]),
        "x",
        &expect![[r#""A-TOP\n\n\nC-BOTTOM\n""#]],
    );
    check(&with(&[OVERRIDE]), "x", &expect![[r#""OVR\n""#]]);
    check(
        &STACK[1..],
        "x",
        &expect!["error: x has layers that extend it but no base layer; add one that replaces"],
    );
    check(&[], "x", &expect!["error: there is no page template named x"]);
}

#[test]
fn broken_manifest_is_an_error_unless_a_stronger_layer_hides_it() {
    let broken = (C_APPENDS.0, "provides: {templates: [{type: template, name: x}]}");
    check(
        &with(&[broken]),
        "x",
        &expect![
            "error: $DIR/.specify/presets/c/preset.yml cannot be used: each template needs a type, a name and a file, and its strategy must be valid"
        ],
    );
    check(&with(&[broken, OVERRIDE]), "x", &expect![[r#""OVR\n""#]]);
    let no_yaml = (C_APPENDS.0, "provides: {templates: [");
    check(
        &with(&[no_yaml]),
        "x",
        &expect!["error: $DIR/.specify/presets/c/preset.yml cannot be used: line 1: unclosed bracket '['"],
    );
}

#[test]
fn broken_preset_registry_falls_back_to_directories() {
    let files = [CORE, (".specify/presets/.registry", "{"), (".specify/presets/b/templates/x.md", "B\n"), C];
    check(&files, "x", &expect![[r#""B\n""#]]);
}

#[test]
fn broken_extension_registry_is_an_error() {
    let files = [CORE, (".specify/extensions/.registry", "[]")];
    check(
        &files,
        "x",
        &expect![
            "error: $DIR/.specify/extensions/.registry cannot be used: it is not a registry of extensions"
        ],
    );
}

#[test]
fn extensions_are_sorted_by_priority_with_unregistered_ones() {
    let registry = r#"{"extensions": {"q": {"priority": true}, "r": {"priority": "2"}, "s": {"enabled": false, "priority": 1}}}"#;
    let files = [
        CORE,
        (".specify/extensions/.registry", registry),
        (".specify/extensions/p/x.md", "P\n"),
        (".specify/extensions/q/templates/x.md", "Q\n"),
        (".specify/extensions/r/x.md", "R\n"),
        (".specify/extensions/s/x.md", "S\n"),
    ];
    check(&files, "x", &expect![[r#""R\n""#]]);
    check_layers(
        &files,
        "x",
        &expect![[r#"
        used replace extension r .specify/extensions/r/x.md
        - replace extension p .specify/extensions/p/x.md
        - replace extension q .specify/extensions/q/templates/x.md
        - replace this project's templates .specify/templates/x.md
    "#]],
    );
}

#[test]
fn user_and_built_in_pages_are_the_base_without_a_project_page() {
    let own = ("own/spec-template.md", "OWN\n");
    let preset = (".specify/presets/a/spec-template.md", "A\n");
    let manifest = A_PREPENDS.1.replace(" x,", " spec-template,").replace("x.md", "spec-template.md");
    check(&[own], "spec-template", &expect![[r#""OWN\n""#]]);
    check(&[own, preset, (A_PREPENDS.0, &manifest)], "spec-template", &expect![[r#""A\n\n\nOWN\n""#]]);
    let files = [own, preset, (A_PREPENDS.0, &manifest), (".specify/templates/spec-template.md", "CORE\n")];
    check(&files, "spec-template", &expect![[r#""A\n\n\nCORE\n""#]]);
    check_layers(
        &files,
        "spec-template",
        &expect![[r#"
            used prepend preset a .specify/presets/a/spec-template.md
            used replace this project's templates .specify/templates/spec-template.md
            - replace your own directory $DIR/own/spec-template.md
            - replace Crow 
        "#]],
    );
}

#[test]
fn built_in_pages_begin_with_their_title() {
    let (_folder, project) = fixture_project(&[]);
    for name in page_names() {
        let text = compose_page(&project, None, name).unwrap().text;
        let text = split_front_matter(&text).1.trim_start();
        assert!(text.starts_with("# "), "{name}: {text}");
    }
}

#[test]
fn wrapping_layer_needs_a_placeholder_and_is_not_expanded_twice() {
    let twice = (B.0, "<{CORE_TEMPLATE}|{CORE_TEMPLATE}>");
    let core = (CORE.0, "{CORE_TEMPLATE}");
    check(&[core, twice, B_WRAPS], "x", &expect![[r#""<{CORE_TEMPLATE}|{CORE_TEMPLATE}>""#]]);
    check(
        &[CORE, (B.0, "no place"), B_WRAPS],
        "x",
        &expect![
            "error: $DIR/.specify/presets/b/x.md cannot be used: it wraps another layer but has no {CORE_TEMPLATE}"
        ],
    );
    let (large, many) = ("x".repeat(1 << 20), "{CORE_TEMPLATE}".repeat(5));
    check(
        &[(CORE.0, &large), (B.0, &many), B_WRAPS],
        "x",
        &expect![
            "error: $DIR/.specify/presets/b/x.md cannot be used: with it, the composed text has more than 4194304 bytes"
        ],
    );
}

#[test]
fn manifest_hides_the_default_paths_and_cannot_lead_out() {
    let named = |file: &str| format!("provides: {{templates: [{{type: template, name: x, file: {file}}}]}}");
    let gone = named("gone.md");
    check(&[CORE, A, (A_PREPENDS.0, &gone)], "x", &expect![[r#""CORE\n""#]]);
    for file in ["../x.md", "/etc/hostname", "a/../../x.md", r"..\x.md"] {
        let manifest = named(file);
        let (_folder, project) = fixture_project(&[CORE, A, (A_PREPENDS.0, &manifest)]);
        let error = compose_page(&project, None, "x").unwrap_err().to_string();
        assert!(error.ends_with("of x leads out of the preset"), "{error}");
    }
}

#[test]
fn invalid_names_are_rejected() {
    for name in ["", "../x", "/x", "x.md", "X", "a b", "x/y", &"x".repeat(65)] {
        let (_folder, project) = fixture_project(&[CORE]);
        let error = compose_page(&project, None, name).unwrap_err().to_string();
        assert!(error.starts_with("a page template has a name"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_project_are_not_followed() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.md"), "SECRET").unwrap();
    for place in ["templates", "presets/a", "extensions/a", "templates/overrides"] {
        let (_folder, project) = fixture_project(&[]);
        let link = project.specify_path(place);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(outside.path(), &link).unwrap();
        let error = compose_page(&project, None, "x").unwrap_err().to_string();
        assert!(error.contains("it leads out of .specify"), "{place}: {error}");
    }
    let (_folder, project) = fixture_project(&[("x.md", "IN"), CORE]);
    fs::remove_file(project.specify_path("templates/x.md")).unwrap();
    symlink(project.root().join("x.md"), project.specify_path("templates/x.md")).unwrap();
    assert!(compose_page(&project, None, "x").is_err());
    fs::remove_dir_all(project.specify_path("")).unwrap();
    symlink(outside.path(), project.root().join(".specify")).unwrap();
    fs::create_dir(outside.path().join("templates")).unwrap();
    fs::write(outside.path().join("templates/x.md"), "SECRET").unwrap();
    assert!(compose_page(&project, None, "x").is_err());
}

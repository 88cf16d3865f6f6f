use super::*;
use crate::fixture::{fixture_project, mask_project_root};
use crate::{FeaturePrerequisite, check_feature_prerequisites};

const SPEC: (&str, &str) = ("specs/001-a/spec.md", "# A");

fn asked<'a>(bound: Option<&'a Path>, variables: &'a SpeckitVariables) -> FeatureSelector<'a> {
    FeatureSelector { typed: None, session_dir: bound, variables, specs_root: &SpecsRoot::Auto }
}

fn told(project: &SpeckitProject, found: Result<(Feature, FeatureOrigin), SpeckitError>) -> String {
    match found {
        Ok((feature, origin)) => format!("{origin:?} {}", project.display_path(&feature.dir)),
        Err(error) => mask_project_root(project, &error.to_string()),
    }
}

#[test]
fn pointer_to_a_command_directory_is_rejected() {
    for (dir, expected) in [
        ("specs/001-a", "Pointer specs/001-a"),
        (".", "no feature can be stored"),
        ("specs/001-a/../..", "no feature can be stored"),
        (".git", "no feature can be stored"),
        (".crow", "no feature can be stored"),
        (".specify/memory", "no feature can be stored"),
        ("..", "no feature can be stored"),
        ("../x", "leads out of the project"),
    ] {
        let pointer = format!("{{\"feature_directory\": {dir:?}}}");
        let (_folder, project) = fixture_project(&[SPEC, (".specify/feature.json", &pointer)]);
        let told = told(&project, resolve_feature(&project, asked(None, &SpeckitVariables::default())));
        assert!(told.contains(expected), "{dir}: {told}");
    }
}

#[test]
fn variable_may_lead_outside_but_not_to_a_command_directory() {
    let (_folder, project) = fixture_project(&[SPEC]);
    for (dir, expected) in [
        ("/elsewhere/001-x", "Variable /elsewhere/001-x"),
        (".git", "cannot be used"),
        (".", "cannot be used"),
    ] {
        let variables =
            SpeckitVariables { feature_directory: Some(dir.to_owned()), ..SpeckitVariables::default() };
        let told = told(&project, resolve_feature(&project, asked(None, &variables)));
        assert!(told.contains(expected), "{dir}: {told}");
    }
    let none = SpeckitVariables::default();
    for name in [".git", ".", ".crow"] {
        std::fs::create_dir_all(project.root().join(name)).unwrap();
        let named = FeatureSelector { typed: Some(name), ..asked(None, &none) };
        assert!(resolve_feature(&project, named).is_err(), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn session_feature_is_used_while_its_directory_is_unchanged() {
    let (_folder, project) = fixture_project(&[SPEC, ("specs/002-b/spec.md", "# B")]);
    let outside = tempfile::tempdir().unwrap();
    let bound = project.root().join("specs/002-b");
    let none = SpeckitVariables::default();
    let check = |expected: &str| {
        let told = told(&project, resolve_feature(&project, asked(Some(&bound), &none)));
        assert!(told.contains(expected), "{told}");
    };
    check("Session specs/002-b");
    std::fs::remove_dir_all(&bound).unwrap();
    check("Only specs/001-a");
    std::os::unix::fs::symlink(outside.path(), &bound).unwrap();
    check("it leads out of the project; select another with /speckit use");
    let elsewhere = outside.path().canonicalize().unwrap();
    let found = resolve_feature(&project, asked(Some(&elsewhere), &none)).unwrap();
    assert_eq!(found, (Feature::from_dir(elsewhere), FeatureOrigin::Session), "the person named it");
}

#[cfg(unix)]
#[test]
fn link_to_the_root_is_not_a_feature() {
    let (_folder, project) = fixture_project(&[SPEC]);
    std::os::unix::fs::symlink("..", project.root().join("specs/002-up")).unwrap();
    let names: Vec<String> =
        list_features(&project, &SpecsRoot::Auto).unwrap().into_iter().map(|feature| feature.name).collect();
    assert_eq!(names, ["001-a"]);
}

#[cfg(unix)]
#[test]
fn page_path_stays_in_the_feature_directory() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("rc"), "mine").unwrap();
    for page in ["spec.md", "plan.md", "research.md", "checklists/ux.md", "contracts"] {
        let (_folder, project) = fixture_project(&[SPEC, ("specs/001-a/checklists/a.md", "")]);
        let feature = Feature::from_dir(project.root().join("specs/001-a"));
        assert!(
            feature.page_path(page).is_ok()
                && check_feature_prerequisites(&project, &feature, &[FeaturePrerequisite::SPEC]).is_ok()
        );
        let path = feature.dir.join(page);
        std::fs::remove_file(&path).ok();
        symlink(outside.path().join("rc"), &path).unwrap();
        for error in [
            feature.page_path(page).unwrap_err(),
            check_feature_prerequisites(&project, &feature, &[]).unwrap_err(),
        ] {
            assert!(error.to_string().contains("leads out of the feature's directory"), "{error}");
        }
        assert!(feature.read_page(page).is_err() && SpeckitProject::write_file(&path, "x").is_err());
    }
    let (_folder, project) = fixture_project(&[SPEC]);
    let feature = Feature::from_dir(project.root().join("specs/001-a"));
    symlink("spec.md", feature.plan_path()).unwrap();
    assert_eq!(feature.read_page("plan.md").unwrap().as_deref(), Some("# A"));
    for name in ["", "../x", "/etc/passwd", "."] {
        assert!(feature.page_path(name).is_err(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("rc")).unwrap(), "mine");
}

#[test]
fn name_is_displayed_without_control_characters() {
    let feature = Feature::from_dir(PathBuf::from("specs/002-y\u{1b}[2J\n# x"));
    assert_eq!(feature.name, "002-y\u{fffd}[2J # x");
    let project = SpeckitProject::from_root("/p");
    assert_eq!(project.display_path(Path::new("/p/a\u{202e}b\nc")), "a\u{fffd}b c");
    let error = SpeckitError::invalid_file(Path::new("a\u{1b}"), "b\nc").to_string();
    assert_eq!(error, "a\u{fffd} cannot be used: b c");
}

#[test]
fn checklist_that_is_too_large_or_has_an_invisible_name_is_rejected() {
    let long = "\n".repeat(60_000);
    let (_folder, project) = fixture_project(&[SPEC, ("specs/001-a/tasks.md", &long)]);
    let feature = Feature::from_dir(project.root().join("specs/001-a"));
    let error = check_feature_prerequisites(&project, &feature, &[FeaturePrerequisite::TASKS])
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("tasks.md has more than 50000 lines; split it"), "{error}");
    std::fs::create_dir(feature.checklists_dir()).unwrap();
    for (name, text, told) in [
        ("a\u{202e}.md", String::new(), "invisible characters; rename it"),
        ("a.md", "- [ ] a\n".repeat(140_000), "bytes of checklists; remove some"),
    ] {
        let path = feature.checklists_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let error = crate::checklist_facts(&feature).unwrap_err().to_string();
        assert!(error.ends_with(told), "{error}");
        std::fs::remove_file(path).unwrap();
    }
}

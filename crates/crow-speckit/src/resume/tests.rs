use crate::fixture::{fixture_project, mask_project_root};
use crate::{FeatureNumbering, NewFeature, PageTemplate, SpecsLink, SpecsRoot, create_feature};

use super::*;

fn pages(name: &str) -> Result<PageTemplate, SpeckitError> {
    let text = match name {
        "spec-template" => "# [FEATURE NAME]\n\n**Created**: [DATE] ([DATE])\n**Input**: $ARGUMENTS\n",
        _ => "- [ ] A [DATE]\n",
    };
    Ok(PageTemplate { name: name.to_owned(), text: text.to_owned() })
}

fn now(day: &str) -> jiff::Zoned {
    format!("{day}T03:04:05[UTC]").parse().unwrap()
}

/// Creates a feature with this description on 2026-01-02 and returns it with its project.
fn made(description: &str) -> (tempfile::TempDir, SpeckitProject, Feature) {
    let (directory, project) = fixture_project(&[]);
    let new = NewFeature {
        description,
        short_name: Some("a"),
        numbering: FeatureNumbering::Next,
        dir: None,
        specs_root: &SpecsRoot::Auto,
        specs_link: SpecsLink::Off,
        now: &now("2026-01-02"),
    };
    let feature = create_feature(&project, &new, &pages).unwrap().feature;
    (directory, project, feature)
}

/// Overwrites the spec and checks whether the description still matches it.
#[track_caller]
fn check(description: &str, edit: impl Fn(&str) -> String, expected: bool) {
    let (_folder, _project, feature) = made("sort  photos\nby [DATE]");
    let spec = fs::read_to_string(feature.spec_path()).unwrap();
    fs::write(feature.spec_path(), edit(&spec)).unwrap();
    assert_eq!(is_untouched(&feature, description, &pages).unwrap(), expected, "{}", edit(&spec));
}

#[test]
fn unwritten_spec_is_resumed_by_the_same_description() {
    let words = "sort photos by [DATE]";
    check(words, str::to_owned, true);
    check(words, |spec| spec.replace("2026-01-02", "1999-12-31"), true);
    check("sort other photos", str::to_owned, false);
    check(words, |spec| format!("{spec}\n"), false);
    check(words, |spec| spec.replace("# A", "# B"), false);
    check(words, |spec| spec.replace("2026-01-02", "yesterday!"), false);
    check(words, |spec| spec.replacen("2026-01-02", "", 1), false);
    check(words, |spec| spec.replacen("2026-01-02", "é", 1), false);
    check(words, |_| String::new(), false);
    // Typed text is never taken for the date.
    check("sort photos by 2026-01-02", str::to_owned, false);
    check("sort photos by \0", |spec| spec.replace("[DATE]", "2026-01-02"), false);
}

#[test]
fn feature_without_a_spec_is_resumed_by_any_description() {
    let (_folder, _project, feature) = made("sort photos");
    fs::remove_file(feature.spec_path()).unwrap();
    assert!(is_untouched(&feature, "something else", &pages).unwrap());
}

#[test]
fn missing_pages_are_added_and_nothing_else_changes() {
    let (_folder, project, feature) = made("sort photos");
    let list = feature.checklists_dir().join("requirements.md");
    let take_up = || {
        let made = resume_feature(&project, &feature, "sort photos", &now("2026-05-06"), &pages).unwrap();
        made.iter()
            .map(|path| mask_project_root(&project, &path.display().to_string()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(take_up(), "");
    let dir = mask_project_root(&project, &feature.dir.display().to_string());
    fs::remove_file(feature.spec_path()).unwrap();
    fs::write(&list, "mine").unwrap();
    assert_eq!(take_up(), format!("{dir}/spec.md"));
    assert_eq!(fs::read_to_string(&list).unwrap(), "mine");
    let spec = fs::read_to_string(feature.spec_path()).unwrap();
    assert_eq!(spec, "# A\n\n**Created**: 2026-05-06 (2026-05-06)\n**Input**: sort photos\n");
    fs::remove_dir_all(feature.checklists_dir()).unwrap();
    assert_eq!(take_up(), format!("{dir}/checklists/requirements.md"));
    fs::remove_dir_all(&feature.dir).unwrap();
    assert_eq!(take_up(), format!("{dir}/spec.md {dir}/checklists/requirements.md"));
}

#[test]
fn page_that_cannot_be_composed_is_an_error_before_any_write() {
    let (_folder, project, feature) = made("sort photos");
    fs::remove_dir_all(&feature.dir).unwrap();
    let no_list = |name: &str| match name {
        "requirements-template" => Err(SpeckitError::Invalid("no".to_owned())),
        _ => pages(name),
    };
    resume_feature(&project, &feature, "sort photos", &now("2026-05-06"), &no_list).unwrap_err();
    assert!(!feature.dir.exists());
}

#[test]
#[cfg(unix)]
fn pages_are_not_written_through_a_link_out_of_the_project() {
    let (_folder, project, feature) = made("sort photos");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir_all(&feature.dir).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &feature.dir).unwrap();
    resume_feature(&project, &feature, "sort photos", &now("2026-05-06"), &pages).unwrap_err();
    assert!(elsewhere.path().read_dir().unwrap().next().is_none());
}

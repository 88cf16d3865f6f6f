//! Creating features.

use std::fs;
use std::sync::Barrier;
use std::thread;

use crow_speckit::{
    CreatedFeature, FeatureNumbering, NewFeature, SpeckitError, SpecsLink, SpecsRoot, create_feature,
    list_features, preview_feature,
};
use expect_test::{Expect, expect};

use super::{Disk, now, pages};

/// Calls a function with the request that the words describe: `name=`, `number=`, `time`, `dir=`, `root=`, `nolink`;
/// the rest is the description.
fn new_feature<T>(words: &str, act: impl FnOnce(&NewFeature<'_>) -> T) -> T {
    const OPTIONS: [&str; 6] = ["name=", "number=", "time", "dir=", "root=", "nolink"];
    let option = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name));
    let told = words.split(' ').filter(|word| !OPTIONS.iter().any(|option| word.starts_with(option)));
    let description = told.collect::<Vec<_>>().join(" ");
    let numbering = match (option("number="), option("time")) {
        (Some(number), _) => FeatureNumbering::Prefer(number.parse().unwrap()),
        (None, Some(_)) => FeatureNumbering::Timestamp,
        (None, None) => FeatureNumbering::Next,
    };
    act(&NewFeature {
        description: &description,
        short_name: option("name="),
        numbering,
        dir: option("dir="),
        specs_root: &option("root=").map_or(Ok(SpecsRoot::Auto), SpecsRoot::parse).unwrap(),
        specs_link: if option("nolink").is_some() { SpecsLink::Off } else { SpecsLink::Auto },
        now: &now(),
    })
}

/// Creates a feature in a project with these files and prints the files afterwards.
#[track_caller]
fn check_create(things: &str, words: &str, expected: &Expect) {
    let disk = Disk::new(things);
    let before = disk.tree();
    let show = |made: CreatedFeature| {
        let dir = disk.project.display_path(&made.feature.dir);
        made.notes.iter().fold(dir, |told, note| format!("{told}\nnote: {note}"))
    };
    let foretold = new_feature(words, |new| preview_feature(&disk.project, new).map(|made| made.feature));
    assert_eq!(disk.tree(), before, "telling the name wrote something");
    let made = new_feature(words, |new| create_feature(&disk.project, new, &pages));
    if let (Ok(foretold), Ok(made)) = (&foretold, &made) {
        assert_eq!(foretold.name, made.feature.name);
    }
    let own = [".specify/crow/.gitignore: *\n", ".specify/crow/lock: \n"];
    let tree = own.iter().fold(disk.tree(), |tree, line| tree.replace(line, ""));
    expected.assert_eq(&format!("{}\n{tree}", disk.told(made, show)));
}

#[test]
fn feature_of_a_new_project_is_visible_in_specs() {
    check_create(
        "",
        "name=photo-albums sort photos",
        &expect![[r#"
        .specify/specs/001-photo-albums
        .specify/specs/001-photo-albums/checklists/requirements.md: requirements-template
        .specify/specs/001-photo-albums/spec.md: # Photo albums 001-photo-albums 2026-01-02 sort photos
        specs -> .specify/specs
    "#]],
    );
    check_create(
        "",
        "nolink sort my photos",
        &expect![[r#"
        .specify/specs/001-sort-photos
        .specify/specs/001-sort-photos/checklists/requirements.md: requirements-template
        .specify/specs/001-sort-photos/spec.md: # Sort photos 001-sort-photos 2026-01-02 sort my photos
    "#]],
    );
}

#[test]
fn feature_is_created_next_to_existing_ones() {
    let check = |things: &str, expected: &str| {
        let disk = Disk::new(things);
        let made = new_feature("sort photos", |new| create_feature(&disk.project, new, &pages));
        assert_eq!(
            disk.told(made, |made| disk.project.display_path(&made.feature.dir)),
            expected,
            "{things}"
        );
    };
    check("specs/003-x/", "specs/004-sort-photos");
    check(".specify/init-options.json={}", "specs/001-sort-photos");
    check(
        ".specify/specs/ specs->.specify/specs .specify/init-options.json={}",
        ".specify/specs/001-sort-photos",
    );
    check("specs/ .specify/specs->../specs specs/002-x/", "specs/003-sort-photos");
    check("specs/003-x/ .specify/specs/007-y/", "specs/008-sort-photos");
    check("specs/003-x/ specs/004-sort-photos=file", "specs/005-sort-photos");
}

#[test]
fn existing_specs_directory_is_reported() {
    check_create(
        "specs/rspec.rb=x",
        "sort photos",
        &expect![[r#"
        .specify/specs/001-sort-photos
        note: another file is named specs: programs that look only into specs/ do not see the features in .specify/specs/ and count from 001
        .specify/specs/001-sort-photos/checklists/requirements.md: requirements-template
        .specify/specs/001-sort-photos/spec.md: # Sort photos 001-sort-photos 2026-01-02 sort photos
        specs/rspec.rb: x
    "#]],
    );
}

#[test]
fn taken_number_is_reported() {
    check_create(
        "specs/003-x/",
        "number=3 sort photos",
        &expect![[r#"
        specs/004-sort-photos
        note: the number 003 is taken; 004 is used
        specs/004-sort-photos/checklists/requirements.md: requirements-template
        specs/004-sort-photos/spec.md: # Sort photos 004-sort-photos 2026-01-02 sort photos
    "#]],
    );
    check_create(
        "specs/003-x/",
        "time sort photos",
        &expect![[r#"
        specs/20260102-030405-sort-photos
        specs/20260102-030405-sort-photos/checklists/requirements.md: requirements-template
        specs/20260102-030405-sort-photos/spec.md: # Sort photos 20260102-030405-sort-photos 2026-01-02 sort photos
    "#]],
    );
}

#[test]
fn invalid_request_writes_nothing() {
    check_create(
        "",
        " ",
        &expect![[r#"
        error: the description is missing; describe what to build and why
    "#]],
    );
    check_create(
        "",
        "!?",
        &expect![[r#"
        error: the name has no letters or digits; choose one with --short-name, such as user-auth
    "#]],
    );
    check_create(
        "../elsewhere/ specs->../elsewhere .specify/init-options.json={}",
        "sort photos",
        &expect![[r#"
            error: $DIR/project/specs cannot be used: a link in it leads out of the project; replace it with a directory, or set speckit.specs_root
            .specify/init-options.json: {}
            specs -> ../elsewhere
        "#]],
    );
    check_create(
        "specs/001-x/ ../elsewhere/ .specify/crow->../../elsewhere",
        "sort photos",
        &expect![[r#"
            error: $DIR/project/.specify/crow cannot be used: a link in it leads out of the project
            .specify/crow -> ../../elsewhere
        "#]],
    );
}

#[test]
fn given_directory_is_used_unchanged() {
    check_create(
        "",
        "dir=docs/albums/ sort photos",
        &expect![[r#"
        docs/albums
        docs/albums/checklists/requirements.md: requirements-template
        docs/albums/spec.md: # Albums albums 2026-01-02 sort photos
    "#]],
    );
    check_create(
        "docs/albums/spec.md=mine",
        "dir=docs/albums sort photos",
        &expect![[r#"
        error: docs/albums has a spec already; choose another directory
        docs/albums/spec.md: mine
    "#]],
    );
    check_create(
        "../elsewhere/ docs->../elsewhere",
        "dir=docs/albums sort photos",
        &expect![[r#"
        error: $DIR/project/docs/albums/checklists cannot be used: a link in it leads out of the project
        docs -> ../elsewhere
    "#]],
    );
    check_create(
        "specs/001-x/",
        "root=features sort photos",
        &expect![[r#"
        features/002-sort-photos
        features/002-sort-photos/checklists/requirements.md: requirements-template
        features/002-sort-photos/spec.md: # Sort photos 002-sort-photos 2026-01-02 sort photos
    "#]],
    );
}

#[test]
fn page_that_cannot_be_composed_is_an_error_before_any_write() {
    let disk = Disk::new("");
    let broken = |name: &str| match name {
        "requirements-template" => Err(SpeckitError::Invalid("no page".to_owned())),
        _ => pages(name),
    };
    let made = new_feature("sort photos", |new| create_feature(&disk.project, new, &broken));
    assert_eq!(disk.told(made, |_| "made".to_owned()), "error: no page");
    assert_eq!(fs::read_dir(disk.project.root()).unwrap().count(), 0);
}

#[test]
fn concurrent_features_never_share_a_number() {
    const N: u64 = 24;
    let disk = Disk::new("");
    let start = Barrier::new(usize::try_from(N).unwrap());
    thread::scope(|scope| {
        for n in 0..N {
            let (disk, start) = (&disk, &start);
            scope.spawn(move || {
                start.wait();
                new_feature(&format!("feature called{n}"), |new| {
                    create_feature(&disk.project, new, &pages).unwrap()
                })
            });
        }
    });
    let features = list_features(&disk.project, &SpecsRoot::Auto).unwrap();
    let numbers: Vec<Option<u64>> = features.iter().map(|feature| feature.number).collect();
    assert_eq!(numbers, (1..=N).map(Some).collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn lock_that_is_not_a_file_is_an_error() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let disk = Disk::new("");
    let folder = disk.project.specify_path("crow");
    fs::create_dir_all(&folder).unwrap();
    mkfifoat(CWD, folder.join("lock"), Mode::RWXU).unwrap();
    let error = new_feature("sort photos", |new| create_feature(&disk.project, new, &pages)).unwrap_err();
    assert!(error.to_string().ends_with("it is not a file; remove it"), "{error}");
    fs::remove_file(folder.join("lock")).unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.join("lock")).unwrap();
    assert!(new_feature("sort photos", |new| create_feature(&disk.project, new, &pages)).is_err());
    assert!(!folder.join("elsewhere").exists());
}

#[test]
fn feature_is_not_created_in_a_command_directory() {
    for dir in [".", ".git/x", ".crow", "specs/..", ".specify/memory/x"] {
        let disk = Disk::new("");
        let made =
            new_feature(&format!("dir={dir} sort photos"), |new| create_feature(&disk.project, new, &pages));
        assert!(made.unwrap_err().to_string().contains("choose another directory"), "{dir}");
    }
}

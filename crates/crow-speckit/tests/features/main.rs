//! Features on disk: finding the project, selecting the feature, creating a new one.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod create;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crow_speckit::{
    Feature, FeaturePrerequisite, FeatureSelector, PageTemplate, SpeckitError, SpeckitProject,
    SpeckitVariables, SpecsRoot, WorkflowCommand, check_feature_prerequisites, init_project, list_docs,
    list_features, resolve_feature, resolve_specs_root, setup_plan, setup_tasks, step_definition,
    write_pointer,
};

/// A directory that contains a project, so that links can lead out of it.
struct Disk {
    folder: tempfile::TempDir,
    project: SpeckitProject,
}

impl Disk {
    /// Creates what the words describe: `a/` is a directory, `a=text` a file, `a->b` a link; `%` is a space and `~` a
    /// line break.
    fn new(things: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let disk = Self { folder, project: SpeckitProject::from_root(root) };
        disk.add(things);
        disk
    }

    fn add(&self, things: &str) {
        let at = |name: &str| {
            let path = self.project.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        for thing in things.split_whitespace() {
            if let Some((link, to)) = thing.split_once("->") {
                symlink(to, at(link)).unwrap();
            } else if let Some((file, text)) = thing.split_once('=') {
                fs::write(at(file), text.replace('%', " ").replace('~', "\n")).unwrap();
            } else {
                fs::create_dir_all(at(thing)).unwrap();
            }
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.root().join(name)).unwrap_or_default()
    }

    /// Lists every file and link of the project.
    fn tree(&self) -> String {
        let mut lines = Vec::new();
        let mut folders = vec![self.project.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let shown = self.project.display_path(&path);
                if path.is_symlink() {
                    lines.push(format!("{shown} -> {}\n", fs::read_link(&path).unwrap().display()));
                } else if path.is_dir() {
                    folders.push(path);
                } else {
                    lines.push(format!("{shown}: {}\n", fs::read_to_string(&path).unwrap().trim_end()));
                }
            }
        }
        lines.sort();
        lines.concat()
    }

    /// Formats the result, or the error with its hint.
    fn told<T>(&self, result: Result<T, SpeckitError>, show: impl Fn(T) -> String) -> String {
        let text = match result {
            Ok(found) => show(found),
            Err(SpeckitError::MissingPrerequisite { reason: why, command: next }) => {
                format!("unmet: {why}; {}", next.map(|next| next.to_string()).unwrap_or_default())
            }
            Err(error) => format!("error: {error}"),
        };
        text.replace(&fs::canonicalize(self.folder.path()).unwrap().display().to_string(), "$DIR")
    }
}

fn pages(name: &str) -> Result<PageTemplate, SpeckitError> {
    let text = match name {
        "spec-template" => "# [FEATURE NAME] [###-feature-name] [DATE] $ARGUMENTS",
        "plan-template" => "# [FEATURE] [DATE]",
        _ => name,
    };
    Ok(PageTemplate { name: name.to_owned(), text: text.to_owned() })
}

fn now() -> jiff::Zoned {
    "2026-01-02T03:04:05[UTC]".parse().unwrap()
}

/// Selects the feature in a project with these files; the words are `named=`, `bound=` and `variable=`.
#[track_caller]
fn check_resolve(things: &str, words: &str, expected: &str) {
    let disk = Disk::new(things);
    let option = |name: &str| words.split_whitespace().find_map(|word| word.strip_prefix(name));
    let variables = SpeckitVariables {
        feature_directory: option("variable=").map(str::to_owned),
        ..SpeckitVariables::default()
    };
    let asked = FeatureSelector {
        typed: option("named="),
        session_dir: option("bound=").map(Path::new),
        variables: &variables,
        specs_root: &SpecsRoot::Auto,
    };
    let told = disk.told(resolve_feature(&disk.project, asked), |(feature, origin)| {
        format!("{} by {origin:?}", disk.project.display_path(&feature.dir))
    });
    assert_eq!(told, expected, "{things}");
}

const POINTED: &str = r#".specify/feature.json={"feature_directory":"specs/002-b","x":1} specs/001-a/ specs/002-b/ specs/003-c/"#;

#[test]
fn selection_uses_the_highest_precedence() {
    check_resolve(POINTED, "named=1 bound=specs/003-c variable=specs/002-b", "specs/001-a by Typed");
    check_resolve(POINTED, "bound=specs/003-c variable=specs/001-a", "specs/003-c by Session");
    check_resolve(POINTED, "variable=specs/009-new/", "specs/009-new by Variable");
    check_resolve(POINTED, "", "specs/002-b by Pointer");
    check_resolve("specs/001-a/", "", "specs/001-a by Only");
    check_resolve("", "", "unmet: the project has no feature yet; /speckit.specify");
    check_resolve(
        "specs/001-a/ .specify/specs/002-b/",
        "",
        "error: no feature is selected; select one with /speckit use or --feature: 001-a, 002-b",
    );
}

#[test]
fn feature_is_selected_by_number_name_or_directory() {
    check_resolve(POINTED, "named=003", "specs/003-c by Typed");
    check_resolve(POINTED, "named=003-c", "specs/003-c by Typed");
    check_resolve(POINTED, "named=specs/001-a/", "specs/001-a by Typed");
    check_resolve(
        POINTED,
        "named=4",
        "error: there is no feature \"4\"; select one with /speckit use or --feature: 001-a, 002-b, 003-c",
    );
    check_resolve(
        "specs/001-a/ .specify/specs/001-b/",
        "named=1",
        "error: several features have this number; select one with /speckit use or --feature: 001-a, 001-b",
    );
    check_resolve("../elsewhere/", "named=../elsewhere", "../elsewhere by Typed");
    check_resolve("", "named=x", "error: there is no feature \"x\"; create one with /speckit.specify");
}

#[test]
fn branch_selects_the_feature_without_a_pointer() {
    const TWO: &str = "specs/001-a/ specs/002-b/";
    let unclear = "error: no feature is selected; select one with /speckit use or --feature: 001-a, 002-b";
    check_resolve(&format!("{TWO} .git/HEAD=ref:%refs/heads/feat/002-other~"), "", "specs/002-b by Branch");
    check_resolve(&format!("{TWO} .git/HEAD=ref:%refs/heads/main"), "", unclear);
    check_resolve(&format!("{TWO} .git/HEAD=ref:%refs/heads/009-x"), "", unclear);
    check_resolve(&format!("{TWO} .git=nothing"), "", unclear);
    let worktree = format!("{TWO} .git=gitdir:%../tree~ ../tree/HEAD=ref:%refs/heads/001-x");
    check_resolve(&worktree, "", "specs/001-a by Branch");
    check_resolve(
        "specs/001-a/ specs/001-b/ .git/HEAD=ref:%refs/heads/001-x",
        "",
        "error: several features match the branch; select one with /speckit use or --feature: 001-a, 001-b",
    );
    check_resolve(
        "specs/20260101-120000-a/ specs/002-b/ .git/HEAD=ref:%refs/heads/20260101-120000-a",
        "",
        "specs/20260101-120000-a by Branch",
    );
}

#[test]
fn pointer_of_other_programs_is_parsed() {
    let pointed = |text: &str| format!(".specify/feature.json={text} specs/001-a/ specs/002-b/");
    let check = |text: &str, expected: &str| check_resolve(&pointed(text), "", expected);
    check(r#"{"feature_directory":".\\specs\\001-a\\"}"#, "specs/001-a by Pointer");
    check("\u{feff}{\"feature_directory\":\"specs//001-a/\"}", "specs/001-a by Pointer");
    check(r#"{"feature_directory":"specs/008-gone"}"#, "specs/008-gone by Pointer");
    let broken = |why: &str| {
        let file = "error: $DIR/project/.specify/feature.json cannot be used";
        format!("{file}: {why}; select a feature with /speckit use, or delete the file")
    };
    for text in ["null", "7", "\"\"", "[]"] {
        let text = format!("{{\"feature_directory\":{text}}}");
        check(&text, &broken("its feature_directory is not the name of a directory"));
    }
    check("{}", &broken("it has no feature_directory"));
    check("[]", &broken("it has no feature_directory"));
    check("{", &broken("it is not JSON"));
    check("", &broken("it is not JSON"));
}

#[test]
fn pointer_never_leads_out_of_the_project() {
    let out = |dir: &str| format!(r#".specify/feature.json={{"feature_directory":"{dir}"}} ../elsewhere/"#);
    let refused = |dir: &str| {
        let file = "error: $DIR/project/.specify/feature.json cannot be used: it leads out of the project";
        format!(
            "{file}, to {dir}; to use that directory, select it with --feature or SPECIFY_FEATURE_DIRECTORY"
        )
    };
    check_resolve(&out("../elsewhere"), "", &refused("$DIR/project/../elsewhere"));
    let linked = refused("$DIR/project/specs/001-a");
    check_resolve(&format!("{} specs->../elsewhere", out("specs/001-a")), "", &linked);
    check_resolve(&format!("{} specs->../nowhere", out("specs/001-a")), "", &linked);
    check_resolve(&out("/etc"), "", &refused("/etc"));
    check_resolve(&out("/etc"), "variable=/etc", "/etc by Variable");
}

#[test]
fn feature_is_listed_once_despite_links() {
    let disk = Disk::new(
        ".specify/specs/002-b/ .specify/specs/001-a/ specs->.specify/specs .specify/specs/notes/ \
         .specify/specs/mine/spec.md=x ../elsewhere/ .specify/specs/003-out->../../../elsewhere \
         .specify/specs/004-again->001-a",
    );
    let features = list_features(&disk.project, &SpecsRoot::Auto).unwrap();
    let shown: Vec<String> = features.iter().map(|feature| disk.project.display_path(&feature.dir)).collect();
    assert_eq!(shown, [".specify/specs/mine", ".specify/specs/001-a", ".specify/specs/002-b"]);
}

#[test]
fn pointer_is_written_when_it_changes() {
    let disk = Disk::new(".specify/specs/001-a/");
    let write = |dir: &str| {
        let is_news = write_pointer(&disk.project, &disk.project.resolve_path(dir)).unwrap();
        format!("{is_news} {}", disk.read(".specify/feature.json"))
    };
    assert_eq!(write("specs/001-ü"), "true {\"feature_directory\":\"specs/001-ü\"}\n");
    disk.add(".specify/feature.json={\"feature_directory\":\"specs/001-ü/\",\"x\":1}");
    assert_eq!(write("specs/001-ü"), "false {\"feature_directory\":\"specs/001-ü/\",\"x\":1}");
    assert_eq!(write("/else/where"), "true {\"feature_directory\":\"/else/where\"}\n");
    disk.add(".specify/feature.json=broken");
    assert_eq!(write("specs/001-a"), "true {\"feature_directory\":\"specs/001-a\"}\n");
}

/// Writes the pointer and prints git's local exclude list.
#[track_caller]
fn check_exclude(things: &str, list: &str, expected: &str) {
    let disk = Disk::new(&format!("{things} .specify/"));
    for dir in ["specs/001-a", "specs/002-b"] {
        write_pointer(&disk.project, &disk.project.resolve_path(dir)).unwrap();
    }
    assert_eq!(disk.read(list), expected, "{things}");
}

#[test]
fn pointer_is_excluded_from_the_projects_own_repository_only() {
    let line = "/.specify/feature.json\n";
    check_exclude(".git/", ".git/info/exclude", line);
    check_exclude(".git/info/exclude=#%ours", ".git/info/exclude", &format!("# ours\n{line}"));
    check_exclude(".git/ .specify/.gitignore=feature.json", ".git/info/exclude", "");
    check_exclude("../.git/", "../.git/info/exclude", "/project/.specify/feature.json\n");
    check_exclude(".git->../other ../other/", "../other/info/exclude", "");
    check_exclude(".git/info->../../other ../other/", "../other/exclude", "");
    // An attacker who can write the project chooses where its `.git` leads, but not what is there.
    let claimed = ".git=gitdir:%../main/worktrees/w ../main/worktrees/w/commondir=../..";
    check_exclude(claimed, "../main/info/exclude", "");
    check_exclude(&format!("{claimed} ../main/worktrees/w/gitdir=/other/.git"), "../main/info/exclude", "");
}

#[test]
fn worktree_shares_the_exclude_list_of_its_repository() {
    let disk = Disk::new(".specify/ .git=gitdir:%../main/worktrees/w ../main/worktrees/w/commondir=../..~");
    let entry = disk.project.root().join(".git");
    disk.add(&format!("../main/worktrees/w/gitdir={}~", entry.display()));
    write_pointer(&disk.project, &disk.project.resolve_path("specs/001-a")).unwrap();
    assert_eq!(disk.read("../main/info/exclude"), "/.specify/feature.json\n");
}

/// Finds the project from one of its directories.
#[track_caller]
fn check_find(things: &str, (cwd, init_dir): (&str, Option<&str>), expected: &str) {
    let disk = Disk::new(things);
    let told = disk.told(
        SpeckitProject::find_project(&disk.project.root().join(cwd), init_dir.map(Path::new)),
        |found| found.map_or("none".to_owned(), |found| found.root().display().to_string()),
    );
    assert_eq!(told, expected, "{things}");
}

#[test]
fn project_root_has_the_specify_directory() {
    let root = "$DIR/project";
    check_find(".specify/ src/deep/", ("src/deep", None), root);
    check_find("src/", ("src", None), "none");
    check_find("kit/ .specify->kit", (".", None), root);
    let broken = |why: &str| format!("error: {root}/.specify cannot be used: {why}");
    check_find(
        ".specify=file",
        (".", None),
        &broken("it is not a directory; move it away, or work in another directory"),
    );
    let out = "it is a link that leads out of the project; replace it with a directory";
    check_find("../elsewhere/ .specify->../elsewhere", (".", None), &broken(out));
    let nowhere = "it is a link that leads nowhere; replace it with a directory";
    check_find(".specify->nowhere", (".", None), &broken(nowhere));
}

#[test]
fn root_from_the_environment_must_be_a_project() {
    check_find(".specify/ other/.specify/", (".", Some("other/")), "$DIR/project/other");
    let refused = |named: &str, why: &str| {
        let next = "set it to a directory with a .specify/, or unset it";
        format!("error: SPECIFY_INIT_DIR is {named}, {why}; {next}")
    };
    check_find(".specify/ other/", (".", Some("other")), &refused("other", "which has no .specify/"));
    check_find(".specify/", (".", Some("gone")), &refused("gone", "which is not a directory"));
    check_find(".specify/ file=x", (".", Some("file")), &refused("file", "which is not a directory"));
}

/// Checks the prerequisites of a feature and lists its documents.
#[track_caller]
fn check_prerequisites(things: &str, needs: &[FeaturePrerequisite], expected: &str) {
    let disk = Disk::new(things);
    let feature = Feature::from_dir(disk.project.resolve_path("specs/001-a"));
    let told = disk.told(check_feature_prerequisites(&disk.project, &feature, needs), |()| {
        list_docs(&feature).join(" ")
    });
    assert_eq!(told, expected, "{things}");
}

#[test]
fn prerequisite_error_has_the_command_that_creates_it() {
    let all = [FeaturePrerequisite::PLAN, FeaturePrerequisite::SPEC, FeaturePrerequisite::TASKS];
    let check = |things: &str, expected: &str| check_prerequisites(things, &all, expected);
    check("", "unmet: the feature's directory specs/001-a does not exist; /speckit.specify");
    check("specs/001-a/", "unmet: specs/001-a/plan.md does not exist; /speckit.plan");
    let empty = "unmet: specs/001-a/plan.md is empty; fill it, or remove it; /speckit.plan";
    check("specs/001-a/plan.md=", empty);
    check(
        "specs/001-a/plan.md=x specs/001-a/spec.md/",
        "unmet: specs/001-a/spec.md does not exist; /speckit.specify",
    );
    let planned = "specs/001-a/plan.md=x specs/001-a/spec.md=";
    check(planned, "unmet: specs/001-a/tasks.md does not exist; /speckit.tasks");
    check(&format!("{planned} specs/001-a/tasks.md="), "");
    check_prerequisites("specs/001-a/plan.md=", &[FeaturePrerequisite::PLAN_FILE], "");
    assert_eq!(step_definition(WorkflowCommand::Specify).feature.prerequisites(), None);
    let analyzed = step_definition(WorkflowCommand::Analyze).feature;
    assert_eq!(analyzed.prerequisites(), Some(all.as_slice()));
}

#[test]
fn documents_are_listed_in_one_order() {
    let some = "specs/001-a/quickstart.md= specs/001-a/contracts/.x= specs/001-a/research.md=";
    check_prerequisites(some, &[], "research.md contracts/ quickstart.md");
    check_prerequisites("specs/001-a/contracts/ specs/001-a/data-model.md=", &[], "data-model.md");
}

#[test]
fn plan_is_created_once_and_tasks_after_it() {
    let disk = Disk::new("specs/001-a/spec.md=x");
    let feature = Feature::from_dir(disk.project.resolve_path("specs/001-a"));
    let tasks = || disk.told(setup_tasks(&disk.project, &feature, &pages), |page| page.text);
    assert_eq!(tasks(), "unmet: specs/001-a/plan.md does not exist; /speckit.plan");
    assert!(setup_plan(&disk.project, &feature, &now(), &pages).unwrap());
    assert!(!setup_plan(&disk.project, &feature, &now(), &pages).unwrap());
    assert_eq!(tasks(), "tasks-template");
    assert_eq!(disk.tree(), "specs/001-a/plan.md: # A 2026-01-02\nspecs/001-a/spec.md: x\n");
    let folder = Feature::from_dir(disk.project.resolve_path("specs/003-c"));
    disk.add("specs/003-c/plan.md/");
    let told = disk.told(setup_plan(&disk.project, &folder, &now(), &pages), |_| "made".to_owned());
    assert_eq!(
        told,
        "error: $DIR/project/specs/003-c/plan.md cannot be used: it is not a file; move it away"
    );
    let empty = |name: &str| Ok(PageTemplate { name: name.to_owned(), text: String::new() });
    let other = Feature::from_dir(disk.project.resolve_path("specs/002-b"));
    let told = disk.told(setup_plan(&disk.project, &other, &now(), &empty), |_| "made".to_owned());
    assert_eq!(told, "error: the page template plan-template is empty; restore it, or remove it");
    assert!(!other.dir.exists());
}

#[test]
fn project_is_initialized_without_changing_existing_files() {
    let made = |disk: &Disk| {
        disk.told(init_project(&disk.project, &pages), |made| {
            made.iter().map(|path| disk.project.display_path(path)).collect::<Vec<_>>().join(" ")
        })
    };
    let disk = Disk::new("");
    assert_eq!(made(&disk), ".specify/memory .specify/memory/constitution.md .specify/crow");
    let tree = ".specify/crow/.gitignore: *\n.specify/memory/constitution.md: constitution-template\n";
    assert_eq!(disk.tree(), tree);
    assert_eq!(made(&disk), "");
    let disk = Disk::new(".specify/memory/constitution.md=mine");
    assert_eq!(made(&disk), ".specify/crow");
    assert_eq!(disk.read(".specify/memory/constitution.md"), "mine");
    let disk = Disk::new("../elsewhere/ .specify/memory->../../elsewhere");
    assert!(made(&disk).contains("a link in it leads out of the project"), "{}", made(&disk));
}

#[test]
fn specs_root_can_be_configured() {
    let check = |things: &str, setting: &str, expected: &str| {
        let disk = Disk::new(things);
        let setting = SpecsRoot::parse(setting).unwrap();
        let told =
            disk.told(resolve_specs_root(&disk.project, &setting), |root| disk.project.display_path(&root));
        assert_eq!(told, expected, "{things} {setting:?}");
    };
    check("specs/001-a/", "auto", "specs");
    check("specs/001-a/", ".specify/specs", ".specify/specs");
    check("", "specs", "specs");
    check("", "docs/features/", "docs/features");
    let pointer = r#".specify/feature.json={"feature_directory":".specify/specs/002-b"}"#;
    check(&format!("specs/001-a/ {pointer}"), "auto", ".specify/specs");
    check("specs/001-a/ .specify/feature.json={", "auto", "specs");
    assert!(SpecsRoot::parse("/").is_err());
}

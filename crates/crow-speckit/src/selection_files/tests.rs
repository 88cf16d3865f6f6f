use super::*;
use crate::extension::list_extension_commands;
use crate::fixture::fixture_project;
use crate::{extension_prompt, list_untrusted_files};

const HOOKS: (&str, &str) = (
    ".specify/extensions.yml",
    "hooks: {after_plan: [{extension: git, command: speckit.git.commit}, {extension: agent-context, command: speckit.agent-context.update}],
     before_plan: [{extension: ev, command: speckit.ev.safe, condition: config.a is set}]}",
);
const GIT: (&str, &str) =
    (".specify/extensions/git/git-config.yml", "auto_commit: {after_plan: {enabled: true}}");
const CONTEXT: (&str, &str) =
    (".specify/extensions/agent-context/agent-context-config.yml", "context_file: AGENTS.md");
const MANIFEST_EV: (&str, &str) = (
    ".specify/extensions/ev/extension.yml",
    "provides: {commands: [{name: speckit.ev.safe, file: commands/safe.md}, {name: speckit.ev.danger, file: commands/danger.md}]}",
);
const SAFE: (&str, &str) = (".specify/extensions/ev/commands/safe.md", "Safe.");
const DANGER: (&str, &str) = (".specify/extensions/ev/commands/danger.md", "Danger.");

#[test]
fn selection_files_are_listed_with_their_effects() {
    let (_folder, project) = fixture_project(&[HOOKS, GIT, CONTEXT, MANIFEST_EV, SAFE, DANGER]);
    let mut told = String::new();
    for file in list_untrusted_files(&project) {
        told.push_str(&format!("{}\n", project.display_path(&file.path)));
        file.purposes.iter().for_each(|line| told.push_str(&format!("  {line}\n")));
    }
    expect_test::expect![[r#"
        .specify/extensions/agent-context/agent-context-config.yml
          updates a block in AGENTS.md
        .specify/extensions/ev/commands/danger.md
          command /speckit.ev.danger: 
        .specify/extensions/ev/commands/safe.md
          command /speckit.ev.safe: 
        .specify/extensions/ev/extension.yml
          defines the commands of the extension ev
        .specify/extensions/git/git-config.yml
          configures branches and commits
          git commits after /speckit.plan
        .specify/extensions.yml
          hook before /speckit.plan runs speckit.ev.safe, if you approve
          hook after /speckit.plan runs speckit.git.commit, if you approve
          hook after /speckit.plan runs speckit.agent-context.update, if you approve
    "#]]
    .assert_eq(&told);
    let files = hook_config_files(&project).unwrap();
    let supplied: Vec<PathBuf> = list_untrusted_files(&project).into_iter().map(|file| file.path).collect();
    assert_eq!(files.len(), 4);
    assert!(
        files.iter().all(|(path, bytes)| supplied.contains(path) && std::fs::read(path).unwrap() == *bytes)
    );
}

#[test]
fn project_without_hooks_and_extensions_needs_no_approval() {
    let (_folder, project) = fixture_project(&[
        GIT,
        CONTEXT,
        (".specify/init-options.json", "{}"),
        (".specify/presets/.registry", "{}"),
    ]);
    assert_eq!(
        (list_untrusted_files(&project), hook_config_files(&project).unwrap()),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn command_is_listed_with_its_manifest() {
    let (_folder, project) = fixture_project(&[MANIFEST_EV, SAFE, DANGER]);
    let safe = list_extension_commands(&project).unwrap().commands.remove(0);
    let files = |project: &SpeckitProject| -> Vec<String> {
        let source = extension_prompt(project, &safe).unwrap();
        source.files.iter().map(|(path, _)| path.display().to_string()).collect()
    };
    assert_eq!(files(&project), [SAFE.0, MANIFEST_EV.0]);
    let swapped = MANIFEST_EV.1.replace("danger.md", "x.md").replace("safe.md", "danger.md");
    std::fs::write(project.root().join(MANIFEST_EV.0), swapped).unwrap();
    let error = extension_prompt(&project, &safe).unwrap_err().to_string();
    assert!(error.contains("the extension ev has changed this command"), "{error}");
}

use expect_test::{Expect, expect};

use super::*;
use crate::extension::list_extension_commands;
use crate::fixture::{fixture_project, mask_project_root as plain};

const PRESET: (&str, &str) = (
    ".specify/presets/lean/preset.yml",
    "provides: {templates: [{type: command, name: speckit.plan, file: commands/speckit.plan.md, strategy: wrap}]}",
);
const LEAN: (&str, &str) = (
    ".specify/presets/lean/commands/speckit.plan.md",
    "---\ndescription: x\n---\nFirst {{ 7 * 7 }}.\n{CORE_TEMPLATE}\nLast.\n",
);
const OWN: (&str, &str) = ("own/speckit_plan.jinja2", "own {{ args }}");

fn told(project: &SpeckitProject, source: Result<PromptSource, SpeckitError>) -> String {
    let source = match source {
        Ok(source) => source,
        Err(error) => return format!("error: {}\n", plain(project, &error.to_string())),
    };
    let parts = source.parts.iter().map(|part| format!("{:?} {:?}\n", part.kind, part.text));
    let layers = source.layers.iter().map(|layer| format!("from {}\n", layer.origin));
    let files = source
        .files
        .iter()
        .map(|(path, bytes)| format!("trusts {} ({} bytes)\n", path.display(), bytes.len()));
    plain(project, &parts.chain(layers).chain(files).collect::<String>())
}

#[track_caller]
fn check(files: &[(&str, &str)], expect: &Expect) {
    let (_folder, project) = fixture_project(files);
    let source = command_prompt(&project, Some(&project.root().join("own")), WorkflowCommand::Plan);
    expect.assert_eq(&told(&project, source));
}

#[test]
fn project_prompt_precedes_spec_kit_user_and_built_in_layers() {
    let all = [
        OWN,
        PRESET,
        LEAN,
        (".specify/templates/overrides/speckit.plan.md", "over $ARGUMENTS"),
        (".crow/prompts/speckit_plan.jinja2", "ours {{ args }}"),
    ];
    check(
        &all,
        &expect![[r#"
        Jinja "ours {{ args }}"
        from this project's prompts for Crow
        trusts .crow/prompts/speckit_plan.jinja2 (15 bytes)
    "#]],
    );
    check(
        &all[..4],
        &expect![[r#"
        Markdown "over $ARGUMENTS"
        from this project's override
        trusts .specify/templates/overrides/speckit.plan.md (15 bytes)
    "#]],
    );
    check(
        &all[..3],
        &expect![[r#"
            Markdown "First {{ 7 * 7 }}.\n"
            Jinja "own {{ args }}"
            Markdown "\nLast.\n"
            from preset lean
            from your own directory
            trusts .specify/presets/lean/commands/speckit.plan.md (64 bytes)
            trusts .specify/presets/lean/preset.yml (108 bytes)
        "#]],
    );
    check(
        &all[..1],
        &expect![[r#"
            Jinja "own {{ args }}"
            from your own directory
        "#]],
    );
    let (_folder, project) = fixture_project(&[]);
    let source = command_prompt(&project, None, WorkflowCommand::Plan).unwrap();
    assert_eq!(source.layers[0].origin, LayerOrigin::BuiltIn);
    assert!(source.files.is_empty());
}

#[test]
fn strategy_of_older_presets_is_in_the_command() {
    let manifest = PRESET.1.replace(", strategy: wrap", "");
    let file = (LEAN.0, "---\nstrategy: append\n---\nMore {ARGS}.\n");
    check(
        &[OWN, (PRESET.0, &manifest), file],
        &expect![[r#"
            Jinja "own {{ args }}"
            Markdown "\n\nMore {ARGS}.\n"
            from preset lean
            from your own directory
            trusts .specify/presets/lean/commands/speckit.plan.md (38 bytes)
            trusts .specify/presets/lean/preset.yml (92 bytes)
        "#]],
    );
}

#[test]
fn layers_of_two_presets_above_the_base_are_one_part() {
    let second = PRESET.1.replace("wrap", "append");
    check(
        &[
            OWN,
            PRESET,
            LEAN,
            (".specify/presets/more/preset.yml", &second),
            (".specify/presets/more/commands/speckit.plan.md", "More."),
        ],
        &expect![[r#"
            Markdown "First {{ 7 * 7 }}.\n"
            Jinja "own {{ args }}"
            Markdown "\n\nMore.\nLast.\n"
            from preset lean
            from preset more
            from your own directory
            trusts .specify/presets/lean/commands/speckit.plan.md (64 bytes)
            trusts .specify/presets/more/commands/speckit.plan.md (5 bytes)
            trusts .specify/presets/lean/preset.yml (108 bytes)
            trusts .specify/presets/more/preset.yml (110 bytes)
        "#]],
    );
}

#[test]
fn command_files_of_the_generic_integration_are_used_if_edited() {
    let text = "---\ndescription: x\n---\nStock.\n";
    let manifest = |path: &str, hash: &str| format!(r#"{{"files": {{"{path}": "{hash}"}}}}"#);
    let place = ".specify/integrations/generic.manifest.json";
    let file = ".crow/commands/speckit.plan.md";
    let stock = manifest(file, &sha256_hex(text.as_bytes()));
    check(
        &[OWN, (file, text), (place, &stock)],
        &expect![[r#"
            Jinja "own {{ args }}"
            from your own directory
        "#]],
    );
    check(
        &[OWN, (file, "Edited $ARGUMENTS."), (place, &stock)],
        &expect![[r#"
            Markdown "Edited $ARGUMENTS."
            from an edited command file
            trusts .crow/commands/speckit.plan.md (18 bytes)
            trusts .specify/integrations/generic.manifest.json (113 bytes)
        "#]],
    );
    check(
        &[OWN, (place, &stock)],
        &expect![[r#"
            Jinja "own {{ args }}"
            from your own directory
        "#]],
    );
    let skill = ".crow/skills/speckit-plan/SKILL.md";
    check(
        &[(skill, "Skill."), (place, &manifest(skill, "00"))],
        &expect![[r#"
            Markdown "Skill."
            from an edited command file
            trusts .crow/skills/speckit-plan/SKILL.md (6 bytes)
            trusts .specify/integrations/generic.manifest.json (55 bytes)
        "#]],
    );
    check(
        &[(place, &manifest("../../x/speckit.plan.md", "00"))],
        &expect![[r#"
        error: $DIR/.specify/integrations/generic.manifest.json cannot be used: the file "../../x/speckit.plan.md" leads out of the project
    "#]],
    );
    check(
        &[(place, "[")],
        &expect![[r#"
        error: $DIR/.specify/integrations/generic.manifest.json cannot be used: it is not a manifest of installed files
    "#]],
    );
}

#[test]
fn extension_command_is_rewritten_for_the_project() {
    let (_folder, project) = fixture_project(&[
        (".specify/init-options.json", r#"{"script": "py"}"#),
        (
            ".specify/extensions/git/extension.yml",
            "provides: {commands: [{name: speckit.git.commit, file: commands/c.md}]}",
        ),
        (".specify/extensions/git/agents/x.md", ""),
        (".specify/extensions/git/scripts/bash/c.sh", ""),
        (
            ".specify/extensions/git/commands/c.md",
            "---\nscripts:\n  sh: scripts/bash/c.sh --json {ARGS}\n  py: scripts/python/c.py\n---\n\
             Run {SCRIPT} or `.specify/extensions/git/scripts/bash/c.sh $ARGUMENTS`, agents/x.md, scripts/bash/c.sh.\n\
             Then __SPECKIT_COMMAND_PLAN__.\n",
        ),
    ]);
    let command = list_extension_commands(&project).unwrap().commands.remove(0);
    expect![[r#"
        Markdown "Run python3 .specify/extensions/git/scripts/python/c.py or `.specify/extensions/git/scripts/bash/c.sh $ARGUMENTS`, .specify/extensions/git/agents/x.md, .specify/extensions/git/scripts/bash/c.sh.\nThen /speckit.plan.\n"
        from extension git
        trusts .specify/extensions/git/commands/c.md (216 bytes)
        trusts .specify/extensions/git/extension.yml (71 bytes)
        trusts .specify/init-options.json (16 bytes)
    "#]].assert_eq(&told(&project, extension_prompt(&project, &command)));
    std::fs::remove_file(project.root().join(&command.file)).unwrap();
    expect![[r#"
        error: .specify/extensions/git/commands/c.md cannot be used: it is missing; install the extension again
    "#]].assert_eq(&told(&project, extension_prompt(&project, &command)));
}

#[test]
fn commands_have_a_prompt() {
    let (_folder, project) = fixture_project(&[]);
    for command in WorkflowCommand::ALL {
        let source = command_prompt(&project, None, command).unwrap();
        assert!(!source.parts[0].text.is_empty(), "{command}");
        assert_eq!(prompt_layers(&project, None, command).unwrap(), source.layers);
    }
}

#[cfg(unix)]
#[test]
fn prompt_is_not_read_through_a_link_out_of_the_project() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "SECRET").unwrap();
    let (_folder, project) = fixture_project(&[(".crow/prompts/x", "")]);
    std::os::unix::fs::symlink(&secret, project.root().join(".crow/prompts/speckit_plan.jinja2")).unwrap();
    let error = command_prompt(&project, None, WorkflowCommand::Plan).unwrap_err().to_string();
    assert!(error.contains("it leads out of"), "{error}");
}

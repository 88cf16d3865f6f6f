//! The builds, tests, linters and formatters that run in `accept-edits` without asking. Data only; `accept_edits`
//! does the comparison, and the risk table lists options that lead outside.

/// A program with the subcommands that only build, test, check or format the project.
#[derive(Debug, Clone, Copy)]
pub(super) struct BuildProgram {
    /// Its names.
    pub(super) programs: &'static str,
    /// The subcommands; [`ANYTHING`] if it has no others.
    pub(super) verbs: &'static str,
    /// Whether all operands must be subcommands.
    pub(super) allows_verbs_only: bool,
    /// Whether it is allowed without a subcommand.
    pub(super) runs_without_verb: bool,
    /// Whether it runs project scripts by name after `run`.
    pub(super) has_scripts: bool,
    /// Whether it also runs them without `run`.
    pub(super) runs_scripts_directly: bool,
    /// Whether its operands are targets, some of which may deploy.
    pub(super) has_targets: bool,
}

/// Any operands.
pub(super) const ANYTHING: &str = "*";

const fn with_verbs(programs: &'static str, verbs: &'static str) -> BuildProgram {
    BuildProgram {
        programs,
        verbs,
        allows_verbs_only: false,
        runs_without_verb: false,
        has_scripts: false,
        runs_scripts_directly: false,
        has_targets: false,
    }
}

const fn with_any_verb(programs: &'static str) -> BuildProgram {
    BuildProgram { runs_without_verb: true, ..with_verbs(programs, ANYTHING) }
}

/// The table.
const BUILDERS: &[BuildProgram] = &[
    with_verbs("cargo", "build b check c test t clippy doc d bench fmt nextest tree metadata"),
    with_verbs("go", "build test vet fmt list"),
    BuildProgram { has_scripts: true, ..with_verbs("npm", "test t tst") },
    BuildProgram {
        has_scripts: true,
        runs_scripts_directly: true,
        ..with_verbs("pnpm yarn", "test t build lint typecheck")
    },
    BuildProgram { has_scripts: true, ..with_verbs("bun", "test build") },
    with_verbs("deno", "test lint fmt check bench"),
    BuildProgram {
        runs_without_verb: true,
        has_scripts: true,
        runs_scripts_directly: true,
        ..with_verbs("just task", "test build check lint fmt")
    },
    BuildProgram {
        allows_verbs_only: true,
        ..with_verbs("mvn mvnw", "clean validate compile test-compile test package verify")
    },
    BuildProgram {
        allows_verbs_only: true,
        ..with_verbs(
            "gradle gradlew",
            "clean build test check assemble classes testClasses compileJava compileKotlin compileTestJava compileTestKotlin lint \
             ktlintCheck detekt spotlessCheck spotlessApply",
        )
    },
    with_verbs("dotnet", "build test format"),
    with_verbs("mix", "test compile format credo dialyzer"),
    with_verbs("swift", "build test"),
    with_verbs("zig", "build test fmt"),
    with_verbs("dart flutter", "test analyze format"),
    with_verbs("cabal stack dune", "build test"),
    BuildProgram { allows_verbs_only: true, ..with_verbs("sbt lein", "compile test") },
    with_verbs("meson", "compile test"),
    with_verbs("terraform tofu", "fmt validate"),
    with_verbs("ruff", "check format"),
    with_verbs("biome", "check lint format ci"),
    with_verbs("golangci-lint", "run fmt"),
    with_verbs("vitest", "run"),
    with_verbs("taplo", "fmt format lint check"),
    with_verbs("buf", "lint format build"),
    with_verbs("rake", "test spec lint rubocop"),
    BuildProgram { has_targets: true, ..with_any_verb("make gmake ninja tox nox") },
    with_any_verb("ctest gcc cc clang g++ c++ clang++ javac"),
    with_any_verb("pytest py.test mypy pyright flake8 pylint black isort bandit autopep8 yapf"),
    with_any_verb("tsc vue-tsc eslint prettier stylelint oxlint jest mocha ava"),
    with_any_verb("rustfmt gofmt goimports gofumpt staticcheck"),
    with_any_verb(
        "clang-format clang-tidy cppcheck shfmt shellcheck yamllint markdownlint markdownlint-cli2 hadolint actionlint",
    ),
    with_any_verb("rspec rubocop standardrb phpunit swiftlint swiftformat ktlint stylua typos nixfmt"),
];

/// Programs that run a project program by name, with the preceding word.
pub(super) const RUNNERS: &[(&str, &str)] = &[
    ("npx", ""),
    ("bunx", ""),
    ("yarn", ""),
    ("pnpm", ""),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("yarn", "run"),
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("bundle", "exec"),
];

/// First words of script names that build or check.
pub(super) const SCRIPTS: &[&str] = &[
    "test",
    "tests",
    "build",
    "lint",
    "check",
    "typecheck",
    "type",
    "types",
    "tsc",
    "format",
    "fmt",
    "prettier",
    "coverage",
    "unit",
    "compile",
    "validate",
    "verify",
    "eslint",
    "jest",
    "vitest",
];

/// Parts of target and script names that deploy.
pub(super) const DEPLOY_WORDS: &[&str] = &[
    "install",
    "uninstall",
    "deploy",
    "publish",
    "release",
    "push",
    "upload",
    "ship",
    "migrate",
    "global",
    "login",
    "sign",
    "docker",
    "image",
    "apply",
    "destroy",
];

/// Finds the row of a program; `cmake` is not in the table.
pub(super) fn find_build_program(program: &str) -> Option<&'static BuildProgram> {
    BUILDERS.iter().find(|builder| builder.programs.split(' ').any(|name| name == program))
}

//! The builds, tests, linters and formatters that run in `accept-edits` without a question. Data only; how a command is
//! compared with it is `accepted`'s. What options of them lead elsewhere is the table of risks'.

/// A program with the subcommands that only build, test, check or format the project.
#[derive(Debug, Clone, Copy)]
pub(super) struct Builder {
    /// Its names.
    pub(super) programs: &'static str,
    /// The subcommands; [`ANYTHING`] if it does nothing else.
    pub(super) verbs: &'static str,
    /// Whether all operands must be among the subcommands.
    pub(super) are_all_verbs: bool,
    /// Whether it has something to do without a subcommand.
    pub(super) is_lone: bool,
    /// Whether it runs scripts of the project by name behind `run`.
    pub(super) has_scripts: bool,
    /// Whether it runs them without `run` as well.
    pub(super) is_short: bool,
    /// Whether its operands are targets, of which some may put something elsewhere.
    pub(super) has_targets: bool,
}

/// Any operands.
pub(super) const ANYTHING: &str = "*";

const fn verbs(programs: &'static str, verbs: &'static str) -> Builder {
    Builder {
        programs,
        verbs,
        are_all_verbs: false,
        is_lone: false,
        has_scripts: false,
        is_short: false,
        has_targets: false,
    }
}

const fn anything(programs: &'static str) -> Builder {
    Builder { is_lone: true, ..verbs(programs, ANYTHING) }
}

/// The table.
const BUILDERS: &[Builder] = &[
    verbs("cargo", "build b check c test t clippy doc d bench fmt nextest tree metadata"),
    verbs("go", "build test vet fmt list"),
    Builder { has_scripts: true, ..verbs("npm", "test t tst") },
    Builder { has_scripts: true, is_short: true, ..verbs("pnpm yarn", "test t build lint typecheck") },
    Builder { has_scripts: true, ..verbs("bun", "test build") },
    verbs("deno", "test lint fmt check bench"),
    Builder {
        is_lone: true,
        has_scripts: true,
        is_short: true,
        ..verbs("just task", "test build check lint fmt")
    },
    Builder {
        are_all_verbs: true,
        ..verbs("mvn mvnw", "clean validate compile test-compile test package verify")
    },
    Builder {
        are_all_verbs: true,
        ..verbs(
            "gradle gradlew",
            "clean build test check assemble classes testClasses compileJava compileKotlin compileTestJava compileTestKotlin lint \
             ktlintCheck detekt spotlessCheck spotlessApply",
        )
    },
    verbs("dotnet", "build test format"),
    verbs("mix", "test compile format credo dialyzer"),
    verbs("swift", "build test"),
    verbs("zig", "build test fmt"),
    verbs("dart flutter", "test analyze format"),
    verbs("cabal stack dune", "build test"),
    Builder { are_all_verbs: true, ..verbs("sbt lein", "compile test") },
    verbs("meson", "compile test"),
    verbs("terraform tofu", "fmt validate"),
    verbs("ruff", "check format"),
    verbs("biome", "check lint format ci"),
    verbs("golangci-lint", "run fmt"),
    verbs("vitest", "run"),
    verbs("taplo", "fmt format lint check"),
    verbs("buf", "lint format build"),
    verbs("rake", "test spec lint rubocop"),
    Builder { has_targets: true, ..anything("make gmake ninja tox nox") },
    anything("ctest gcc cc clang g++ c++ clang++ javac"),
    anything("pytest py.test mypy pyright flake8 pylint black isort bandit autopep8 yapf"),
    anything("tsc vue-tsc eslint prettier stylelint oxlint jest mocha ava"),
    anything("rustfmt gofmt goimports gofumpt staticcheck"),
    anything(
        "clang-format clang-tidy cppcheck shfmt shellcheck yamllint markdownlint markdownlint-cli2 hadolint actionlint",
    ),
    anything("rspec rubocop standardrb phpunit swiftlint swiftformat ktlint stylua typos nixfmt"),
];

/// Programs that run one of the project's by its name, with the word in front of that.
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

/// How the names of scripts begin that build or check.
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

/// Parts of the names of targets and scripts that put something elsewhere.
pub(super) const DEPLOYING: &[&str] = &[
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

/// Finds the row of a program; `cmake` only builds where it is told to.
pub(super) fn builder(program: &str) -> Option<&'static Builder> {
    BUILDERS.iter().find(|builder| builder.programs.split(' ').any(|name| name == program))
}

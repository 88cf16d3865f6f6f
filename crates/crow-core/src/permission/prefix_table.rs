//! Commands that may be allowed permanently, by the shortest prefix that still determines their effect.
//!
//! Never included: interpreters, programs that access an arbitrary address, programs that delete, and programs that
//! run others. Options of a listed program that run something or write elsewhere still ask, as under any rule.

use super::program_names::program_name;

/// A program with the possible rests of its prefix.
pub(super) struct PrefixRow {
    programs: &'static str,
    /// Whether it runs code of the project: then it is confined although the user allowed it.
    runs_project_code: bool,
    /// Alternatives: words joined by `/`; `*` is one plain name, such as a target; `$` at the end allows only options
    /// after it, which are part of the grant. Empty: the program alone.
    alternatives: &'static str,
}

const fn project_row(programs: &'static str, alternatives: &'static str) -> PrefixRow {
    PrefixRow { programs, runs_project_code: true, alternatives }
}

const fn own_row(programs: &'static str, alternatives: &'static str) -> PrefixRow {
    PrefixRow { programs, runs_project_code: false, alternatives }
}

const ROWS: &[PrefixRow] = &[
    project_row(
        "cargo",
        "build b check c test t clippy fmt doc bench run r nextest/run llvm-cov miri/test tree metadata",
    ),
    project_row("npm pnpm yarn bun", "run/* test run-script/* lint build start t install$ i$"),
    project_row("npm", "ci ls outdated audit view"),
    project_row("npx bunx", "tsc eslint prettier vitest jest mocha biome stylelint vue-tsc playwright/test"),
    project_row("tsc eslint prettier vitest jest mocha biome stylelint", ""),
    project_row("deno", "test lint fmt check task/*"),
    project_row("go", "build test vet fmt mod/tidy mod/verify list"),
    project_row("gofmt goimports golangci-lint staticcheck", ""),
    project_row("pytest tox nox mypy ruff black isort flake8 pylint pyright", ""),
    project_row("python python3 py", "-m/pytest -m/unittest -m/mypy -m/ruff -m/black -m/compileall -m/venv"),
    project_row("uv poetry pdm hatch pipenv", "run/pytest run/mypy run/ruff run/black sync lock"),
    project_row("make gmake just task rake mage invoke", "* $"),
    project_row("cmake", "-B --build -S"),
    project_row("meson bazel buck2", "test build compile setup"),
    project_row("ctest ninja", ""),
    project_row("chmod", "+x"),
    project_row("gcc g++ cc c++ clang clang++ rustc javac", ""),
    project_row("mvn mvnw ./mvnw", "test compile package verify validate"),
    project_row("gradle gradlew ./gradlew", "test build check assemble *"),
    project_row("dotnet", "build test run format restore"),
    project_row("swift", "build test"),
    project_row("mix", "test compile format"),
    project_row("bundle", "exec/rspec exec/rubocop exec/rake install"),
    project_row("rspec rubocop phpunit phpstan pest", ""),
    project_row("composer", "test validate"),
    project_row("sbt", "test compile"),
    project_row("stack cabal", "build test"),
    project_row("zig", "build test fmt"),
    project_row("terraform tofu", "fmt validate plan"),
    project_row("shellcheck shfmt clang-format clang-tidy hadolint yamllint markdownlint", ""),
    own_row(
        "git",
        "status log diff show add commit fetch pull switch merge rebase cherry-pick blame shortlog describe rev-parse \
         ls-files grep stash/list stash/show stash/push stash/pop stash/apply stash$ checkout/-b worktree/list remote/-v",
    ),
    own_row(
        "gh",
        "pr/list pr/view pr/status pr/diff pr/checks issue/list issue/view run/list run/view repo/view",
    ),
    own_row("glab", "mr/list mr/view issue/list issue/view ci/list ci/view"),
    own_row("docker podman", "ps logs images inspect version info stats top port compose/ps compose/logs"),
    own_row("docker podman", "build compose/build"),
    own_row("kubectl", "get describe logs top version"),
    own_row("rustup", "show toolchain/list target/list"),
    own_row("pip pip3", "list show freeze check"),
    own_row("brew apt apt-cache dnf pacman", "list info search show"),
    own_row("systemctl", "status"),
    own_row("journalctl", ""),
];

/// The part of a command that a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PrefixExtent {
    /// All words, exactly.
    Exact,
    /// The first words, with any others after them.
    Prefix(usize),
}

/// Finds the row that covers the most words of a command, preferring a prefix.
pub(super) fn find_row(words: &[&str]) -> Option<(&'static PrefixRow, PrefixExtent)> {
    let program = *words.first()?;
    let names = |row: &&PrefixRow| row.programs.split(' ').any(|name| name == program);
    let covers = ROWS.iter().filter(names).filter_map(|row| {
        let extents = row.alternatives.split(' ').filter_map(|then| match then {
            "" => Some(PrefixExtent::Prefix(1)),
            then => match_alternative(then, &words[1..]),
        });
        extents.max().map(|extent| (row, extent))
    });
    covers.max_by_key(|(_, extent)| *extent)
}

/// Returns the part that an alternative covers of the words after the program.
fn match_alternative(alternative: &str, words: &[&str]) -> Option<PrefixExtent> {
    let (then, is_exact) = alternative.strip_suffix('$').map_or((alternative, false), |then| (then, true));
    let parts: Vec<&str> = then.split('/').filter(|part| !part.is_empty()).collect();
    let is_name = |word: &str| {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_:.".contains(char);
        !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)
    };
    let fits = |(part, word): (&&str, &&str)| if *part == "*" { is_name(word) } else { part == word };
    if words.len() < parts.len() || !parts.iter().zip(words).all(fits) {
        return None;
    }
    let has_options_only = || words[parts.len()..].iter().all(|word| word.starts_with('-'));
    match is_exact {
        false => Some(PrefixExtent::Prefix(parts.len() + 1)),
        true => has_options_only().then_some(PrefixExtent::Exact),
    }
}

/// Returns a project script or program, by its relative path below the working directory.
pub(super) fn project_script<'a>(words: &[&'a str]) -> Option<&'a str> {
    let program = *words.first()?;
    let below = program.strip_prefix("./")?;
    let is_plain = below.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
    (is_plain && !program_name(program).is_empty()).then_some(program)
}

/// Whether these words may be a grant today: as a prefix or a longer one, or as a whole command.
pub(super) fn is_grantable(words: &[String], is_exact: bool) -> bool {
    match is_exact {
        true => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            matches!(find_row(&words), Some((_, PrefixExtent::Exact)))
        }
        false => count_table_words(words).is_some(),
    }
}

/// Returns the number of words that the table has of a prefix; the user may have added others.
pub(super) fn count_table_words(words: &[String]) -> Option<usize> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match find_row(&words) {
        Some((_, PrefixExtent::Prefix(n_words))) => Some(n_words),
        Some((_, PrefixExtent::Exact)) => None,
        None => project_script(&words).map(|_| 1),
    }
}

/// Whether a prefix runs the project's own code.
pub(super) fn runs_project(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    find_row(&words).is_none_or(|(row, _)| row.runs_project_code)
}

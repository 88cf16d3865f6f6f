//! Which commands may be allowed for good, by the widest first words that still say what will happen.
//!
//! Never here: interpreters, programs that send to or load from an address of choice, programs that remove, and programs
//! that run another one. What an option of a listed program runs or writes elsewhere still asks, as under any rule.

use super::grants::known_words;
use super::risks::program_name;
use super::{Grant, harmless};
use crate::shell::{ShellWord, SimpleCommand, WrapperEffect};

/// Whether a program runs code of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeOwner {
    /// It does: the sandbox holds it although the person allowed it.
    Project,
    /// It does its own work only.
    Own,
}

/// A program and the words that its prefix has beside its name.
struct PrefixRow {
    programs: &'static str,
    code: CodeOwner,
    /// Each alternative is words joined by `/`; `*` is one plain name, such as a target; `$` at the end: only options
    /// follow, and they are part of what is allowed. Empty: the program alone.
    then: &'static str,
}

const fn project_row(programs: &'static str, then: &'static str) -> PrefixRow {
    PrefixRow { programs, code: CodeOwner::Project, then }
}

const fn own_row(programs: &'static str, then: &'static str) -> PrefixRow {
    PrefixRow { programs, code: CodeOwner::Own, then }
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

/// What covers a command for good, where something safe does: a prefix, or the whole command.
pub(super) fn safe_grant(simple: &SimpleCommand) -> Option<Grant> {
    let words = known_words(&simple.words);
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match find_row(&words) {
        Some((_, PrefixExtent::Prefix(n_words))) => Some(Grant::RunPrefix(owned(&words[..n_words]))),
        // What is not known before it runs may be more than options.
        Some((_, PrefixExtent::Whole)) if words.len() == simple.words.len() => {
            Some(Grant::RunWhole(owned(&words)))
        }
        Some((_, PrefixExtent::Whole)) => None,
        None => project_script(&words).map(|script| Grant::RunPrefix(vec![script.to_owned()])),
    }
}

/// Tells whether these words could be offered today: as a prefix that ends with them, or as a whole command.
pub(super) fn is_offered(words: &[String], is_whole: bool) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match find_row(&words) {
        Some((_, PrefixExtent::Prefix(n_words))) => !is_whole && n_words == words.len(),
        Some((_, PrefixExtent::Whole)) => is_whole,
        None => !is_whole && words.len() == 1 && project_script(&words).is_some(),
    }
}

/// Tells whether a prefix lets the project's own code run.
pub(super) fn runs_project(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    find_row(&words).is_none_or(|(row, _)| row.code == CodeOwner::Project)
}

/// Programs of which each operand is a target, a goal or a task: what is allowed of one says nothing of another.
const OF_TARGETS: &[&str] = &[
    "make", "gmake", "just", "task", "rake", "mage", "invoke", "mvn", "mvnw", "gradle", "gradlew", "sbt",
    "lein",
];

/// Their options whose value is the next word, whatever that is.
const VALUED: &[&str] = &["--tests", "-pl", "--projects"];

/// Tells whether a command names more targets than a prefix of so many words.
pub(super) fn has_more_targets(words: &[ShellWord], n_covered: usize) -> bool {
    let is_one = words
        .first()
        .and_then(ShellWord::known_text)
        .is_some_and(|program| OF_TARGETS.contains(&program_name(program)));
    let is_target = |at: usize| {
        let (before, text) = (words[at - 1].text.as_str(), words[at].text.as_str());
        let is_number = text.starts_with(|first: char| first.is_ascii_digit()) && before.starts_with('-');
        !text.starts_with('-') && !is_number && !VALUED.contains(&before)
    };
    is_one && (n_covered.max(1)..words.len()).any(is_target)
}

/// What together covers commands for good; `None` where one of them has nothing safe.
pub(super) fn grants_for_commands<'a>(
    commands: impl Iterator<Item = &'a SimpleCommand>,
) -> Option<Vec<Grant>> {
    let mut grants = Vec::new();
    for command in commands {
        if command.words.is_empty() || harmless::needs_no_rule(command) {
            continue;
        }
        match (safe_grant(command), &command.inner) {
            (Some(grant), _) => grants.push(grant),
            (None, Some(inner)) if inner.through == WrapperEffect::Plainly => {
                grants.extend(grants_for_commands(inner.commands.iter())?);
            }
            (None, _) => return None,
        }
    }
    Some(grants)
}

/// How much of a command a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PrefixExtent {
    /// All of it, as it is.
    Whole,
    /// So many words, whatever follows.
    Prefix(usize),
}

/// Finds the row that covers most words of a command, a prefix rather than the whole.
fn find_row(words: &[&str]) -> Option<(&'static PrefixRow, PrefixExtent)> {
    let program = *words.first()?;
    let names = |row: &&PrefixRow| row.programs.split(' ').any(|name| name == program);
    let covers = ROWS.iter().filter(names).filter_map(|row| {
        let extents = row.then.split(' ').filter_map(|then| match then {
            "" => Some(PrefixExtent::Prefix(1)),
            then => match_alternative(then, &words[1..]),
        });
        extents.max().map(|extent| (row, extent))
    });
    covers.max_by_key(|(_, extent)| *extent)
}

/// Tells how much an alternative covers when the command goes on with these words.
fn match_alternative(then: &str, words: &[&str]) -> Option<PrefixExtent> {
    let (then, is_whole) = then.strip_suffix('$').map_or((then, false), |then| (then, true));
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
    match is_whole {
        false => Some(PrefixExtent::Prefix(parts.len() + 1)),
        true => has_options_only().then_some(PrefixExtent::Whole),
    }
}

/// A script or program of the project, by a path that stays below the folder the session works in.
fn project_script<'a>(words: &[&'a str]) -> Option<&'a str> {
    let program = *words.first()?;
    let below = program.strip_prefix("./")?;
    let is_plain = below.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
    (is_plain && !program_name(program).is_empty()).then_some(program)
}

//! Which commands may be allowed for good, by the widest first words that still say what will happen.
//!
//! Never here: interpreters, programs that send to or load from an address of choice, programs that remove, and programs
//! that run another one. What an option of a listed program runs or writes elsewhere still asks, as under any rule.

use super::grants::known_words;
use super::risks::base;
use super::{Grant, harmless};
use crate::shell::{Simple, Through, Word};

/// Whether a program runs code of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// It does: the sandbox holds it although the person allowed it.
    Project,
    /// It does its own work only.
    Own,
}

/// A program and the words that its prefix has beside its name.
struct Row {
    programs: &'static str,
    code: Code,
    /// Each alternative is words joined by `/`; `*` is one plain name, such as a target; `$` at the end: only options
    /// follow, and they are part of what is allowed. Empty: the program alone.
    then: &'static str,
}

const fn project(programs: &'static str, then: &'static str) -> Row {
    Row { programs, code: Code::Project, then }
}

const fn own(programs: &'static str, then: &'static str) -> Row {
    Row { programs, code: Code::Own, then }
}

const ROWS: &[Row] = &[
    project(
        "cargo",
        "build b check c test t clippy fmt doc bench run r nextest/run llvm-cov miri/test tree metadata",
    ),
    project("npm pnpm yarn bun", "run/* test run-script/* lint build start t install$ i$"),
    project("npm", "ci ls outdated audit view"),
    project("npx bunx", "tsc eslint prettier vitest jest mocha biome stylelint vue-tsc playwright/test"),
    project("tsc eslint prettier vitest jest mocha biome stylelint", ""),
    project("deno", "test lint fmt check task/*"),
    project("go", "build test vet fmt mod/tidy mod/verify list"),
    project("gofmt goimports golangci-lint staticcheck", ""),
    project("pytest tox nox mypy ruff black isort flake8 pylint pyright", ""),
    project("python python3 py", "-m/pytest -m/unittest -m/mypy -m/ruff -m/black -m/compileall -m/venv"),
    project("uv poetry pdm hatch pipenv", "run/pytest run/mypy run/ruff run/black sync lock"),
    project("make gmake just task rake mage invoke", "* $"),
    project("cmake", "-B --build -S"),
    project("meson bazel buck2", "test build compile setup"),
    project("ctest ninja", ""),
    project("chmod", "+x"),
    project("gcc g++ cc c++ clang clang++ rustc javac", ""),
    project("mvn mvnw ./mvnw", "test compile package verify validate"),
    project("gradle gradlew ./gradlew", "test build check assemble *"),
    project("dotnet", "build test run format restore"),
    project("swift", "build test"),
    project("mix", "test compile format"),
    project("bundle", "exec/rspec exec/rubocop exec/rake install"),
    project("rspec rubocop phpunit phpstan pest", ""),
    project("composer", "test validate"),
    project("sbt", "test compile"),
    project("stack cabal", "build test"),
    project("zig", "build test fmt"),
    project("terraform tofu", "fmt validate plan"),
    project("shellcheck shfmt clang-format clang-tidy hadolint yamllint markdownlint", ""),
    own(
        "git",
        "status log diff show add commit fetch pull switch merge rebase cherry-pick blame shortlog describe rev-parse \
         ls-files grep stash/list stash/show stash/push stash/pop stash/apply stash$ checkout/-b worktree/list remote/-v",
    ),
    own(
        "gh",
        "pr/list pr/view pr/status pr/diff pr/checks issue/list issue/view run/list run/view repo/view",
    ),
    own("glab", "mr/list mr/view issue/list issue/view ci/list ci/view"),
    own("docker podman", "ps logs images inspect version info stats top port compose/ps compose/logs"),
    own("docker podman", "build compose/build"),
    own("kubectl", "get describe logs top version"),
    own("rustup", "show toolchain/list target/list"),
    own("pip pip3", "list show freeze check"),
    own("brew apt apt-cache dnf pacman", "list info search show"),
    own("systemctl", "status"),
    own("journalctl", ""),
];

/// What covers a command for good, where something safe does: a prefix, or the whole command.
pub(super) fn safe_grant(simple: &Simple) -> Option<Grant> {
    let words = known_words(&simple.words);
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match matching(&words) {
        Some((_, Extent::Prefix(n_words))) => Some(Grant::RunPrefix(owned(&words[..n_words]))),
        // What is not known before it runs may be more than options.
        Some((_, Extent::Whole)) if words.len() == simple.words.len() => Some(Grant::RunWhole(owned(&words))),
        Some((_, Extent::Whole)) => None,
        None => script(&words).map(|script| Grant::RunPrefix(vec![script.to_owned()])),
    }
}

/// Tells whether these words could be offered today: as a prefix that ends with them, or as a whole command.
pub(super) fn is_offered(words: &[String], is_whole: bool) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match matching(&words) {
        Some((_, Extent::Prefix(n_words))) => !is_whole && n_words == words.len(),
        Some((_, Extent::Whole)) => is_whole,
        None => !is_whole && words.len() == 1 && script(&words).is_some(),
    }
}

/// Tells whether a prefix lets the project's own code run.
pub(super) fn runs_project(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matching(&words).is_none_or(|(row, _)| row.code == Code::Project)
}

/// Programs of which each operand is a target, a goal or a task: what is allowed of one says nothing of another.
const OF_TARGETS: &[&str] = &[
    "make", "gmake", "just", "task", "rake", "mage", "invoke", "mvn", "mvnw", "gradle", "gradlew", "sbt",
    "lein",
];

/// Their options whose value is the next word, whatever that is.
const VALUED: &[&str] = &["--tests", "-pl", "--projects"];

/// Tells whether a command names more targets than a prefix of so many words.
pub(super) fn has_more_targets(words: &[Word], n_covered: usize) -> bool {
    let is_one =
        words.first().and_then(Word::whole).is_some_and(|program| OF_TARGETS.contains(&base(program)));
    let is_target = |at: usize| {
        let (before, text) = (words[at - 1].text.as_str(), words[at].text.as_str());
        let is_number = text.starts_with(|first: char| first.is_ascii_digit()) && before.starts_with('-');
        !text.starts_with('-') && !is_number && !VALUED.contains(&before)
    };
    is_one && (n_covered.max(1)..words.len()).any(is_target)
}

/// What together covers commands for good; `None` where one of them has nothing safe.
pub(super) fn of_commands<'a>(commands: impl Iterator<Item = &'a Simple>) -> Option<Vec<Grant>> {
    let mut grants = Vec::new();
    for command in commands {
        if command.words.is_empty() || harmless::needs_no_rule(command) {
            continue;
        }
        match (safe_grant(command), &command.inner) {
            (Some(grant), _) => grants.push(grant),
            (None, Some(inner)) if inner.through == Through::Plainly => {
                grants.extend(of_commands(inner.commands.iter())?);
            }
            (None, _) => return None,
        }
    }
    Some(grants)
}

/// How much of a command a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// All of it, as it is.
    Whole,
    /// So many words, whatever follows.
    Prefix(usize),
}

/// Finds the row that covers most words of a command, a prefix rather than the whole.
fn matching(words: &[&str]) -> Option<(&'static Row, Extent)> {
    let program = *words.first()?;
    let names = |row: &&Row| row.programs.split(' ').any(|name| name == program);
    let covers = ROWS.iter().filter(names).filter_map(|row| {
        let extents = row.then.split(' ').filter_map(|then| match then {
            "" => Some(Extent::Prefix(1)),
            then => follows(then, &words[1..]),
        });
        extents.max().map(|extent| (row, extent))
    });
    covers.max_by_key(|(_, extent)| *extent)
}

/// Tells how much an alternative covers when the command goes on with these words.
fn follows(then: &str, words: &[&str]) -> Option<Extent> {
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
        false => Some(Extent::Prefix(parts.len() + 1)),
        true => has_options_only().then_some(Extent::Whole),
    }
}

/// A script or program of the project, by a path that stays below the folder the session works in.
fn script<'a>(words: &[&'a str]) -> Option<&'a str> {
    let program = *words.first()?;
    let below = program.strip_prefix("./")?;
    let is_plain = below.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
    (is_plain && !base(program).is_empty()).then_some(program)
}

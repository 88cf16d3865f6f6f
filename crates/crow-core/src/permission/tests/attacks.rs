//! Lines by an attacker who wants more than edits and builds of the project.

use super::*;

/// Returns the lines of a text that run without asking.
fn free(mode: Mode, grants: &GrantSet, lines: &str) -> String {
    let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_free = |line: &&str| {
        decide(mode, &PermissionRules::default(), &runs(&line.replace('⏎', "\n")), grants)
            == PermissionDecision::Allow
    };
    lines.filter(is_free).map(|line| format!("{line}\n")).collect()
}

#[test]
fn attack_lines_are_not_free() {
    assert_eq!(free(Mode::AcceptEdits, &GrantSet::default(), include_str!("attacks.txt")), "");
}

/// Lines beyond the granted prefixes.
const BEYOND: &str = "
cargo test --config x
FOO=1 cargo test
RUSTFLAGS=-Clinker=./x cargo test
cargo test; ./evil
cargo testing
cargo -C /x test
cargo --manifest-path /x test
cargo test > /etc/x
cargo test > .envrc
cargo test | sh
cargo test && cargo publish
cargo run
Cargo test
./cargo test
/x/cargo test
npm run build:publish
npm --prefix /x run build
npm run build --script-shell=./x
npm run --prefix=/x build
make test install
make test -j deploy
make test -k deploy
./gradlew test publish
mvn test deploy
just test deploy
make -C /x test
make test SHELL=./x
make test -f /x
git -c core.sshCommand=x fetch
git -C /x fetch
git --git-dir=/x commit
git --exec-path=. commit
git fetch --upload-pack=x
git fetch ext::sh
git fetch ./evil
git fetch file:///x
git fetch /tmp/evil
git commit -m \"$(id)\"
git commit --template=$X
cd evil && git commit -m x
GIT_SSH_COMMAND=x git fetch
GIT_EDITOR=x git commit
sudo cargo test
sudo git commit
env -C /x cargo test
env PATH=. cargo test
timeout -s KILL 5 cargo build
xargs cargo test
sh -c 'cargo test' x; ./evil
gcc -o /etc/x a.c
gcc -o .envrc -E a.c
gcc -wrapper ./x a.c
gcc @x
python3 -m pytest -p evil
python3 -m pytest --rootdir /x
python3 -m pytester
python3 -mpytest; ./evil
PYTHONSTARTUP=x python3 -m pytest
";

#[test]
fn grant_covers_its_words_only() {
    let prefixes = [
        "cargo test",
        "npm run build",
        "make test",
        "git commit",
        "git fetch",
        "gcc",
        "./gradlew test",
        "mvn test",
        "just test",
        "python3 -m pytest",
    ];
    let prefixes = prefixes.map(|words| Grant::RunPrefix(words.split(' ').map(str::to_owned).collect()));
    assert_eq!(free(Mode::Ask, &GrantSet::from_iter(prefixes), BEYOND), "");
}

#[test]
fn grant_for_target_allows_options_with_values() {
    let prefixes = ["make test", "./gradlew test", "mvn test"];
    let prefixes = prefixes.map(|words| Grant::RunPrefix(words.split(' ').map(str::to_owned).collect()));
    let lines =
        "make test\nmake test -j8\nmake test -j 8 -k\n./gradlew test --tests A.b\nmvn test -q -pl core\n";
    assert_eq!(free(Mode::Ask, &GrantSet::from_iter(prefixes), lines), lines);
}

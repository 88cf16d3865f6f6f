//! Compares names and numbers with the scripts of the real Spec Kit: `CROW_TEST_SPECIFY` is the path of its `specify`,
//! `CROW_TEST_SPECIFY_CASES` the number of cases. Without the program the test passes.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that compares nothing says so")]
#![expect(clippy::disallowed_methods, reason = "another program is what is compared with")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crow_speckit::{
    FeatureNumbering, NewFeature, SpeckitError, SpeckitProject, SpecsLink, SpecsRoot, parse_number,
    preview_feature,
};

/// The number of cases of a full test run; each one starts about twenty programs.
const CASES: usize = 120;

/// Runs the script for each case in its own project: directory, short name, number and description end with a zero
/// byte.
const BATCH: &str = r#"
    while IFS= read -r -d '' root && IFS= read -r -d '' name && IFS= read -r -d '' number && IFS= read -r -d '' text; do
        SPECIFY_INIT_DIR="$root" bash "$1" --json --dry-run ${name:+--short-name "$name"} \
            ${number:+--number "$number"} "$text" 2>/dev/null </dev/null || echo '{}'
    done
"#;

const FOLDERS: [&str; 14] = [
    "001-a",
    "002-b",
    "0099-x",
    "12-short",
    "20260101-120000-t",
    "999-z",
    "1000-q",
    "003",
    "010-ü",
    "007-",
    ".hidden",
    "20260101-120000",
    "99999999999999999999-x",
    "011-x-y",
];
const NUMBERS: [&str; 12] =
    ["", "", "", "", "", "0", "1", "007", "12", "1000", "9223372036854775807", "9223372036854775808"];
const WORDS: [&str; 40] = [
    "a",
    "the",
    "I",
    "want",
    "to",
    "add",
    "API",
    "api",
    "DB",
    "db",
    "UI",
    "x",
    "42",
    "photo",
    "albums",
    "User-auth",
    "x_DB",
    "OAuth2",
    "Größe",
    "Ünïcode",
    "写真",
    "アルバム",
    "по-русски",
    "γλώσσα",
    "شبكة",
    "٣",
    "²",
    "Ⅳ",
    "ⓐ",
    "हिन्दी",
    "é",
    "e\u{301}",
    "ﬁn",
    "ＡＢＣ",
    "🎯",
    "ß",
    "my",
    "need",
    "\u{2028}",
    "ab1",
];
const SEPARATORS: [&str; 12] = [" ", " ", " ", " ", " ", "  ", "-", "_", "\n", "\t", "/", "…"];

/// A deterministic random number generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn text(&mut self, n_words: usize) -> String {
        let mut text = String::new();
        for _ in 0..n_words {
            text.push_str(self.of(&WORDS));
            text.push_str(self.of(&SEPARATORS));
        }
        if self.below(30) == 0 {
            text.push_str(&self.of(&["long", "länge", "写真-"]).repeat(60));
        }
        text
    }
}

struct Case {
    project: SpeckitProject,
    short_name: String,
    number: String,
    description: String,
}

fn draw(folder: &Path, n: usize, draw: &mut Draw) -> Case {
    let root = folder.join(n.to_string());
    fs::create_dir_all(root.join(".specify")).unwrap();
    fs::create_dir_all(root.join("specs")).unwrap();
    for _ in 0..draw.below(5) {
        fs::create_dir_all(root.join("specs").join(draw.of(&FOLDERS))).unwrap();
    }
    fs::write(root.join("specs/020-file"), "").unwrap();
    if draw.below(40) == 0 {
        fs::create_dir_all(root.join("specs/9223372036854775807-last")).unwrap();
    }
    let n_words = draw.below(3) + 1;
    let short_name = if draw.below(4) == 0 { draw.text(n_words) } else { String::new() };
    let n_words = draw.below(9) + 1;
    let description = draw.text(n_words);
    Case {
        project: SpeckitProject::from_root(root),
        short_name,
        number: draw.of(&NUMBERS).to_owned(),
        description,
    }
}

/// Crow's output in the script's format; empty if it rejects the case or the name has no words.
fn ours(case: &Case) -> String {
    let would = || -> Result<String, SpeckitError> {
        let numbering = match case.number.as_str() {
            "" => FeatureNumbering::Next,
            number => FeatureNumbering::Prefer(parse_number(number)?),
        };
        let made = preview_feature(
            &case.project,
            &NewFeature {
                description: &case.description,
                short_name: Some(case.short_name.as_str()).filter(|name| !name.is_empty()),
                numbering,
                dir: None,
                specs_root: &SpecsRoot::parse("specs")?,
                specs_link: SpecsLink::Off,
                now: &"2026-01-02T03:04:05[UTC]".parse().unwrap(),
            },
        )?;
        let spec = made.feature.spec_path().display().to_string();
        Ok(serde_json::json!({
            "BRANCH_NAME": made.feature.name, "SPEC_FILE": spec, "FEATURE_NUM": made.prefix, "DRY_RUN": true,
        })
        .to_string())
    };
    would().unwrap_or_else(|_| "{}".to_owned())
}

#[test]
fn names_and_numbers_are_those_of_the_real_script() {
    let Some(specify) = std::env::var_os("CROW_TEST_SPECIFY").filter(|path| !path.is_empty()) else {
        eprintln!("not compared: CROW_TEST_SPECIFY names no specify");
        return;
    };
    let cases = std::env::var("CROW_TEST_SPECIFY_CASES").ok();
    let cases: usize = cases.map_or(CASES, |cases| cases.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let real = root.join("real");
    fs::create_dir(&real).unwrap();
    let mut init = Command::new(&specify);
    init.args(["init", "--here", "--force", "--integration", "none", "--script", "sh"]).current_dir(&real);
    let init = init.env("HOME", &root).stdin(Stdio::null()).output().unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stdout));
    let mut random = Draw(20_261_122);
    let cases: Vec<Case> = (0..cases).map(|n| draw(&root, n, &mut random)).collect();
    // Next to it is a Python that starts at once; the first one in `PATH` may be a wrapper script.
    let path = std::env::var_os("PATH").unwrap();
    let beside = Path::new(&specify).parent().unwrap().to_owned();
    let path = std::env::join_paths([beside].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut batch = Command::new("bash")
        .env("PATH", path)
        .args(["-c", BATCH, "batch"])
        .arg(real.join(".specify/scripts/bash/create-new-feature.sh"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = batch.stdin.take().unwrap();
    let mut words = Vec::new();
    for case in &cases {
        let root = case.project.root().display().to_string();
        for word in [&root, &case.short_name, &case.number, &case.description] {
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
    }
    let writer = std::thread::spawn(move || stdin.write_all(&words).unwrap());
    let printed = String::from_utf8(batch.wait_with_output().unwrap().stdout).unwrap();
    writer.join().unwrap();
    let theirs: Vec<&str> = printed.lines().collect();
    assert_eq!(theirs.len(), cases.len());
    let mut n_refused = 0;
    for (case, theirs) in cases.iter().zip(theirs) {
        // For a name without words the real tool prints a warning; Crow rejects it.
        let theirs = if theirs.contains("-\",\"SPEC_FILE\"") { "{}" } else { theirs };
        n_refused += usize::from(theirs == "{}");
        let what = (&case.short_name, &case.number, &case.description);
        assert_eq!(ours(case), theirs, "{what:?} in {}", case.project.root().display());
    }
    assert!(n_refused * 2 < cases.len(), "most cases are refused: {n_refused}");
    eprintln!("{} cases, {n_refused} refused by both", cases.len());
}

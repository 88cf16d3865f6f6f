//! Modules that use each other. A crate is read from its low modules up, so a circle has to be short enough to be read
//! at once.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::{is_test, sources};

/// A module and its parts that cannot be understood without each other.
const CIRCLE_LEN_MAX: usize = 3;

/// Crates with longer circles, and the longest of each.
const LONGER_CIRCLES: [(&str, usize); 0] = [];

/// Re-exports of re-exports; no crate has as many.
const REEXPORTS_MAX: usize = 8;

/// The path of a module in its crate; that of the root is empty.
type ModulePath = Vec<String>;

/// The modules of a crate, without those of its tests.
#[derive(Default)]
struct CrateModules(BTreeMap<ModulePath, ModuleUses>);

/// The names that a module uses.
#[derive(Default)]
struct ModuleUses {
    /// Paths outside imports, as written.
    paths: BTreeSet<Vec<String>>,
    /// The names that it imports, each with its path.
    imports: BTreeMap<String, Vec<String>>,
    /// The names that it imports for others.
    exports: BTreeMap<String, Vec<String>>,
    /// Words outside imports.
    words: BTreeSet<String>,
    /// Modules that only tests have.
    test_modules: BTreeSet<String>,
}

/// One name of an import.
struct ImportedName {
    path: Vec<String>,
    /// The name in the importing module.
    name: String,
}

impl CrateModules {
    /// Reads files, each with its path below `src`.
    fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut modules = Self::default();
        for (file, text) in files {
            let mut path: ModulePath = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if path.first().is_some_and(|first| first == "bin") {
                continue;
            }
            if path.len() == 1 && ["lib", "main"].contains(&path[0].as_str())
                || path.last().is_some_and(|last| last == "mod")
            {
                path.pop();
            }
            let mut uses = ModuleUses::default();
            uses.read_tokens(&text.parse().expect("a file of Rust"));
            modules.0.insert(path, uses);
        }
        let tests: Vec<ModulePath> = modules
            .0
            .iter()
            .flat_map(|(path, uses)| uses.test_modules.iter().map(|name| child_of(path, name)))
            .collect();
        modules.0.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        modules
    }

    /// Returns the modules that a module uses.
    fn used_by(&self, module: &ModulePath) -> BTreeSet<ModulePath> {
        let uses = &self.0[module];
        let exported = uses.exports.iter().filter(|(name, _)| uses.words.contains(*name));
        let imported = uses.imports.values().chain(exported.map(|(_, path)| path)).cloned();
        // A path may begin with an imported module.
        let paths = uses.paths.iter().map(|path| match uses.imports.get(&path[0]) {
            Some(import) => [import.as_slice(), &path[1..]].concat(),
            None => path.clone(),
        });
        let mut used: BTreeSet<ModulePath> =
            imported.chain(paths).filter_map(|path| self.resolve(module, &path, REEXPORTS_MAX)).collect();
        used.remove(module);
        // Every module may use the crate itself.
        used.remove(&ModulePath::new());
        used
    }

    /// Finds the module that a path in a module leads to, if it is one of the crate.
    fn resolve(&self, module: &ModulePath, path: &[String], n_reexports: usize) -> Option<ModulePath> {
        let (mut current, mut rest) = match path.first()?.as_str() {
            "crate" => (ModulePath::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => {
                let n_up = path.iter().take_while(|segment| *segment == "super").count();
                (module[..module.len().checked_sub(n_up)?].to_vec(), &path[n_up..])
            }
            first if self.0.contains_key(&child_of(module, first)) => (module.clone(), path),
            _ => return None,
        };
        while let Some(next) = rest.first().map(|next| child_of(&current, next)) {
            if !self.0.contains_key(&next) {
                break;
            }
            (current, rest) = (next, &rest[1..]);
        }
        let export = rest.first().and_then(|name| self.0.get(&current)?.exports.get(name));
        if let (Some(export), 1..) = (export, n_reexports) {
            let path = [export.as_slice(), &rest[1..]].concat();
            if let Some(module) = self.resolve(&current, &path, n_reexports - 1) {
                return Some(module);
            }
        }
        Some(current)
    }

    /// Returns the circles, each in order.
    fn circles(&self) -> BTreeSet<Vec<ModulePath>> {
        let uses: BTreeMap<_, _> = self.0.keys().map(|module| (module, self.used_by(module))).collect();
        let reached: BTreeMap<_, _> =
            self.0.keys().map(|module| (module, reachable(&uses, module))).collect();
        let circle = |module: &ModulePath| -> Vec<ModulePath> {
            reached[module].iter().filter(|other| reached[other].contains(module)).cloned().collect()
        };
        self.0.keys().map(circle).filter(|circle| circle.len() > 1).collect()
    }
}

impl ModuleUses {
    fn read_tokens(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut index = 0;
        while index < tokens.len() {
            let rest = &tokens[index..];
            index += if is_test_attribute(rest) {
                self.skip_test_item(rest)
            } else if is_word(&rest[0], "use") {
                let is_public = match &tokens[..index] {
                    [.., word, TokenTree::Group(_)] | [.., word] => is_word(word, "pub"),
                    [] => false,
                };
                self.read_import(rest, is_public)
            } else if let Some(path) = leading_path(rest) {
                self.words.insert(path[0].clone());
                let n_tokens = path.len() * 3 - 2;
                if path.len() > 1 {
                    self.paths.insert(path);
                }
                n_tokens
            } else {
                if let TokenTree::Group(group) = &rest[0] {
                    self.read_tokens(&group.stream());
                }
                1
            };
        }
    }

    /// Reads an import; returns the number of its tokens.
    fn read_import(&mut self, tokens: &[TokenTree], is_public: bool) -> usize {
        let n_tokens = tokens.iter().position(|token| is_sign(token, ';')).unwrap_or(tokens.len());
        for ImportedName { path, name } in imported_names(&tokens[1..n_tokens], &[]) {
            if is_public {
                self.exports.insert(name, path)
            } else {
                self.imports.insert(name, path)
            };
        }
        n_tokens
    }

    /// Skips an item of tests; returns the number of its tokens.
    fn skip_test_item(&mut self, tokens: &[TokenTree]) -> usize {
        let is_end = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => is_sign(token, ';'),
        };
        let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
        if let [.., word, name, _] = &tokens[..end]
            && is_word(word, "mod")
        {
            self.test_modules.insert(name.to_string());
        }
        end
    }
}

/// Expands the tree of an import.
fn imported_names(tree: &[TokenTree], prefix: &[String]) -> Vec<ImportedName> {
    let mut names = Vec::new();
    for branch in tree.split(|token| is_sign(token, ',')).filter(|branch| !branch.is_empty()) {
        let words: Vec<String> = branch
            .iter()
            .filter(|token| matches!(token, TokenTree::Ident(_)))
            .map(TokenTree::to_string)
            .collect();
        let n_words = words.iter().position(|word| word == "as").unwrap_or(words.len());
        let path = [prefix, &words[..n_words]].concat();
        match branch.last() {
            Some(TokenTree::Group(group)) => {
                let tree: Vec<TokenTree> = group.stream().into_iter().collect();
                names.extend(imported_names(&tree, &path));
            }
            _ => names.extend(words.last().cloned().map(|name| ImportedName { path, name })),
        }
    }
    names
}

/// Returns the words of the path that tokens begin with.
fn leading_path(tokens: &[TokenTree]) -> Option<Vec<String>> {
    let TokenTree::Ident(first) = tokens.first()? else { return None };
    let mut path = vec![first.to_string()];
    while let [TokenTree::Punct(one), other, TokenTree::Ident(next), ..] = &tokens[path.len() * 3 - 2..]
        && (one.as_char(), one.spacing()) == (':', Spacing::Joint)
        && is_sign(other, ':')
    {
        path.push(next.to_string());
    }
    Some(path)
}

/// Whether tokens begin with an attribute that leaves the next item to tests.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [sign, TokenTree::Group(attribute), ..] = tokens else { return false };
    let text = attribute.stream().to_string().replace(' ', "");
    is_sign(sign, '#') && (text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if *ident == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn child_of(module: &ModulePath, name: &str) -> ModulePath {
    [module.as_slice(), &[name.to_owned()]].concat()
}

/// Returns the modules that a module uses, directly or not.
fn reachable(
    uses: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>,
    module: &ModulePath,
) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&ModulePath> = vec![module];
    while let Some(next) = waiting.pop() {
        waiting.extend(uses[next].iter().filter(|used| reached.insert((*used).clone())));
    }
    reached
}

/// Reads a made-up crate, where each file follows a line with its path, and shows what its modules use.
#[track_caller]
fn check_uses(files: &str, wanted: &Expect) {
    let files = files.split("//- ").filter_map(|file| file.split_once('\n'));
    let modules = CrateModules::read(files);
    let lines = modules.0.keys().map(|module| {
        let used: Vec<String> = modules.used_by(module).iter().map(|used| used.join("/")).collect();
        format!("{}: {}\n", module.join("/"), used.join(" ")).replace(": \n", ":\n")
    });
    wanted.assert_eq(&lines.collect::<String>());
}

#[test]
fn circles_of_modules_are_found_through_imports_and_exports() {
    check_uses(
        "//- lib.rs
mod low; mod high; mod side;
pub use low::Low;
//- low.rs
pub struct Low; // high::High
//- high.rs
mod part;
pub(crate) use self::part::Part as OtherPart;
pub(crate) use part::UnusedPart;
use crate::{Low, side::{self as aside, Side}};
fn build(part: OtherPart) -> Low { \"side::Side\"; aside::build() }
//- high/part.rs
use super::super::{Low, side};
pub struct Part(Low);
#[cfg(test)]
mod tests;
#[cfg(test)]
mod inline { use crate::high::OtherPart; }
#[cfg(test)]
use super::OtherPart;
//- high/part/tests.rs
use crate::high::OtherPart;
//- side/mod.rs
pub fn build() { let parts: Vec<crate::high::UnusedPart> = std::mem::take(&mut low::missing()); }
",
        &expect![[r#"
            :
            high: high/part low side
            high/part: low side
            low:
            side: high/part
        "#]],
    );
}

#[test]
fn circles_of_modules_are_short() {
    let mut crates = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for (name, text) in sources().iter().filter(|(name, _)| !is_test(name) || name.contains("crow-testkit")) {
        if let Some((owner, file)) = name.strip_prefix("crates/").and_then(|name| name.split_once("/src/")) {
            crates.entry(owner).or_default().push((file, text));
        }
    }
    let mut broken = Vec::new();
    for (owner, files) in crates {
        let longer = LONGER_CIRCLES.iter().find(|(name, _)| *name == owner);
        let len_max = longer.map_or(CIRCLE_LEN_MAX, |(_, len)| *len);
        for circle in CrateModules::read(files).circles() {
            if circle.len() > len_max {
                let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
                broken.push(format!("{owner}: {}: {}", names.len(), names.join(", ")));
            }
        }
    }
    super::check("modules that use each other are few; move what they share to a lower one", &broken);
}

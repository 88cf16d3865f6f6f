//! Links of the documents lead to files and headings that exist, and the site has every page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{check, root};

/// Directories without documents of ours, and those with Spec Kit's pages, whose links are for other projects.
const NO_DOCUMENTS: [&str; 5] = ["target", "node_modules", ".git", "pages", "tasks/tests"];

/// The headings and the links of a document.
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

/// Returns the Markdown files of the project, by their paths from the root, in the directories that hold documents.
fn documents() -> BTreeMap<PathBuf, Document> {
    let root = root();
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder") {
            let name = folder.join(entry.expect("an entry").file_name());
            let is_skipped = NO_DOCUMENTS.iter().any(|skipped| name.ends_with(skipped));
            let path = root.join(&name);
            if path.is_dir() && !path.is_symlink() && !is_skipped {
                folders.push(name);
            } else if name.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("a document");
                found.insert(name, read_document(&text));
            }
        }
    }
    found
}

fn read_document(text: &str) -> Document {
    let mut document = Document { anchors: BTreeSet::new(), links: Vec::new() };
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                document.anchors.insert(anchor(&heading.take().expect("its start")));
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Start(_) | Event::End(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
            Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => {}
            Event::SoftBreak | Event::HardBreak | Event::Rule | Event::TaskListMarker(_) => {}
        }
    }
    document
}

/// Returns the anchor that GitHub and mdBook give to a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|&letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Resolves `..` by name; a link cannot leave the root.
fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::Normal(name) => result.push(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    result
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    assert!(documents.len() > 50, "{} documents", documents.len());
    let mut broken = Vec::new();
    for (name, document) in &documents {
        for link in document.links.iter().filter(|link| !link.contains(':')) {
            let (path, fragment) = link.split_once('#').map_or((link.as_str(), None), |(p, f)| (p, Some(f)));
            let target = match path {
                "" => name.clone(),
                _ => normalized(&name.parent().expect("a file's directory").join(path)),
            };
            if !root().join(&target).exists() {
                broken.push(format!("{}: {link}", name.display()));
            } else if let (Some(fragment), Some(target)) = (fragment, documents.get(&target))
                && !target.anchors.contains(fragment)
            {
                broken.push(format!("{}: {link}: no such heading", name.display()));
            }
        }
    }
    check("links lead to files and headings that exist", &broken);
}

#[test]
fn the_site_has_each_page_and_leads_to_no_other_file() {
    let documents = documents();
    let docs = Path::new("docs");
    let summary = &documents[&docs.join("SUMMARY.md")];
    let listed: BTreeSet<PathBuf> = summary.links.iter().map(|link| docs.join(link)).collect();
    let pages: Vec<&PathBuf> = documents.keys().filter(|name| name.starts_with(docs)).collect();
    let mut broken: Vec<String> = pages
        .iter()
        .filter(|name| !listed.contains(**name) && !name.ends_with("SUMMARY.md"))
        .map(|name| format!("docs/SUMMARY.md does not list {}", name.display()))
        .collect();
    for name in pages {
        let links = documents[name].links.iter().filter(|link| !link.contains(':') && !link.starts_with('#'));
        let outside = links.filter(|link| {
            let path = link.split('#').next().unwrap_or_default();
            !normalized(&name.parent().expect("a file's directory").join(path)).starts_with(docs)
        });
        broken.extend(outside.map(|link| format!("{}: {link} is not part of the site", name.display())));
    }
    check("docs/SUMMARY.md lists every page, and pages link to pages", &broken);
}

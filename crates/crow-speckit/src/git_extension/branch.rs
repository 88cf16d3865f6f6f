//! The name of a feature's branch. Branch and directory names are not derived from each other, because they have
//! separate counters.

use crate::SpeckitError;
use crate::numbering::is_timestamped;
use crate::slug::{self, NAME_BYTES_MAX};

use super::GitExtensionConfig;

/// The default template.
const DEFAULT_TEMPLATE: &str = "{number}-{slug}";

/// The names that exist already, and the values of placeholders.
#[derive(Debug, Clone, Copy)]
pub struct BranchFacts<'a> {
    /// The names of the features' directories.
    pub directories: &'a [String],
    /// The names of local and remote branches, without `remotes/NAME/`.
    pub branches: &'a [String],
    /// The author: git's `user.name`, or the part of `user.email` before the `@`.
    pub author: &'a str,
    /// The name of the project's directory.
    pub project_name: &'a str,
}

/// The number of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchNumber<'a> {
    /// The next number.
    Next,
    /// This number.
    Exact(u64),
    /// The time as `YYYYMMDD-HHMMSS`.
    Timestamp(&'a str),
}

/// A request for a branch name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchRequest<'a> {
    /// Its number.
    pub number: BranchNumber<'a>,
    /// A short name.
    pub short_name: Option<&'a str>,
    /// The description of the feature, used if there is no short name.
    pub description: &'a str,
}

/// The branch to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureBranch {
    /// Its name.
    pub name: String,
}

/// Returns the branch name for a new feature.
pub fn name_branch(
    config: &GitExtensionConfig,
    facts: &BranchFacts<'_>,
    request: &BranchRequest<'_>,
) -> Result<FeatureBranch, SpeckitError> {
    let template = resolve_template(&config.branch_template)?;
    let slug_or_default = |text: &str, default: &str| {
        let slug = slugify_words(text);
        if slug.is_empty() { default.to_owned() } else { slug }
    };
    let template = template
        .replace("{author}", &slug_or_default(facts.author, "unknown"))
        .replace("{app}", &slug_or_default(facts.project_name, "app"));
    let mut slug =
        request.short_name.map_or_else(|| slug_from_description(request.description), slugify_words);
    if slug.is_empty() {
        let reason = "the description has no word for a branch name; give a short name of letters and digits";
        return Err(SpeckitError::Invalid(reason.to_owned()));
    }
    let number = match request.number {
        BranchNumber::Timestamp(timestamp) => timestamp.to_owned(),
        BranchNumber::Exact(number) => format!("{number:03}"),
        BranchNumber::Next => {
            let scope = template.split("{number}").next().unwrap_or_default();
            format!("{:03}", highest_number(facts, scope).saturating_add(1))
        }
    };
    let render = |slug: &str| template.replace("{number}", &number).replace("{slug}", slug);
    while render(&slug).len() > NAME_BYTES_MAX && slug.pop().is_some() {
        slug.truncate(slug.trim_end_matches('-').len());
    }
    let name = render(&slug);
    check_branch_name(&name)?;
    Ok(FeatureBranch { name })
}

/// Accepts a name as given.
pub fn exact_branch_name(name: &str) -> Result<FeatureBranch, SpeckitError> {
    check_branch_name(name)?;
    Ok(FeatureBranch { name: name.to_owned() })
}

/// Returns the largest number used by directories, and by branches in the same scope.
fn highest_number(facts: &BranchFacts<'_>, scope: &str) -> u64 {
    let directories = facts.directories.iter().map(String::as_str);
    let directories = directories.filter(|name| !is_timestamped(name) && leading_digits(name).len() >= 3);
    let directories = directories.filter(|name| name[leading_digits(name).len()..].starts_with('-'));
    let branches = facts.branches.iter().filter_map(|name| name.strip_prefix(scope));
    let branches = branches.map(|name| name.rsplit('/').next().unwrap_or(name));
    let branches = branches.filter(|name| !is_timestamped(name) && is_numbered(name));
    // Numbers that do not fit are ignored.
    directories.chain(branches).filter_map(|name| leading_digits(name).parse().ok()).max().unwrap_or(0)
}

fn leading_digits(name: &str) -> &str {
    &name[..name.bytes().take_while(u8::is_ascii_digit).count()]
}

/// Whether a name begins with a number that is not part of a timestamp.
fn is_numbered(name: &str) -> bool {
    let number = leading_digits(name);
    let Some(rest) = name[number.len()..].strip_prefix('-') else { return false };
    let time_digits = leading_digits(rest);
    let is_partial_timestamp = time_digits.len() == 6
        && ((number.len() == 7 && rest[time_digits.len()..].starts_with('-'))
            || ((number.len() == 7 || number.len() == 8) && rest.len() == time_digits.len()));
    number.len() >= 3 && !is_partial_timestamp
}

fn resolve_template(template: &str) -> Result<String, SpeckitError> {
    if template.is_empty() {
        return Ok(DEFAULT_TEMPLATE.to_owned());
    }
    let last_segment = template.rsplit('/').next().unwrap_or(template);
    let before_slug = template.split("{slug}").next().unwrap_or(template);
    let is_number_first = template.matches("{number}").count() == before_slug.matches("{number}").count();
    if last_segment.starts_with("{number}-") && is_number_first {
        return Ok(template.to_owned());
    }
    Err(SpeckitError::Invalid(format!(
        "the branch_template {template:?} has no {{number}}- at the start of its last segment, or {{slug}} before \
         {{number}}; correct .specify/extensions/git/git-config.yml"
    )))
}

/// Rejects names that git rejects or would take for an option.
fn check_branch_name(name: &str) -> Result<(), SpeckitError> {
    let is_forbidden =
        |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    let is_invalid_component =
        |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let reason = if name.len() > NAME_BYTES_MAX {
        format!("it has more than {NAME_BYTES_MAX} bytes")
    } else if name.starts_with('-')
        || name == "@"
        || name.ends_with('.')
        || name.contains("..")
        || name.contains("@{")
        || name.contains(is_forbidden)
        || name.split('/').any(is_invalid_component)
    {
        "git rejects it".to_owned()
    } else {
        return Ok(());
    };
    Err(SpeckitError::Invalid(format!("{name:?} cannot be the name of a branch: {reason}")))
}

fn slugify_words(text: &str) -> String {
    split_words(text).join("-")
}

/// Joins the most significant words of a description.
fn slug_from_description(description: &str) -> String {
    let parts = split_words(description);
    slug::join_significant_words(&parts.iter().map(String::as_str).collect::<Vec<_>>(), description)
}

fn split_words(text: &str) -> Vec<String> {
    let lowercase = text.to_lowercase();
    let is_slug_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    lowercase.split(|c| !is_slug_char(c)).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

//! The rules for `constitution.md`.

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use super::common::{find_brackets, is_all_caps, parse_sections};
use super::problem::{LintProblem, first_problems};
use crate::markdown;

/// Whether a constitution is still its template. `record` is the content of `.constitution-template.json`.
pub(crate) fn is_unfilled(text: &str, record: Option<&str>) -> bool {
    let recorded = record.and_then(|record| serde_json::from_str::<serde_json::Value>(record).ok());
    let template_hash = recorded.as_ref().and_then(|record| record.get("sha256")?.as_str());
    let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    template_hash.is_some_and(|template_hash| template_hash.eq_ignore_ascii_case(&hash))
        || text.trim().is_empty()
        || placeholder_tokens(text).next().is_some()
}

/// Lists the problems in a constitution, compared with the one before.
pub(crate) fn check_constitution(old_text: Option<&str>, new_text: &str) -> Vec<LintProblem> {
    let mut problems: Vec<LintProblem> = placeholder_tokens(new_text)
        .map(|(line, token)| {
            LintProblem::at_line(line, format!("{token} is still there; replace it, or remove its section"))
        })
        .collect();
    let prose = markdown::prose_text(new_text);
    let is_principles_title = |title: &str| title.to_lowercase().contains("principle");
    let sections = parse_sections(&prose, 2);
    let n_principles = sections
        .iter()
        .filter(|section| is_principles_title(section.title()))
        .map(|section| count_principles(&section.lines))
        .sum::<usize>();
    if n_principles == 0 {
        problems.push(LintProblem::for_page(
            "there is no principle; add `### I. Title` with its text under ## Core Principles",
        ));
    }
    let stamp = parse_version_stamp(&prose);
    match &stamp {
        None => problems.push(LintProblem::for_page(
            "the last line is missing: **Version**: 1.0.0 | **Ratified**: 2026-01-31 | **Last Amended**: 2026-01-31",
        )),
        Some(stamp) => check_version_stamp(stamp, &mut problems),
    }
    if let (Some(before), Some(stamp)) =
        (old_text.filter(|text| !is_unfilled(text, None) && *text != new_text), &stamp)
    {
        check_amendment(before, stamp, &mut problems);
    }
    first_problems(problems)
}

/// Finds placeholders such as `[PROJECT_NAME]`, with their lines.
fn placeholder_tokens(text: &str) -> impl Iterator<Item = (usize, String)> {
    find_brackets(&markdown::prose_text(text)).into_iter().filter_map(|bracket| {
        let name = bracket.text.strip_prefix('[')?.strip_suffix(']')?;
        is_all_caps(name).then(|| (bracket.line, bracket.text.clone()))
    })
}

/// Counts headings that have text below them.
fn count_principles(lines: &[markdown::MarkdownLine<'_>]) -> usize {
    let mut n_principles = 0;
    let mut awaits_text = false;
    for line in lines {
        if markdown::parse_heading(line.text)
            .is_some_and(|heading| heading.level == 3 && !heading.title.is_empty())
        {
            awaits_text = true;
        } else if awaits_text && line.text.chars().any(char::is_alphanumeric) {
            n_principles += 1;
            awaits_text = false;
        }
    }
    n_principles
}

/// The last line of a constitution.
struct VersionStamp {
    line: usize,
    version: String,
    ratified: String,
    last_amended: String,
}

fn parse_version_stamp(prose: &str) -> Option<VersionStamp> {
    let lines: Vec<_> = markdown::split_lines(prose).collect();
    let line = lines.iter().rev().find(|line| line.text.contains("**Version**"))?;
    let value = |name: &str| {
        let (_, rest) = line.text.split_once(&format!("**{name}**"))?;
        Some(rest.split('|').next().unwrap_or(rest).trim_start_matches(':').trim().to_owned())
    };
    let line = line.number;
    Some(VersionStamp {
        line,
        version: value("Version")?,
        ratified: value("Ratified")?,
        last_amended: value("Last Amended")?,
    })
}

fn check_version_stamp(stamp: &VersionStamp, problems: &mut Vec<LintProblem>) {
    let mut report = |text: String| problems.push(LintProblem::at_line(stamp.line, text));
    if parse_version(&stamp.version).is_none() {
        report(format!("the version {:?} is not of the form 1.0.0", stamp.version));
    }
    for (name, date) in [("Ratified", &stamp.ratified), ("Last Amended", &stamp.last_amended)] {
        // Unknown dates are written as a TODO.
        if !is_date(date) && !date.starts_with("TODO(") {
            report(format!("{name} is {date:?}, which is not a date such as 2026-01-31"));
        }
    }
}

fn check_amendment(old_text: &str, stamp: &VersionStamp, problems: &mut Vec<LintProblem>) {
    let Some(old_stamp) = self::parse_version_stamp(&markdown::prose_text(old_text)) else { return };
    let mut report = |text: String| problems.push(LintProblem::at_line(stamp.line, text));
    if let (Some(old_stamp), Some(new)) = (parse_version(&old_stamp.version), parse_version(&stamp.version))
        && new <= old_stamp
    {
        let [major, minor, patch] = old_stamp;
        report(format!("the rules changed and the version did not go up from {major}.{minor}.{patch}"));
    }
    if is_date(&old_stamp.ratified) && old_stamp.ratified != stamp.ratified {
        report(format!("Ratified was {}, and stays so", old_stamp.ratified));
    }
}

fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len() && text.parse::<Date>().is_ok()
}

fn parse_version(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

//! What a `constitution.md` has to have.

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use super::page::{brackets, is_capitals, sections};
use super::{Problem, first_of};
use crate::markdown;

/// Tells whether a constitution is still its template. The record is what `.constitution-template.json` says.
pub(crate) fn is_unfilled(text: &str, record: Option<&str>) -> bool {
    let recorded = record.and_then(|record| serde_json::from_str::<serde_json::Value>(record).ok());
    let sha = recorded.as_ref().and_then(|record| record.get("sha256")?.as_str());
    let own: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    sha.is_some_and(|sha| sha.eq_ignore_ascii_case(&own))
        || text.trim().is_empty()
        || tokens(text).next().is_some()
}

/// Says what is wrong with a constitution that took the place of this one.
pub(crate) fn check_constitution(before: Option<&str>, after: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = tokens(after)
        .map(|(line, token)| {
            Problem::at(line, format!("{token} is still there; replace it, or remove its section"))
        })
        .collect();
    let prose = markdown::prose(after);
    let is_rules = |title: &str| title.to_lowercase().contains("principle");
    let parts = sections(&prose, 2);
    let n_rules = parts
        .iter()
        .filter(|part| is_rules(part.title()))
        .map(|part| n_principles(&part.lines))
        .sum::<usize>();
    if n_rules == 0 {
        problems.push(Problem::page(
            "there is no principle; add `### I. Title` with its text under ## Core Principles",
        ));
    }
    let stamp = stamp(&prose);
    match &stamp {
        None => problems.push(Problem::page(
            "the last line is missing: **Version**: 1.0.0 | **Ratified**: 2026-01-31 | **Last Amended**: 2026-01-31",
        )),
        Some(stamp) => check_stamp(stamp, &mut problems),
    }
    if let (Some(before), Some(stamp)) =
        (before.filter(|before| !is_unfilled(before, None) && *before != after), &stamp)
    {
        check_amended(before, stamp, &mut problems);
    }
    first_of(problems)
}

/// What is written like `[PROJECT_NAME]`, with its line.
fn tokens(text: &str) -> impl Iterator<Item = (usize, String)> {
    brackets(&markdown::prose(text)).into_iter().filter_map(|bracket| {
        let name = bracket.text.strip_prefix('[')?.strip_suffix(']')?;
        is_capitals(name).then(|| (bracket.line, bracket.text.clone()))
    })
}

/// Headings that have text below them.
fn n_principles(lines: &[markdown::Line<'_>]) -> usize {
    let mut n_found = 0;
    let mut is_open = false;
    for line in lines {
        if markdown::heading(line.text).is_some_and(|heading| heading.level == 3 && !heading.title.is_empty())
        {
            is_open = true;
        } else if is_open && line.text.chars().any(char::is_alphanumeric) {
            n_found += 1;
            is_open = false;
        }
    }
    n_found
}

/// The last line of a constitution.
struct Stamp {
    line: usize,
    version: String,
    ratified: String,
    amended: String,
}

fn stamp(prose: &str) -> Option<Stamp> {
    let lines: Vec<_> = markdown::lines(prose).collect();
    let line = lines.iter().rev().find(|line| line.text.contains("**Version**"))?;
    let value = |name: &str| {
        let (_, rest) = line.text.split_once(&format!("**{name}**"))?;
        Some(rest.split('|').next().unwrap_or(rest).trim_start_matches(':').trim().to_owned())
    };
    let line = line.number;
    Some(Stamp {
        line,
        version: value("Version")?,
        ratified: value("Ratified")?,
        amended: value("Last Amended")?,
    })
}

fn check_stamp(stamp: &Stamp, problems: &mut Vec<Problem>) {
    let mut say = |text: String| problems.push(Problem::at(stamp.line, text));
    if version_of(&stamp.version).is_none() {
        say(format!("the version {:?} is not of the form 1.0.0", stamp.version));
    }
    for (name, date) in [("Ratified", &stamp.ratified), ("Last Amended", &stamp.amended)] {
        // What nobody knows is written as a task.
        if !is_date(date) && !date.starts_with("TODO(") {
            say(format!("{name} is {date:?}, which is not a date such as 2026-01-31"));
        }
    }
}

fn check_amended(before: &str, stamp: &Stamp, problems: &mut Vec<Problem>) {
    let Some(old) = self::stamp(&markdown::prose(before)) else { return };
    let mut say = |text: String| problems.push(Problem::at(stamp.line, text));
    if let (Some(old), Some(new)) = (version_of(&old.version), version_of(&stamp.version))
        && new <= old
    {
        let [major, minor, patch] = old;
        say(format!("the rules changed and the version did not go up from {major}.{minor}.{patch}"));
    }
    if is_date(&old.ratified) && old.ratified != stamp.ratified {
        say(format!("Ratified was {}, and stays so", old.ratified));
    }
}

fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len() && text.parse::<Date>().is_ok()
}

fn version_of(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

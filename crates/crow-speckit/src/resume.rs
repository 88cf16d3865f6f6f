//! Takes up a feature that was begun and not written: an attempt that ended early leaves its folder, and the same words mean
//! that one again.

use std::fs;
use std::path::PathBuf;

use crate::{
    Feature, PageLoader, SpeckitError, SpeckitProject,
    checklist::REQUIREMENTS,
    scaffold::{PageHeader, fill_header},
};

/// Stands where a page has its date; nothing that people type has it.
const DATE_PLACEHOLDER: &str = "\0";

/// Tells whether a feature's spec is missing, or still says what a new one says for this description, whatever its date.
pub fn is_untouched(
    feature: &Feature,
    description: &str,
    pages: &PageLoader<'_>,
) -> Result<bool, SpeckitError> {
    let Some(spec) = SpeckitProject::read_file(&feature.spec_path())? else { return Ok(true) };
    let description = description.replace(DATE_PLACEHOLDER, " ");
    let header = PageHeader { name: &feature.name, date: DATE_PLACEHOLDER, description: &description };
    let untouched_text = fill_header(&pages("spec-template")?.text, header);
    let mut segments = untouched_text.split(DATE_PLACEHOLDER);
    let first = segments.next().unwrap_or_default();
    let mut rest = spec.strip_prefix(first);
    for segment in segments {
        rest = rest.and_then(strip_date).and_then(|rest| rest.strip_prefix(segment));
    }
    Ok(rest == Some(""))
}

/// What stands behind a day as ISO spells it.
fn strip_date(text: &str) -> Option<&str> {
    let (date, rest) = text.split_at_checked("2026-01-01".len())?;
    let matches_format = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    date.bytes().enumerate().all(matches_format).then_some(rest)
}

/// Completes a feature with the pages that a new one has; gives what is new. What is there already stays as it is, and a page
/// that cannot be composed stops it before anything is written.
pub fn resume_feature(
    project: &SpeckitProject,
    feature: &Feature,
    description: &str,
    now: &jiff::Zoned,
    pages: &PageLoader<'_>,
) -> Result<Vec<PathBuf>, SpeckitError> {
    let date = now.date().to_string();
    let header = PageHeader { name: &feature.name, date: &date, description };
    let new_pages = [
        (feature.spec_path(), pages("spec-template")?),
        (feature.checklists_dir().join(REQUIREMENTS), pages("requirements-template")?),
    ];
    let directory = feature.checklists_dir();
    // Outside only where the name says so, not where a link does.
    if feature.dir.starts_with(project.root()) {
        project.check_inside(&directory)?;
    }
    fs::create_dir_all(&directory).map_err(|error| SpeckitError::io(&directory, error))?;
    let mut created = Vec::new();
    for (path, page) in new_pages {
        if SpeckitProject::write_new_file(&path, &fill_header(&page.text, header))? {
            created.push(path);
        }
    }
    Ok(created)
}

#[cfg(test)]
mod tests;

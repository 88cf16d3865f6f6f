//! Resumes a feature that was created but not written: an interrupted attempt leaves its directory, and the same
//! description resumes it.

use std::fs;
use std::path::PathBuf;

use crate::{
    Feature, PageLoader, SpeckitError, SpeckitProject,
    checklist::REQUIREMENTS,
    scaffold::{PageHeader, fill_header},
};

/// A placeholder for the date that users cannot type.
const DATE_PLACEHOLDER: &str = "\0";

/// Whether a feature's spec is missing, or is still the initial one for this description, with any date.
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

/// Returns the text after an ISO date.
fn strip_date(text: &str) -> Option<&str> {
    let (date, rest) = text.split_at_checked("2026-01-01".len())?;
    let matches_format = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    date.bytes().enumerate().all(matches_format).then_some(rest)
}

/// Completes a feature with the pages of a new one and returns the new paths. Existing pages are not changed, and a
/// page that cannot be composed is an error before anything is written.
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
    // May be outside the project only if the path says so, not through a link.
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

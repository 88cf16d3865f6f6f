//! Creates a feature: its number, its directory, its first pages. Features created concurrently never share a number.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crow_files::{LinkPolicy, OpenOutcome};

use crate::feature::{FeatureDirSource, check_feature_dir};
use crate::{
    Feature, FeatureNumbering, PageLoader, SpeckitError, SpeckitProject, SpecsLink, SpecsRoot,
    init::ensure_crow_dir,
    numbering,
    scaffold::{PageHeader, fill_header},
    slug, specs_root,
};

/// Ten seconds. Creating a feature takes milliseconds, and on a busy machine several others may come first.
const LOCK_ATTEMPTS_MAX: u32 = 400;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(25);

/// Each attempt takes the next number; this many collisions are no coincidence.
const ATTEMPTS_MAX: u32 = 100;

/// A request to create a feature.
#[derive(Debug, Clone, Copy)]
pub struct NewFeature<'a> {
    /// The user's description.
    pub description: &'a str,
    /// The user's short name; without one it is derived from the description.
    pub short_name: Option<&'a str>,
    /// The method to choose its number.
    pub numbering: FeatureNumbering,
    /// The directory chosen by the user, relative to the root; it gets no number.
    pub dir: Option<&'a str>,
    /// The directory for features.
    pub specs_root: &'a SpecsRoot,
    /// Whether to create a link for other programs.
    pub specs_link: SpecsLink,
    /// The local time.
    pub now: &'a jiff::Zoned,
}

/// A feature that was created, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedFeature {
    /// The feature.
    pub feature: Feature,
    /// The prefix of its name: a number, a timestamp, or empty for a directory chosen by the user.
    pub prefix: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the feature that would be created. Writes nothing.
pub fn preview_feature(
    project: &SpeckitProject,
    request: &NewFeature<'_>,
) -> Result<CreatedFeature, SpeckitError> {
    let slug = resolve_slug(request)?;
    match request.dir {
        Some(path_text) => prepare_named_feature(project, path_text, request.specs_root),
        None => prepare_numbered_feature(
            project,
            request,
            &slug,
            0,
            &specs_root::resolve_specs_root(project, request.specs_root)?,
        ),
    }
}

/// Finds an existing feature with the name that this one would get; only possible for a preferred number or a
/// timestamp.
pub fn find_existing_feature(
    project: &SpeckitProject,
    request: &NewFeature<'_>,
) -> Result<Option<CreatedFeature>, SpeckitError> {
    let slug = resolve_slug(request)?;
    let prefix = match request.numbering {
        FeatureNumbering::Prefer(number) => numbering::format_number(number),
        FeatureNumbering::Timestamp => timestamp(request.now),
        FeatureNumbering::Next => return Ok(None),
    };
    let name = slug::fit_dir_name(&prefix, &slug);
    for root in specs_root::all_specs_roots(project, request.specs_root) {
        let dir = root.join(&name);
        if !dir.is_dir() {
            continue;
        }
        check_feature_dir(project, &dir, FeatureDirSource::Project, request.specs_root).map_err(
            |reason| {
                SpeckitError::invalid_file(&dir, reason.to_message("choose another name with --short-name"))
            },
        )?;
        let feature = Feature::from_dir(dir);
        feature.check_pages()?;
        let notes = vec![format!("{} already exists", project.display_path(&feature.dir))];
        return Ok(Some(CreatedFeature { feature, prefix, notes }));
    }
    Ok(None)
}

/// Creates a feature with its spec and the checklist to review it with. A page that cannot be composed is an error
/// before anything is written.
pub fn create_feature(
    project: &SpeckitProject,
    request: &NewFeature<'_>,
    pages: &PageLoader<'_>,
) -> Result<CreatedFeature, SpeckitError> {
    // Everything that can reject the request is checked before the first directory is created.
    preview_feature(project, request)?;
    let slug = resolve_slug(request)?;
    let spec = pages("spec-template")?;
    let requirements = pages("requirements-template")?;
    ensure_crow_dir(project)?;
    let _lock = lock_creation(project)?;
    let created = match request.dir {
        Some(path_text) => {
            let created = prepare_named_feature(project, path_text, request.specs_root)?;
            created.feature.check_pages()?;
            let dir = &created.feature.dir;
            // May be outside the project only if the path says so, not through a link.
            if dir.starts_with(project.root()) {
                project.check_inside(&created.feature.checklists_dir())?;
            }
            fs::create_dir_all(dir).map_err(|error| SpeckitError::io(dir, error))?;
            created
        }
        None => create_numbered_feature(project, request, &slug)?,
    };
    let date = request.now.date().to_string();
    let header = PageHeader { name: &created.feature.name, date: &date, description: request.description };
    let checklists = created.feature.checklists_dir();
    fs::create_dir_all(&checklists).map_err(|error| SpeckitError::io(&checklists, error))?;
    SpeckitProject::write_new_file(&created.feature.spec_path(), &fill_header(&spec.text, header))?;
    SpeckitProject::write_new_file(
        &checklists.join("requirements.md"),
        &fill_header(&requirements.text, header),
    )?;
    Ok(created)
}

fn resolve_slug(request: &NewFeature<'_>) -> Result<String, SpeckitError> {
    if request.description.trim().is_empty() {
        let reason = "the description is missing; describe what to build and why";
        return Err(SpeckitError::Invalid(reason.to_owned()));
    }
    let slug = match request.short_name {
        Some(name) => slug::clean_short_name(name),
        None => slug::slug_from_description(request.description),
    };
    if slug.is_empty() && request.dir.is_none() {
        let reason = "the name has no letters or digits; choose one with --short-name, such as user-auth";
        return Err(SpeckitError::Invalid(reason.to_owned()));
    }
    Ok(slug)
}

/// Prepares a feature in a directory chosen by the user, which may be outside the project and may exist without a spec.
fn prepare_named_feature(
    project: &SpeckitProject,
    path_text: &str,
    specs_root: &SpecsRoot,
) -> Result<CreatedFeature, SpeckitError> {
    let dir = project.resolve_path(path_text);
    check_feature_dir(project, &dir, FeatureDirSource::Person, specs_root)
        .map_err(|reason| SpeckitError::invalid_file(&dir, reason.to_message("choose another directory")))?;
    let feature = Feature::from_dir(dir);
    if feature.spec_path().symlink_metadata().is_ok() {
        let reason =
            format!("{} has a spec already; choose another directory", project.display_path(&feature.dir));
        return Err(SpeckitError::Invalid(reason));
    }
    let prefix = numbering::parse_dir_prefix(&feature.name).unwrap_or_default().to_owned();
    Ok(CreatedFeature { feature, prefix, notes: Vec::new() })
}

fn timestamp(now: &jiff::Zoned) -> String {
    now.strftime("%Y%m%d-%H%M%S").to_string()
}

/// Prepares the feature with the next number that is at least `floor`.
fn prepare_numbered_feature(
    project: &SpeckitProject,
    request: &NewFeature<'_>,
    slug: &str,
    floor: u64,
    root: &Path,
) -> Result<CreatedFeature, SpeckitError> {
    let mut notes = Vec::new();
    let next_number = |preferred| {
        numbering::next_number(
            &numbering::list_dir_names(&specs_root::all_specs_roots(project, request.specs_root))?,
            preferred,
            floor,
        )
    };
    let (prefix, note) = match request.numbering {
        FeatureNumbering::Timestamp => (timestamp(request.now), None),
        FeatureNumbering::Next => {
            next_number(None).map(|(number, note)| (numbering::format_number(number), note))?
        }
        FeatureNumbering::Prefer(preferred) => {
            next_number(Some(preferred)).map(|(number, note)| (numbering::format_number(number), note))?
        }
    };
    notes.extend(note);
    let name = slug::fit_dir_name(&prefix, slug);
    if name.len() < prefix.len() + 1 + slug.len() {
        notes.push(format!("the name is too long for a branch and was shortened to {} bytes", name.len()));
    }
    let dir = root.join(name);
    check_feature_dir(project, &dir, FeatureDirSource::Project, request.specs_root).map_err(|reason| {
        SpeckitError::invalid_file(
            root,
            reason.to_message("replace it with a directory, or set speckit.specs_root"),
        )
    })?;
    Ok(CreatedFeature { feature: Feature::from_dir(dir), prefix, notes })
}

fn create_numbered_feature(
    project: &SpeckitProject,
    request: &NewFeature<'_>,
    slug: &str,
) -> Result<CreatedFeature, SpeckitError> {
    let root = specs_root::resolve_specs_root(project, request.specs_root)?;
    project.create_dir(&root)?;
    let link = specs_root::link_specs(project, &root, request.specs_link);
    let mut floor = 0;
    for _ in 0..ATTEMPTS_MAX {
        let mut created = prepare_numbered_feature(project, request, slug, floor, &root)?;
        let dir = &created.feature.dir;
        match fs::create_dir(dir) {
            Ok(()) => {
                created.notes.extend(link);
                return Ok(created);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match created.feature.number {
                Some(number) => floor = number.saturating_add(1),
                // A timestamp is not a number: the next second has another one.
                None => break,
            },
            Err(error) => return Err(SpeckitError::io(dir, error)),
        }
    }
    let reason =
        "a directory with that name already exists; try again, or choose another name with --short-name";
    Err(SpeckitError::Invalid(reason.to_owned()))
}

/// Waits until no other process creates a feature in this project. The lock is released with its file.
fn lock_creation(project: &SpeckitProject) -> Result<Option<File>, SpeckitError> {
    let path = project.specify_path("crow/lock");
    project.check_inside(&path)?;
    let io_error = |error| SpeckitError::io(&path, error);
    // Only a regular file is opened.
    let opened =
        crow_files::set_guarded_flags(File::options().create_new(true).append(true), LinkPolicy::Reject)
            .open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match crow_files::open_guarded_with(File::options().append(true), &path, LinkPolicy::Reject)
                .map_err(io_error)?
            {
                OpenOutcome::File(file, _) => file,
                OpenOutcome::Missing | OpenOutcome::Other => {
                    return Err(SpeckitError::invalid_file(&path, "it is not a file; remove it"));
                }
            }
        }
        Err(error) => return Err(io_error(error)),
    };
    for _ in 0..LOCK_ATTEMPTS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_DELAY),
            // File systems without locks still create a directory only once.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(io_error(error)),
        }
    }
    Err(SpeckitError::invalid_file(&path, "another process has locked it for seconds; try again later"))
}

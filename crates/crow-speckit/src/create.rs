//! Makes a feature: its number, its folder, its first pages. Two that make one at the same time never share a number.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::feature::{Namer, check_place};
use crate::{
    Feature, Numbering, Pages, Project, SpeckitError, SpecsLink, SpecsRoot,
    init::own_folder,
    number,
    open::{self, Links, Opened},
    roots,
    scaffold::{Header, fill},
    slug,
};

/// A feature is made in milliseconds: who holds the lock for so long hangs.
const LOCK_WAITS_MAX: u32 = 80;
const LOCK_WAIT: Duration = Duration::from_millis(25);

/// Each attempt takes the next number; so many taken between two looks are no accident.
const ATTEMPTS_MAX: u32 = 100;

/// What a feature is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewFeature<'a> {
    /// What the person said it is.
    pub description: &'a str,
    /// What they call it; a name is made from the description without one.
    pub short_name: Option<&'a str>,
    /// How its number is found.
    pub numbering: Numbering,
    /// The folder they named for it, from the root; nothing is numbered then.
    pub dir: Option<&'a str>,
    /// Where features go.
    pub specs_root: &'a SpecsRoot,
    /// Whether a link leads other programs there.
    pub specs_link: SpecsLink,
    /// The local time.
    pub now: &'a jiff::Zoned,
}

/// A feature that was made, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The feature.
    pub feature: Feature,
    /// What its name begins with: a number, a time, or nothing in a folder that the person named.
    pub prefix: String,
    /// What the person should know.
    pub notes: Vec<String>,
}

/// Tells which feature would be made. Writes nothing.
pub fn would_create(project: &Project, new: &NewFeature<'_>) -> Result<Created, SpeckitError> {
    let slug = checked_slug(new)?;
    match new.dir {
        Some(spelled) => named(project, (spelled, new.specs_root)),
        None => numbered(project, new, (&slug, 0), &roots::specs_root(project, new.specs_root)?),
    }
}

/// Finds the feature that has the name already which this one would get; only a number that was wished for, or a time, can.
pub fn existing(project: &Project, new: &NewFeature<'_>) -> Result<Option<Created>, SpeckitError> {
    let slug = checked_slug(new)?;
    let prefix = match new.numbering {
        Numbering::Prefer(number) => number::spelled(number),
        Numbering::Timestamp => timestamp(new.now),
        Numbering::Next => return Ok(None),
    };
    let name = slug::fit(&prefix, &slug);
    for root in roots::all(project, new.specs_root) {
        let dir = root.join(&name);
        if !dir.is_dir() {
            continue;
        }
        check_place(project, &dir, (Namer::Project, new.specs_root))
            .map_err(|why| SpeckitError::broken(&dir, why.said("choose another name with --short-name")))?;
        let feature = Feature::at(dir);
        feature.check_pages()?;
        let notes = vec![format!("{} is there already", project.shown(&feature.dir))];
        return Ok(Some(Created { feature, prefix, notes }));
    }
    Ok(None)
}

/// Makes a feature with its spec and the list to review that with. A page that cannot be composed stops it before anything
/// is written.
pub fn create(project: &Project, new: &NewFeature<'_>, pages: &Pages<'_>) -> Result<Created, SpeckitError> {
    // Whatever refuses the feature does so before the first folder.
    would_create(project, new)?;
    let slug = checked_slug(new)?;
    let spec = pages("spec-template")?;
    let requirements = pages("requirements-template")?;
    own_folder(project)?;
    let _lock = lock(project)?;
    let created = match new.dir {
        Some(spelled) => {
            let created = named(project, (spelled, new.specs_root))?;
            created.feature.check_pages()?;
            let dir = &created.feature.dir;
            // Outside only where the name says so, not where a link does.
            if dir.starts_with(project.root()) {
                project.guard(&created.feature.checklists())?;
            }
            fs::create_dir_all(dir).map_err(|error| SpeckitError::io(dir, error))?;
            created
        }
        None => make_numbered(project, new, &slug)?,
    };
    let date = new.now.date().to_string();
    let header = Header { name: &created.feature.name, date: &date, description: new.description };
    let checklists = created.feature.checklists();
    fs::create_dir_all(&checklists).map_err(|error| SpeckitError::io(&checklists, error))?;
    Project::write_new(&created.feature.spec(), &fill(&spec.text, header))?;
    Project::write_new(&checklists.join("requirements.md"), &fill(&requirements.text, header))?;
    Ok(created)
}

fn checked_slug(new: &NewFeature<'_>) -> Result<String, SpeckitError> {
    if new.description.trim().is_empty() {
        let why = "there is no description; say what to build and why";
        return Err(SpeckitError::Invalid(why.to_owned()));
    }
    let slug = match new.short_name {
        Some(name) => slug::clean(name),
        None => slug::slug(new.description),
    };
    if slug.is_empty() && new.dir.is_none() {
        let why =
            "the name has neither a letter nor a digit; choose one with --short-name, such as user-auth";
        return Err(SpeckitError::Invalid(why.to_owned()));
    }
    Ok(slug)
}

/// The feature of a folder that the person named, which may be outside and may be there without a spec.
fn named(project: &Project, (spelled, specs_root): (&str, &SpecsRoot)) -> Result<Created, SpeckitError> {
    let dir = project.place(spelled);
    check_place(project, &dir, (Namer::Person, specs_root))
        .map_err(|why| SpeckitError::broken(&dir, why.said("name another folder")))?;
    let feature = Feature::at(dir);
    if feature.spec().symlink_metadata().is_ok() {
        let why = format!("{} has a spec already; name another folder", project.shown(&feature.dir));
        return Err(SpeckitError::Invalid(why));
    }
    let prefix = number::prefix_of(&feature.name).unwrap_or_default().to_owned();
    Ok(Created { feature, prefix, notes: Vec::new() })
}

fn timestamp(now: &jiff::Zoned) -> String {
    now.strftime("%Y%m%d-%H%M%S").to_string()
}

/// The feature with the next number, at least the floor.
fn numbered(
    project: &Project,
    new: &NewFeature<'_>,
    (slug, floor): (&str, u64),
    root: &Path,
) -> Result<Created, SpeckitError> {
    let mut notes = Vec::new();
    let next =
        |preferred| number::next(&number::folders(&roots::all(project, new.specs_root))?, preferred, floor);
    let (prefix, note) = match new.numbering {
        Numbering::Timestamp => (timestamp(new.now), None),
        Numbering::Next => next(None).map(|(number, note)| (number::spelled(number), note))?,
        Numbering::Prefer(wanted) => {
            next(Some(wanted)).map(|(number, note)| (number::spelled(number), note))?
        }
    };
    notes.extend(note);
    let name = slug::fit(&prefix, slug);
    if name.len() < prefix.len() + 1 + slug.len() {
        notes.push(format!("the name is too long for a branch and was cut to {} bytes", name.len()));
    }
    let dir = root.join(name);
    check_place(project, &dir, (Namer::Project, new.specs_root)).map_err(|why| {
        SpeckitError::broken(root, why.said("put a folder in its place, or set speckit.specs_root"))
    })?;
    Ok(Created { feature: Feature::at(dir), prefix, notes })
}

fn make_numbered(project: &Project, new: &NewFeature<'_>, slug: &str) -> Result<Created, SpeckitError> {
    let root = roots::specs_root(project, new.specs_root)?;
    project.make_folder(&root)?;
    let link = roots::link(project, &root, new.specs_link);
    let mut floor = 0;
    for _ in 0..ATTEMPTS_MAX {
        let mut created = numbered(project, new, (slug, floor), &root)?;
        let dir = &created.feature.dir;
        match fs::create_dir(dir) {
            Ok(()) => {
                created.notes.extend(link);
                return Ok(created);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match created.feature.number {
                Some(number) => floor = number.saturating_add(1),
                // A time is no number: the next second is another.
                None => break,
            },
            Err(error) => return Err(SpeckitError::io(dir, error)),
        }
    }
    let why = "a folder of that name is there already; try again, or choose another name with --short-name";
    Err(SpeckitError::Invalid(why.to_owned()))
}

/// Waits until nobody else makes a feature in this project. The lock goes with its file.
fn lock(project: &Project) -> Result<Option<File>, SpeckitError> {
    let path = project.specify("crow/lock");
    project.guard(&path)?;
    let failed = |error| SpeckitError::io(&path, error);
    // Whoever makes it first makes a file, and whatever else is there is not opened.
    let made = open::careful(File::options().create_new(true).append(true), Links::Refused).open(&path);
    let file = match made {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match open::open_as(File::options().append(true), &path, Links::Refused).map_err(failed)? {
                Opened::File(file, _) => file,
                Opened::Missing | Opened::Other => {
                    return Err(SpeckitError::broken(&path, "it is not a file; remove it"));
                }
            }
        }
        Err(error) => return Err(failed(error)),
    };
    for _ in 0..LOCK_WAITS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
            // Disks without locks still make a folder only once.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(SpeckitError::broken(&path, "another process has held it for seconds; try again when it is done"))
}

//! The header of a git bundle, which says what its pack contains and what the receiver must have. A bundle comes from
//! another machine: everything that was not expected is an error.

#[cfg(test)]
mod tests;

/// The largest bundle that is sent or taken: it is in memory as a whole. The history of a large program has less.
pub const GIT_BUNDLE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The first line of a bundle of version 2; later versions have capabilities, which nothing needs.
const SIGNATURE: &[u8] = b"# v2 git bundle\n";

/// Commits that a bundle may require. Each of them is where its history leaves the one that is known.
const PREREQUISITES_MAX: usize = 256;

/// The longest line of a header: a prerequisite has the first line of its commit's message.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Digits of the name of an object; repositories with SHA-256 have bundles of version 3.
const OBJECT_NAME_LEN: usize = 40;

/// The beginning of a pack: its signature, version and number of objects.
const PACK_HEADER_LEN: usize = 12;

/// A bundle with one reference, whose pack is not examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitBundle<'a> {
    /// The commit of its reference.
    pub commit: &'a str,
    /// The commits that the receiver must have.
    pub prerequisites: Vec<&'a str>,
    /// The number of objects that the pack claims to have.
    pub n_objects: u32,
    pub pack: &'a [u8],
}

/// The reason why a bundle is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GitBundleError {
    #[error("it is not a git bundle of version 2")]
    UnknownVersion,
    #[error("its header is damaged")]
    InvalidHeader,
    #[error("it requires more than {PREREQUISITES_MAX} commits")]
    TooManyPrerequisites,
    #[error("it has another reference than the one that was agreed on")]
    UnexpectedReference,
    #[error("it has no pack")]
    NoPack,
}

impl<'a> GitBundle<'a> {
    /// Parses a bundle whose only reference has this name.
    pub fn parse(bytes: &'a [u8], reference: &str) -> Result<Self, GitBundleError> {
        let mut rest = bytes.strip_prefix(SIGNATURE).ok_or(GitBundleError::UnknownVersion)?;
        let (mut prerequisites, mut commit) = (Vec::new(), None);
        loop {
            let line = split_line(&mut rest)?;
            if line.is_empty() {
                break;
            }
            if let Some(required) = line.strip_prefix('-') {
                // Git writes them before the references.
                if commit.is_some() {
                    return Err(GitBundleError::InvalidHeader);
                }
                if prerequisites.len() == PREREQUISITES_MAX {
                    return Err(GitBundleError::TooManyPrerequisites);
                }
                let (name, comment) = split_object_name(required).ok_or(GitBundleError::InvalidHeader)?;
                if !comment.is_empty() && !comment.starts_with(' ') {
                    return Err(GitBundleError::InvalidHeader);
                }
                prerequisites.push(name);
            } else {
                let (name, reference_part) = split_object_name(line).ok_or(GitBundleError::InvalidHeader)?;
                let is_expected = reference_part.strip_prefix(' ') == Some(reference);
                if !is_expected || commit.replace(name).is_some() {
                    return Err(GitBundleError::UnexpectedReference);
                }
            }
        }
        let commit = commit.ok_or(GitBundleError::UnexpectedReference)?;
        let n_objects = count_objects(rest).ok_or(GitBundleError::NoPack)?;
        Ok(Self { commit, prerequisites, n_objects, pack: rest })
    }
}

/// Takes a line off, without its end.
fn split_line<'a>(rest: &mut &'a [u8]) -> Result<&'a str, GitBundleError> {
    let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
    let end = window.iter().position(|byte| *byte == b'\n').ok_or(GitBundleError::InvalidHeader)?;
    let (line, after) = (&rest[..end], &rest[end + 1..]);
    *rest = after;
    // The message of a commit may have any encoding; what follows the name of a prerequisite is not used.
    let (text, is_prerequisite) = (std::str::from_utf8(line), line.first() == Some(&b'-'));
    match text {
        Ok(text) => Ok(text),
        Err(error) if is_prerequisite => {
            std::str::from_utf8(&line[..error.valid_up_to()]).map_err(|_| GitBundleError::InvalidHeader)
        }
        Err(_) => Err(GitBundleError::InvalidHeader),
    }
}

/// Splits a line behind the name of an object at its beginning.
fn split_object_name(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_at_checked(OBJECT_NAME_LEN)?;
    is_object_name(name).then_some((name, rest))
}

/// Whether a text is the whole name of an object, as git writes it.
pub fn is_object_name(text: &str) -> bool {
    text.len() == OBJECT_NAME_LEN && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the number of objects in the header of a pack.
fn count_objects(pack: &[u8]) -> Option<u32> {
    let (header, _) = pack.split_at_checked(PACK_HEADER_LEN)?;
    let count = header.strip_prefix(b"PACK")?.last_chunk()?;
    Some(u32::from_be_bytes(*count))
}

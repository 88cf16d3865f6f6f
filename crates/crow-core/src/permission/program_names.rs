//! The names of programs in command lines.

/// Returns a program's name without its directory.
pub(super) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Removes a version, as in `python3.12`.
pub(super) fn strip_version(program: &str) -> &str {
    let plain =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    if plain.is_empty() { program } else { plain }
}

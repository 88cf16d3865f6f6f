//! Locations of shells and other programs. Git for Windows has the only shell whose command lines can be evaluated.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The text that a shell expands to its working directory, as the system writes it: `$PWD` is the shell's own spelling.
pub const SHELL_DIRECTORY: &str = "$(cygpath -w \"$PWD\")";

/// The directories of Git for Windows, which it does not add to `PATH`.
const GIT_DIRECTORIES: [&str; 2] = [r"C:\Program Files\Git\bin", r"C:\Program Files (x86)\Git\bin"];

/// Directories whose `bash` is that of another system (WSL), with other paths and programs.
const OTHER_SYSTEM: [&str; 2] = ["system32", "windowsapps"];

const EXTENSION: &str = "exe";

/// Returns the path of `sh`, or its name if it is not installed.
pub fn posix_shell() -> String {
    let found = find_program("sh", "").and_then(|path| path.to_str().map(str::to_owned));
    found.unwrap_or_else(|| "sh".to_owned())
}

/// Finds a program by name in a list of directories as `PATH` has it, and in those of Git. Relative directories are
/// skipped: they may belong to a repository.
pub fn find_program(name: &str, search_path: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() != 1 {
        return None;
    }
    let is_usable = |directory: &PathBuf| {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        directory.is_absolute() && !OTHER_SYSTEM.contains(&name.as_str())
    };
    let directories = env::split_paths(search_path).chain(GIT_DIRECTORIES.map(PathBuf::from));
    let mut candidates = directories.filter(is_usable).map(|directory| match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case(EXTENSION) => directory.join(path),
        Some(_) | None => directory.join(format!("{name}.{EXTENSION}")),
    });
    candidates.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::find_program;

    #[test]
    fn program_is_found_with_its_extension_and_not_in_another_system() {
        let dir = tempfile::tempdir().unwrap();
        let (usable, other) = (dir.path().join("bin"), dir.path().join("System32"));
        for directory in [&usable, &other] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("bash.exe"), "").unwrap();
        }
        let path = format!("{};{};.", other.display(), usable.display());
        assert_eq!(find_program("bash", &path), Some(usable.join("bash.exe")));
        assert_eq!(find_program(r"bin\bash", &path), None);
    }
}

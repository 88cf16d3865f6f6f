//! The parameters of a new process: its program, its command line and its environment, as texts for a system call.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    os::windows::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The extension of a program that the system starts without a shell.
const EXTENSION: &str = "exe";

const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// The texts that a process is created with; each ends with a null character.
pub(super) struct ProcessParameters {
    pub(super) program: Vec<u16>,
    pub(super) command_line: Vec<u16>,
    /// Ends with two null characters.
    pub(super) environment: Vec<u16>,
    pub(super) cwd: Vec<u16>,
}

/// Returns what a command would be started with.
pub(super) fn process_parameters(command: &Command) -> io::Result<ProcessParameters> {
    let environment = merge_environment(command);
    let search_path = environment.get("PATH").map(|variable| variable.value.as_os_str());
    let program = find_program(command.get_program(), search_path.unwrap_or_default())?;
    let mut command_line = Vec::new();
    for arg in [program.as_os_str()].into_iter().chain(command.get_args()) {
        if !command_line.is_empty() {
            command_line.push(SPACE);
        }
        append_quoted(&mut command_line, arg)?;
    }
    command_line.push(0);
    let cwd = command.get_current_dir().unwrap_or(Path::new("."));
    Ok(ProcessParameters {
        program: to_wide(program.as_os_str())?,
        command_line,
        environment: encode_environment(&environment)?,
        cwd: to_wide(cwd.as_os_str())?,
    })
}

/// A variable with its name as it was spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EnvironmentVariable {
    name: OsString,
    value: OsString,
}

/// Variables by their names in capitals: the system ignores case, the shell does not.
type EnvironmentBlock = BTreeMap<String, EnvironmentVariable>;

fn set_variable(variables: &mut EnvironmentBlock, name: &OsStr, value: &OsStr) {
    let new = EnvironmentVariable { name: name.to_owned(), value: value.to_owned() };
    variables.insert(fold_name(name), new);
}

fn fold_name(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase()
}

/// Returns the variables of this process with the changes of a command.
#[expect(clippy::disallowed_methods, reason = "what the program would inherit can be seen only here")]
fn merge_environment(command: &Command) -> EnvironmentBlock {
    let mut variables = EnvironmentBlock::new();
    for (name, value) in env::vars_os() {
        set_variable(&mut variables, &name, &value);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => set_variable(&mut variables, name, value),
            None => drop(variables.remove(&fold_name(name))),
        }
    }
    variables
}

fn encode_environment(variables: &EnvironmentBlock) -> io::Result<Vec<u16>> {
    let mut block = Vec::new();
    for EnvironmentVariable { name, value } in variables.values() {
        let mut line = name.clone();
        line.push("=");
        line.push(value);
        block.extend(to_wide(&line)?);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

/// Finds a program as a shell does, but never in the working directory, where a repository may have put one.
fn find_program(program: &OsStr, search_path: &OsStr) -> io::Result<PathBuf> {
    let path = Path::new(program);
    let has_directory = path.components().count() > 1;
    let mut candidates = Vec::new();
    match has_directory {
        true => candidates.push(path.to_owned()),
        false => {
            let directories = env::split_paths(search_path).filter(|directory| directory.is_absolute());
            candidates.extend(directories.map(|directory| directory.join(path)));
        }
    }
    let with_extension = |path: PathBuf| match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case(EXTENSION) => path,
        Some(_) | None => {
            let mut name = path.into_os_string();
            name.push(".");
            name.push(EXTENSION);
            name.into()
        }
    };
    let is_batch = path.extension().is_some_and(|extension| {
        extension.eq_ignore_ascii_case("bat") || extension.eq_ignore_ascii_case("cmd")
    });
    if is_batch {
        let reason = "a batch file is started on a terminal by a shell only";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let mut existing = candidates.into_iter().map(with_extension).filter(|path| path.is_file());
    existing.next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Appends an argument so that the program gets it as it is: the usual rules for quotes and backslashes.
fn append_quoted(line: &mut Vec<u16>, arg: &OsStr) -> io::Result<()> {
    let units: Vec<u16> = arg.encode_wide().collect();
    check_text(&units)?;
    let is_plain = !units.is_empty() && !units.iter().any(|unit| [SPACE, TAB, QUOTE].contains(unit));
    if is_plain {
        line.extend(units);
        return Ok(());
    }
    line.push(QUOTE);
    let mut n_backslashes = 0;
    for unit in units {
        match unit {
            BACKSLASH => n_backslashes += 1,
            // Backslashes count as escapes only before a quote.
            QUOTE => line.extend(std::iter::repeat_n(BACKSLASH, n_backslashes + 1)),
            _ => {}
        }
        if unit != BACKSLASH {
            n_backslashes = 0;
        }
        line.push(unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, n_backslashes));
    line.push(QUOTE);
    Ok(())
}

fn to_wide(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut units: Vec<u16> = text.encode_wide().collect();
    check_text(&units)?;
    units.push(0);
    Ok(units)
}

fn check_text(units: &[u16]) -> io::Result<()> {
    if units.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an argument contains a null character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(arg: &str) -> String {
        let mut line = Vec::new();
        append_quoted(&mut line, OsStr::new(arg)).unwrap();
        String::from_utf16(&line).unwrap()
    }

    #[test]
    fn arguments_are_quoted_where_needed() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted(""), r#""""#);
        assert_eq!(quoted("two words"), r#""two words""#);
        assert_eq!(quoted(r#"say "yes""#), r#""say \"yes\"""#);
        assert_eq!(quoted(r"a b\"), r#""a b\\""#);
        assert_eq!(quoted(r#"a\"b"#), r#""a\\\"b""#);
        assert_eq!(quoted(r"C:\x\y"), r"C:\x\y");
    }

    #[test]
    fn environment_ends_with_two_null_characters() {
        let mut variables = EnvironmentBlock::new();
        assert_eq!(encode_environment(&variables).unwrap(), [0, 0]);
        for (name, value) in [("PATH", "x"), ("Path", "y")] {
            set_variable(&mut variables, OsStr::new(name), OsStr::new(value));
        }
        let block = encode_environment(&variables).unwrap();
        assert_eq!(String::from_utf16(&block).unwrap(), "Path=y\0\0");
    }

    #[test]
    fn program_is_found_in_the_search_path_only() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tool.exe"), "").unwrap();
        let find = |name: &str, path: &OsStr| find_program(OsStr::new(name), path).ok();
        let found = Some(dir.path().join("tool.exe"));
        assert_eq!(find("tool", dir.path().as_os_str()), found);
        assert_eq!(find("tool.exe", dir.path().as_os_str()), found);
        assert_eq!(find("tool", OsStr::new(".")), None);
        assert!(find_program(OsStr::new("tool.bat"), dir.path().as_os_str()).is_err());
    }
}

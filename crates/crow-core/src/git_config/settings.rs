//! Parses Git configuration as Git does.

use std::{iter::Peekable, str::Chars};

/// One setting, with section and key in lower case, as Git compares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitSetting {
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    pub(super) key: String,
    /// Empty if there is none.
    pub(super) value: String,
}

/// Parses all settings; `None` for text that Git rejects, or reads up to a NUL: `[core "fsmonitor\0"] x` is `core.fsmonitor`.
pub(super) fn parse_settings(text: &str) -> Option<Vec<GitSetting>> {
    if text.contains('\0') {
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = ConfigReader { chars: text.chars().peekable() };
    let mut settings = Vec::new();
    // A key before the first header is in no section.
    let mut header = (String::new(), None);
    while let Some(letter) = reader.chars.next() {
        match letter {
            '#' | ';' => drop(reader.chars.by_ref().find(|&letter| letter == '\n')),
            '[' => header = reader.read_header()?,
            _ if is_space(letter) => {}
            _ if letter.is_ascii_alphabetic() => {
                let (section, subsection) = header.clone();
                let key = reader.read_key(letter);
                settings.push(GitSetting { section, subsection, key, value: reader.read_value()? });
            }
            _ => return None,
        }
    }
    Some(settings)
}

fn is_space(letter: char) -> bool {
    [' ', '\t', '\n', '\r'].contains(&letter)
}

fn is_key_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

struct ConfigReader<'a> {
    chars: Peekable<Chars<'a>>,
}

impl ConfigReader<'_> {
    /// Parses `core]`, `remote "origin"]` or the older `remote.origin]`.
    fn read_header(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.chars.next()? {
                ']' => break,
                letter if is_space(letter) => {
                    let subsection = self.read_subsection(letter)?;
                    return Some((name, Some(subsection)));
                }
                letter if is_key_letter(letter) || letter == '.' => name.push(letter.to_ascii_lowercase()),
                _ => return None,
            }
        }
        match name.split_once('.') {
            Some((section, subsection)) => Some((section.to_owned(), Some(subsection.to_owned()))),
            None => Some((name, None)),
        }
    }

    /// Parses the rest of `"origin"]`.
    fn read_subsection(&mut self, first: char) -> Option<String> {
        let mut letter = first;
        while is_space(letter) {
            if letter == '\n' {
                return None;
            }
            letter = self.chars.next()?;
        }
        if letter != '"' {
            return None;
        }
        let mut text = String::new();
        loop {
            match self.chars.next()? {
                '\n' => return None,
                '"' => break,
                '\\' => text.push(self.chars.next().filter(|&letter| letter != '\n')?),
                letter => text.push(letter),
            }
        }
        (self.chars.next()? == ']').then_some(text)
    }

    fn read_key(&mut self, first: char) -> String {
        let mut key = String::from(first.to_ascii_lowercase());
        while let Some(letter) = self.chars.next_if(|&letter| is_key_letter(letter)) {
            key.push(letter.to_ascii_lowercase());
        }
        while self.chars.next_if(|&letter| letter == ' ' || letter == '\t').is_some() {}
        key
    }

    /// Parses the value after a key, to the end of the line or of its continuations.
    fn read_value(&mut self) -> Option<String> {
        match self.chars.next() {
            None | Some('\n') => return Some(String::new()),
            Some('=') => {}
            Some(_) => return None,
        }
        let (mut value, mut n_trimmed) = (String::new(), 0);
        let mut is_quoted = false;
        loop {
            match self.chars.next() {
                None | Some('\n') if is_quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !is_quoted => {
                    let _ = self.chars.by_ref().find(|&letter| letter == '\n');
                    break;
                }
                Some(letter) if is_space(letter) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(letter);
                    }
                    continue;
                }
                Some('"') => is_quoted = !is_quoted,
                Some('\\') => match self.chars.next() {
                    None | Some('\n') => {}
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some('n') => value.push('\n'),
                    Some(letter @ ('\\' | '"')) => value.push(letter),
                    Some(_) => return None,
                },
                Some(letter) => value.push(letter),
            }
            n_trimmed = value.len();
        }
        value.truncate(n_trimmed);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_like_git() {
        let text = "\u{feff}early=1\n[Core]\r\n\tBare\r\n\tfsMonitor = \"./a b\" # c\n; x\n[filter.F] clean=a\\\n\\tb ; c\n\
                    [includeIf \"gitdir:~/x \\\"y\"] path = c\n[a-b]k=\" x \"  \n[c]x=a \\\n\ny=b\\";
        let shown: Vec<String> = parse_settings(text)
            .expect("it is understood")
            .into_iter()
            .map(|GitSetting { section, subsection, key, value }| {
                format!("{section}|{}|{key}={value:?}", subsection.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            shown,
            [
                "||early=\"1\"",
                "core||bare=\"\"",
                "core||fsmonitor=\"./a b\"",
                "filter|f|clean=\"a\\tb\"",
                "includeif|gitdir:~/x \"y|path=\"c\"",
                "a-b||k=\" x \"",
                "c||x=\"a \"",
                "c||y=\"b\"",
            ]
        );
        for bad in [
            "[core",
            "[co re]",
            "[core]\n1 = x",
            "[core]\nx = \"y",
            "[core]\nx = \\y",
            "[core]\nx y",
            "[core]\nx = y\0z",
            "[core \"fsmonitor\0\"]\nx = y",
            "[core]\nx = \"y\\",
        ] {
            assert_eq!(parse_settings(bad), None, "{bad}");
        }
    }
}

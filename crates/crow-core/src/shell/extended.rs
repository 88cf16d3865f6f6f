//! Syntax of extended shells only: arrays, functions, `((…))`, braces, `$'…'`. Finds what a line may do; if one of
//! two readings would do more, the line is still an error.

use super::command::{Assignment, ShellDialect, ShellParseError, SimpleCommand};
use super::expand::name_len;
use super::lex::{LexedWord, ShellReader};
use super::parse::{ListEnding, unbalanced_error};
use super::word::{ShellWord, WordPiece};

/// Limit of words in a brace expansion.
const BRACED_MAX: usize = 64;

impl ShellReader<'_> {
    /// Reads `[[ … ]]` without operators, which is a program in other shells.
    pub(super) fn read_condition(&mut self) -> Result<(), ShellParseError> {
        let n_commands = self.commands.len();
        self.read_simple_command()?;
        let is_whole = |simple: &SimpleCommand| {
            simple.words.last().and_then(ShellWord::known_text) == Some("]]")
                && simple.redirections.is_empty()
        };
        match self.commands.last() {
            Some(simple) if self.commands.len() > n_commands && is_whole(simple) => Ok(()),
            _ => Err(ShellParseError("has a condition that shells parse differently")),
        }
    }

    /// Reads `[[ … ]]` with any content. In other shells it is a program that fails: commands after `&&` do not run,
    /// those after `||` do.
    pub(super) fn read_extended_condition(&mut self) -> Result<(), ShellParseError> {
        let (start, n_commands, depth) = (self.position, self.commands.len(), self.depth);
        if self.read_simple_command().is_err() {
            (self.position, self.depth) = (start, depth);
            self.commands.truncate(n_commands);
            return self.skip_grouped_condition();
        }
        while self.has_open_condition() && self.take("&&") {
            let n_commands = self.commands.len();
            self.skip_lines()?;
            self.read_simple_command()?;
            if let Some(simple) = self.commands.get_mut(n_commands..).and_then(<[SimpleCommand]>::last_mut) {
                simple.words.insert(0, ShellWord::from_text("[["));
            }
        }
        Ok(())
    }

    fn has_open_condition(&self) -> bool {
        let last = self.commands.last().and_then(|simple| simple.words.last());
        last.and_then(ShellWord::known_text) != Some("]]")
    }

    /// Skips a condition with parentheses, which no other shell accepts.
    fn skip_grouped_condition(&mut self) -> Result<(), ShellParseError> {
        let error = ShellParseError("has a condition that shells parse differently");
        let rest = self.rest();
        let end = rest.find(" ]]").ok_or(error)?;
        let body = &rest[..end];
        if !body.contains('(') || body.contains(['`', '\n', ';', '&', '\'', '"']) || body.contains("$(") {
            return Err(error);
        }
        self.position += end + " ]]".len();
        self.commands
            .push(SimpleCommand { words: vec![ShellWord::from_text("[[")], ..SimpleCommand::default() });
        Ok(())
    }

    /// Reads one word, or all words of its brace expansion.
    pub(super) fn read_words(&mut self) -> Result<Vec<ShellWord>, ShellParseError> {
        let start = self.position;
        let LexedWord { word, has_braces, .. } = self.read_word()?;
        if has_braces { self.read_braced(start) } else { Ok(vec![word]) }
    }

    /// Reads the word from `start` again as the words of its brace expansion.
    pub(super) fn read_braced(&mut self, start: usize) -> Result<Vec<ShellWord>, ShellParseError> {
        let raw = self.text.get(start..self.position).unwrap_or_default();
        let texts = expand_braces(raw).ok_or(ShellParseError("has braces that expand to too many words"))?;
        let mut words = Vec::new();
        for text in texts.iter().filter(|text| !text.is_empty()) {
            let mut reader = ShellReader::new(text, self.depth + 1, self.dialect)?;
            // The commands in its substitutions were read already.
            reader.n_substitutions = self.n_substitutions;
            words.push(reader.read_word()?.word);
            if reader.position != text.len() {
                return Err(unbalanced_error());
            }
        }
        Ok(words)
    }

    /// Reads `$'…'` or `$"…"` after the dollar.
    pub(super) fn read_dollar_quoted(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let is_double = self.take("\"");
        if is_double {
            return self.read_double_quoted(word);
        }
        self.position += 1;
        let end = self.rest().find('\'').ok_or(ShellParseError("has a quote that does not end"))?;
        let body = &self.rest()[..end];
        // In other shells the text ends here.
        if body.ends_with('\\') {
            return Err(ShellParseError("has a quote after a dollar"));
        }
        let text = unescape_ansi_c(body).ok_or(ShellParseError("has an unusual escape"))?;
        text.chars().for_each(|letter| word.push(letter));
        self.position += end + 1;
        Ok(())
    }

    /// Reads `((…))` from its parentheses on, and the commands in its expansions.
    pub(super) fn read_extended_arithmetic(&mut self) -> Result<(), ShellParseError> {
        let rest = self.rest();
        let mut n_open = 0_usize;
        for (at, letter) in rest.char_indices() {
            match letter {
                '(' => n_open += 1,
                ')' => n_open = n_open.saturating_sub(1),
                '\'' | '"' | '\\' => return Err(ShellParseError("has arithmetic with more than numbers")),
                _ => {}
            }
            if n_open == 0 {
                let body = rest.get("((".len()..at).and_then(|inside| inside.strip_suffix(')'));
                let body = body.ok_or(ShellParseError("has arithmetic that does not end"))?;
                self.read_expansions(body)?;
                self.position += at + 1;
                return Ok(());
            }
        }
        Err(ShellParseError("has arithmetic that does not end"))
    }

    /// Reads `((…))` as a command: in some shells two groups, whose content runs.
    pub(super) fn read_double_parenthesis(&mut self) -> Result<(), ShellParseError> {
        let (start, n_commands, depth) = (self.position, self.commands.len(), self.depth);
        self.position += 1;
        if self.read_deeper(Self::read_substitution).is_err() {
            (self.position, self.depth) = (start, depth);
            self.commands.truncate(n_commands);
            self.read_extended_arithmetic()?;
        }
        self.read_group_redirections()
    }

    /// Reads `((…))` after `for`.
    pub(super) fn read_counting_loop(&mut self) -> Result<(), ShellParseError> {
        self.read_extended_arithmetic()?;
        self.skip_blanks()?;
        self.take(";");
        self.skip_lines()?;
        if self.peek_bare() != "do" {
            return Err(unbalanced_error());
        }
        self.position += "do".len();
        self.read_list_until(ListEnding::Word("done"))
    }

    /// Reads `function NAME { … }`. Its content counts as run.
    pub(super) fn read_function(&mut self) -> Result<(), ShellParseError> {
        self.position += "function".len();
        self.skip_blanks()?;
        if !self.is_at_word() {
            return Err(unbalanced_error());
        }
        self.read_word()?;
        self.skip_blanks()?;
        if self.take("(") {
            self.skip_blanks()?;
            if !self.take(")") {
                return Err(unbalanced_error());
            }
        }
        self.skip_lines()?;
        self.read_command()
    }

    /// Reads `() { … }` after the name of a function.
    pub(super) fn read_function_body(&mut self, name: &SimpleCommand) -> Result<(), ShellParseError> {
        let is_name = name.words.len() == 1 && name.assignments.is_empty() && name.redirections.is_empty();
        self.position += 1;
        self.skip_blanks()?;
        if !is_name || !self.take(")") {
            return Err(ShellParseError("has a parenthesis after a word"));
        }
        self.skip_lines()?;
        self.read_deeper(Self::read_command)
    }

    /// Reads `NAME=(…)`, `NAME+=…` or `NAME[…]=…` if one comes next.
    pub(super) fn read_extended_assignment(
        &mut self,
        name: &str,
        simple: &mut SimpleCommand,
    ) -> Result<bool, ShellParseError> {
        let rest = &self.rest()[name.len()..];
        let (before, is_list) = match rest.find('=') {
            Some(end) if !name.is_empty() => (&rest[..end], rest[end + 1..].starts_with('(')),
            _ => return Ok(false),
        };
        let is_place = before.starts_with('[') && before.trim_end_matches('+').ends_with(']');
        if !(is_place || before == "+" || (before.is_empty() && is_list)) {
            return Ok(false);
        }
        if self.dialect == ShellDialect::Common {
            return if is_list { Err(ShellParseError("has a list of values")) } else { Ok(false) };
        }
        if before.contains(['$', '`', '\'', '"', '\\', ' ', '\n']) {
            return Err(ShellParseError("may run what is in brackets"));
        }
        self.position += name.len() + before.len() + "=".len();
        let mut values = Vec::new();
        if self.take("(") {
            loop {
                self.skip_lines()?;
                if self.take(")") {
                    break;
                }
                if !self.is_at_word() {
                    return Err(unbalanced_error());
                }
                values.extend(self.read_words()?);
            }
        } else if self.is_at_word() {
            values.extend(self.read_words()?);
        }
        let assignments = values.into_iter().map(|value| Assignment { name: name.to_owned(), value });
        simple.assignments.extend(assignments);
        Ok(true)
    }

    /// Reads `{…}` after a dollar, with any text after the name.
    pub(super) fn read_extended_parameter(&mut self) -> Result<WordPiece, ShellParseError> {
        let error = ShellParseError("has an unusual parameter");
        let rest = self.rest();
        let mut n_open = 0_usize;
        let mut end = None;
        for (at, letter) in rest.char_indices() {
            match letter {
                '{' => n_open += 1,
                '}' => n_open = n_open.saturating_sub(1),
                '\'' | '"' | '\\' => return Err(error),
                _ => {}
            }
            if n_open == 0 {
                end = Some(at);
                break;
            }
        }
        let end = end.ok_or(error)?;
        let body = &rest[1..end];
        self.read_expansions(body)?;
        self.position += end + 1;
        let len = name_len(body);
        let (name, after) = body.split_at(len);
        // A subscript is a value itself.
        let after =
            after.strip_prefix('[').and_then(|after| after.split_once(']')).map_or(after, |(_, it)| it);
        let default = [":-", ":=", ":+", "-", "=", "+"].into_iter().find_map(|it| after.strip_prefix(it));
        Ok(match default {
            Some(text) if len > 0 => WordPiece::Unknown(Some(text.to_owned())),
            None if len > 0 => WordPiece::Variable(name.to_owned()),
            _ => WordPiece::Unknown(None),
        })
    }
}

/// Decodes the escapes of `$'…'`.
fn unescape_ansi_c(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        let escape = letters.next()?;
        let (base, n_digits) = match escape {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => {
                plain.push(match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' | 'b' | 'f' | 'v' | 'e' | 'E' => ' ',
                    '\\' | '"' | '?' => escape,
                    _ => return None,
                });
                continue;
            }
        };
        let mut digits = if base == 8 { escape.to_string() } else { String::new() };
        while digits.len() < n_digits
            && let Some(digit) = letters.next_if(|next| next.is_digit(base))
        {
            digits.push(digit);
        }
        plain
            .push(u32::from_str_radix(&digits, base).ok().filter(|&code| code > 0).and_then(char::from_u32)?);
    }
    Some(plain)
}

/// Expands the braces of a word; `None` if there are too many words.
fn expand_braces(raw: &str) -> Option<Vec<String>> {
    // Each may be tried as the start of the first ones.
    if raw.matches('{').count() > BRACED_MAX {
        return None;
    }
    let mut words = Vec::new();
    let mut pending = vec![raw.to_owned()];
    while let Some(text) = pending.pop() {
        if pending.len() + words.len() > BRACED_MAX || text.len() > raw.len() {
            return None;
        }
        match first_braces(&text) {
            None => words.push(text),
            Some((before, choices, after)) => {
                let variants = choices.iter().rev().map(|choice| format!("{before}{choice}{after}"));
                pending.extend(variants);
            }
        }
    }
    Some(words)
}

/// Finds the first braces of a text with their choices, and the text around them.
fn first_braces(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let letters = bare_letters(text);
    let starts = letters.iter().enumerate().filter(|(_, (_, letter))| *letter == '{');
    let (start, end) = starts
        .filter_map(|(index, &(start, _))| Some((start, closing_brace(&letters[index + 1..])?)))
        .next()?;
    let body = &text[start + 1..end];
    let choices = split_choices(body);
    // Any name, as that of an unset variable.
    let choices = if choices.len() > 1 { choices } else { vec!["$_"] };
    Some((&text[..start], choices, &text[end + 1..]))
}

/// Returns the letters of a text that are not quoted, escaped or in `${…}`.
fn bare_letters(text: &str) -> Vec<(usize, char)> {
    let mut bare = Vec::new();
    let mut letters = text.char_indices().peekable();
    let mut quote = None;
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(letters.next()),
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '$') if letters.peek().is_some_and(|(_, next)| *next == '{') => {
                letters.find(|(_, next)| *next == '}');
            }
            (None, _) => bare.push((at, letter)),
        }
    }
    bare
}

/// Finds the end of braces: as in bash, the first `}` outside inner braces after a comma or two dots.
fn closing_brace(letters: &[(usize, char)]) -> Option<usize> {
    let (mut n_open, mut has_choices, mut last_dot) = (0, false, None);
    for &(at, letter) in letters {
        match letter {
            '{' => n_open += 1,
            '}' if n_open > 0 => n_open -= 1,
            '}' if has_choices => return Some(at),
            ',' if n_open == 0 => has_choices = true,
            '.' if n_open == 0 => {
                has_choices |= last_dot.is_some_and(|dot| dot + 1 == at);
                last_dot = Some(at);
            }
            _ => {}
        }
    }
    None
}

/// Splits at commas outside other braces and quotes.
fn split_choices(inside: &str) -> Vec<&str> {
    let (mut choices, mut start, mut n_open, mut quote) = (Vec::new(), 0, 0_usize, None);
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(letters.next()),
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '{') => n_open += 1,
            (None, '}') => n_open = n_open.saturating_sub(1),
            (None, ',') if n_open == 0 => {
                choices.push(&inside[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    choices.push(&inside[start..]);
    choices
}

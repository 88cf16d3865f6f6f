//! The grammar: lists, pipelines, groups, branches and loops.

use super::expand::name_len;
use super::lex::{LexedWord, ShellReader, ends_word};
use super::{Assignment, ShellDialect, ShellParseError, ShellWord, SimpleCommand, wrap};

/// Words that mean something where a command begins, to some shell at least.
pub(super) const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "[[", "]]", "function", "select", "coproc",
];
/// Those of them that end a list.
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// What ended a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnding {
    Text,
    Parenthesis,
    Word(&'static str),
    Branch,
}

/// Reads a whole text, `depth` levels below the line a person sees.
pub(super) fn parse_commands(
    text: &str,
    depth: usize,
    dialect: ShellDialect,
) -> Result<Vec<SimpleCommand>, ShellParseError> {
    let mut commands = ShellReader::new(text, depth, dialect)?.read_all()?;
    for command in &mut commands {
        command.inner = wrap::find_inner_commands(command, depth, dialect)?;
    }
    Ok(commands)
}

/// Reads a text that is nothing but words.
pub(super) fn parse_words(text: &str) -> Result<Vec<ShellWord>, ShellParseError> {
    let commands = ShellReader::new(text, 0, ShellDialect::Common)?.read_all()?;
    let [SimpleCommand { assignments, words, redirections, .. }] = commands.as_slice() else {
        return Err(ShellParseError("is not one command"));
    };
    if !assignments.is_empty() || !redirections.is_empty() || words.is_empty() {
        return Err(ShellParseError("is more than a program and its words"));
    }
    Ok(words.clone())
}

impl ShellReader<'_> {
    /// Reads to the end of the text.
    pub(super) fn read_all(mut self) -> Result<Vec<SimpleCommand>, ShellParseError> {
        match self.read_list()? {
            (ListEnding::Text, _) if self.here.is_empty() => Ok(self.commands),
            (ListEnding::Text, _) => Err(ShellParseError("has a here-document that does not end")),
            (ListEnding::Parenthesis | ListEnding::Word(_) | ListEnding::Branch, _) => {
                Err(unbalanced_error())
            }
        }
    }

    /// Reads the inside of `$(…)` and what closes it.
    pub(super) fn read_substitution(&mut self) -> Result<(), ShellParseError> {
        // Here-documents of the line around are not read inside.
        let around = std::mem::take(&mut self.here);
        let start = self.at;
        self.read_list_until(ListEnding::Parenthesis)?;
        let has_lines = self.text.get(start..self.at).is_some_and(|inside| inside.contains('\n'));
        if !self.here.is_empty() || (has_lines && !around.is_empty()) {
            return Err(ShellParseError("has a here-document that does not end"));
        }
        self.here = around;
        Ok(())
    }

    pub(super) fn read_list_until(&mut self, end: ListEnding) -> Result<(), ShellParseError> {
        let (found, n_commands) = self.read_list()?;
        // An empty substitution is fine; an empty group is not, but harmless.
        if found != end || (n_commands == 0 && end != ListEnding::Parenthesis) {
            return Err(unbalanced_error());
        }
        Ok(())
    }

    /// Reads commands until something closes the list, steps over that, and counts them.
    fn read_list(&mut self) -> Result<(ListEnding, usize), ShellParseError> {
        let mut n_commands = 0;
        loop {
            self.skip_lines()?;
            if let Some(end) = self.read_list_end() {
                return Ok((end, n_commands));
            }
            self.read_and_or()?;
            n_commands += 1;
            self.skip_blanks()?;
            match self.peek() {
                Some(b';') if self.starts_with(";;") => {}
                Some(b';' | b'&') => self.at += 1,
                None | Some(b'\n' | b')') => {}
                Some(_) => return Err(unbalanced_error()),
            }
        }
    }

    fn read_list_end(&mut self) -> Option<ListEnding> {
        let end = match self.peek() {
            None => ListEnding::Text,
            Some(b')') => ListEnding::Parenthesis,
            Some(b';') if self.starts_with(";;") && !self.starts_with(";;&") => ListEnding::Branch,
            Some(_) => ListEnding::Word(CLOSING.iter().copied().find(|&word| word == self.peek_bare())?),
        };
        self.at += match end {
            ListEnding::Text => 0,
            ListEnding::Parenthesis => 1,
            ListEnding::Branch => 2,
            ListEnding::Word(word) => word.len(),
        };
        Some(end)
    }

    /// Steps over blanks, comments and line ends, and over the here-documents after a line.
    pub(super) fn skip_lines(&mut self) -> Result<(), ShellParseError> {
        self.skip_blanks()?;
        while self.take("\n") {
            self.skip_here_documents()?;
            self.skip_blanks()?;
        }
        Ok(())
    }

    fn read_and_or(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.skip_lines()?;
            while self.peek_bare() == "!" {
                self.at += 1;
                self.skip_blanks()?;
            }
            self.read_command()?;
            self.skip_blanks()?;
            if self.starts_with("|&") {
                self.require_extended("has |&")?;
                self.at += "|&".len();
                continue;
            }
            if !self.take("&&") && !self.take("||") && !self.take("|") {
                return Ok(());
            }
        }
    }

    pub(super) fn read_command(&mut self) -> Result<(), ShellParseError> {
        match self.peek() {
            Some(b'(') if self.starts_with("((") => {
                self.require_extended("has ((")?;
                return self.read_double_parenthesis();
            }
            Some(b'(') => {
                self.at += 1;
                self.read_deeper(Self::read_substitution)?;
                return self.read_group_redirections();
            }
            _ => {}
        }
        let word = self.peek_bare();
        match word {
            "{" => self.read_group(|reader| reader.read_list_until(ListEnding::Word("}"))),
            "if" => self.read_group(Self::read_branches),
            "while" | "until" => self.read_group(|reader| {
                reader.read_list_until(ListEnding::Word("do"))?;
                reader.read_list_until(ListEnding::Word("done"))
            }),
            "for" => self.read_group(Self::read_for_loop),
            "case" if self.n_substitutions > 0 && self.dialect == ShellDialect::Common => {
                Err(ShellParseError("has a case inside a substitution"))
            }
            "case" => self.read_group(Self::read_case),
            "function" if self.dialect == ShellDialect::Extended => self.read_deeper(Self::read_function),
            "[[" if self.dialect == ShellDialect::Extended => self.read_extended_condition(),
            "[[" => self.read_condition(),
            _ if RESERVED.contains(&word) => {
                Err(ShellParseError("has a word that not every shell reads alike"))
            }
            _ => self.read_simple_command(),
        }
    }

    fn read_group(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), ShellParseError>,
    ) -> Result<(), ShellParseError> {
        self.at += self.peek_bare().len();
        self.read_deeper(read)?;
        self.read_group_redirections()
    }

    pub(super) fn read_group_redirections(&mut self) -> Result<(), ShellParseError> {
        let mut around = SimpleCommand::default();
        let n_here = self.here.len();
        loop {
            self.skip_blanks()?;
            if !self.read_redirection(&mut around)? {
                break;
            }
        }
        if !around.redirections.is_empty() || self.here.len() > n_here {
            self.add_command(around, n_here);
        }
        Ok(())
    }

    fn read_branches(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.read_list_until(ListEnding::Word("then"))?;
            match self.read_list()? {
                (ListEnding::Word("elif"), 1..) => {}
                (ListEnding::Word("else"), 1..) => return self.read_list_until(ListEnding::Word("fi")),
                (ListEnding::Word("fi"), 1..) => return Ok(()),
                _ => return Err(unbalanced_error()),
            }
        }
    }

    fn read_for_loop(&mut self) -> Result<(), ShellParseError> {
        self.skip_blanks()?;
        if self.starts_with("((") {
            self.require_extended("has ((")?;
            return self.read_counting_loop();
        }
        let name = self.peek_bare();
        if name.is_empty() || name_len(name) != name.len() {
            return Err(unbalanced_error());
        }
        self.at += name.len();
        let assign = |value| Assignment { name: name.to_owned(), value };
        let mut assignments = vec![assign(ShellWord::unknown())];
        self.skip_lines()?;
        if self.peek_bare() == "in" {
            self.at += "in".len();
            self.skip_blanks()?;
            while self.is_at_word() {
                assignments.extend(self.read_words()?.into_iter().map(assign));
                self.skip_blanks()?;
            }
            if !matches!(self.peek(), Some(b';' | b'\n')) {
                return Err(unbalanced_error());
            }
        }
        self.commands.push(SimpleCommand { assignments, ..SimpleCommand::default() });
        if !self.starts_with(";;") {
            self.take(";");
        }
        self.skip_lines()?;
        if self.peek_bare() != "do" {
            return Err(unbalanced_error());
        }
        self.at += "do".len();
        self.read_list_until(ListEnding::Word("done"))
    }

    fn read_case(&mut self) -> Result<(), ShellParseError> {
        self.skip_blanks()?;
        if !self.is_at_word() {
            return Err(unbalanced_error());
        }
        self.read_word()?;
        self.skip_lines()?;
        if self.peek_bare() != "in" {
            return Err(unbalanced_error());
        }
        self.at += "in".len();
        loop {
            self.skip_lines()?;
            if self.peek_bare() == "esac" {
                self.at += "esac".len();
                return Ok(());
            }
            self.take("(");
            self.read_case_patterns()?;
            match self.read_list()? {
                (ListEnding::Branch, _) => {}
                (ListEnding::Word("esac"), _) => return Ok(()),
                _ => return Err(unbalanced_error()),
            }
        }
    }

    fn read_case_patterns(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.skip_blanks()?;
            if !self.is_at_word() {
                return Err(unbalanced_error());
            }
            self.read_word()?;
            self.skip_blanks()?;
            if self.take(")") {
                return Ok(());
            }
            if !self.take("|") {
                return Err(unbalanced_error());
            }
        }
    }

    pub(super) fn is_at_word(&self) -> bool {
        self.rest().chars().next().is_some_and(|letter| !ends_word(letter))
    }

    pub(super) fn read_simple_command(&mut self) -> Result<(), ShellParseError> {
        let mut simple = SimpleCommand::default();
        let (start, n_here) = (self.at, self.here.len());
        loop {
            self.skip_blanks()?;
            if self.read_redirection(&mut simple)? {
                continue;
            }
            if !self.is_at_word() {
                break;
            }
            if simple.words.is_empty() && self.read_assignment(&mut simple)? {
                continue;
            }
            let start_of_word = self.at;
            let lexed = self.read_word()?;
            if lexed.has_braces {
                simple.words.extend(self.read_braced(start_of_word)?);
                continue;
            }
            if simple.words.is_empty() {
                check_program(&lexed)?;
            }
            // Is it a descriptor's number?
            let is_number = !lexed.is_quoted && lexed.word.text.bytes().all(|byte| byte.is_ascii_digit());
            let is_braced = lexed.word.text.ends_with('}');
            if (is_number || is_braced) && matches!(self.peek(), Some(b'<' | b'>')) {
                return Err(ShellParseError("has an unusual redirection"));
            }
            simple.words.push(lexed.word);
        }
        match self.peek() {
            Some(b'(') => {
                self.require_extended("has a parenthesis after a word")?;
                self.read_function_body(&simple)
            }
            _ if self.at == start => Err(unbalanced_error()),
            _ => {
                self.add_command(simple, n_here);
                Ok(())
            }
        }
    }

    /// Adds a command, to which the here-documents announced since belong.
    pub(super) fn add_command(&mut self, simple: SimpleCommand, n_here: usize) {
        let command = self.commands.len();
        self.here.iter_mut().skip(n_here).for_each(|here| here.command = command);
        self.commands.push(simple);
    }

    /// Reads `NAME=VALUE` if it comes next.
    fn read_assignment(&mut self, simple: &mut SimpleCommand) -> Result<bool, ShellParseError> {
        let name = &self.rest()[..name_len(self.rest())];
        if name.is_empty() || !self.rest()[name.len()..].starts_with('=') {
            return self.read_extended_assignment(name, simple);
        }
        if self.rest()[name.len() + 1..].starts_with('(') {
            return self.read_extended_assignment(name, simple);
        }
        self.at += name.len() + 1;
        let value = if self.is_at_word() { self.read_word()?.word } else { ShellWord::from_text("") };
        // No shell splits a value or looks for files in its place.
        simple.assignments.push(Assignment { name: name.to_owned(), value });
        Ok(true)
    }
}

/// Refuses a first word that a shell may take for something else than a program.
fn check_program(lexed: &LexedWord) -> Result<(), ShellParseError> {
    let text = lexed.word.text.as_str();
    if lexed.is_continued && (RESERVED.contains(&text) || text.contains('=')) {
        return Err(ShellParseError("has an escaped line break in an odd place"));
    }
    if text.contains('=') || (lexed.word.extent == super::KnownExtent::Begins && !lexed.is_quoted) {
        return Err(ShellParseError("has a program whose name is not plain"));
    }
    Ok(())
}

pub(super) fn unbalanced_error() -> ShellParseError {
    ShellParseError("is not complete")
}

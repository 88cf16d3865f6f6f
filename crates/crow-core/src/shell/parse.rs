//! The grammar: lists, pipelines, groups, branches and loops.

use super::command::{Assignment, ShellDialect, ShellParseError, SimpleCommand};
use super::expand::name_len;
use super::lex::{LexedWord, RESERVED, ShellReader, ends_word};
use super::word::{KnownExtent, ShellWord};
use super::wrappers;

/// Reserved words that end a list.
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// The end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnding {
    Text,
    Parenthesis,
    Word(&'static str),
    Branch,
}

/// Parses a whole text, `depth` levels below the visible line.
pub(super) fn parse_commands(
    text: &str,
    depth: usize,
    dialect: ShellDialect,
) -> Result<Vec<SimpleCommand>, ShellParseError> {
    let mut commands = ShellReader::new(text, depth, dialect)?.read_all()?;
    for command in &mut commands {
        command.inner = wrappers::find_inner_commands(command, depth, dialect)?;
    }
    Ok(commands)
}

/// Parses a text that consists of words.
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
            (ListEnding::Text, _) if self.here_documents.is_empty() => Ok(self.commands),
            (ListEnding::Text, _) => Err(ShellParseError("has a here-document that does not end")),
            (ListEnding::Parenthesis | ListEnding::Word(_) | ListEnding::Branch, _) => {
                Err(unbalanced_error())
            }
        }
    }

    /// Reads the inside of `$(…)` and its end.
    pub(super) fn read_substitution(&mut self) -> Result<(), ShellParseError> {
        // Here-documents of the outer line are not read inside.
        let outer_documents = std::mem::take(&mut self.here_documents);
        let start = self.position;
        self.read_list_until(ListEnding::Parenthesis)?;
        let has_lines = self.text.get(start..self.position).is_some_and(|inside| inside.contains('\n'));
        if !self.here_documents.is_empty() || (has_lines && !outer_documents.is_empty()) {
            return Err(ShellParseError("has a here-document that does not end"));
        }
        self.here_documents = outer_documents;
        Ok(())
    }

    pub(super) fn read_list_until(&mut self, expected: ListEnding) -> Result<(), ShellParseError> {
        let (ending, n_commands) = self.read_list()?;
        // An empty substitution is valid; an empty group is not, but harmless.
        if ending != expected || (n_commands == 0 && expected != ListEnding::Parenthesis) {
            return Err(unbalanced_error());
        }
        Ok(())
    }

    /// Reads commands to the end of the list, skips the end, and counts the commands.
    fn read_list(&mut self) -> Result<(ListEnding, usize), ShellParseError> {
        let mut n_commands = 0;
        loop {
            self.skip_lines()?;
            if let Some(ending) = self.read_list_end() {
                return Ok((ending, n_commands));
            }
            self.read_and_or()?;
            n_commands += 1;
            self.skip_blanks()?;
            match self.peek() {
                Some(b';') if self.starts_with(";;") => {}
                Some(b';' | b'&') => self.position += 1,
                None | Some(b'\n' | b')') => {}
                Some(_) => return Err(unbalanced_error()),
            }
        }
    }

    fn read_list_end(&mut self) -> Option<ListEnding> {
        let ending = match self.peek() {
            None => ListEnding::Text,
            Some(b')') => ListEnding::Parenthesis,
            Some(b';') if self.starts_with(";;") && !self.starts_with(";;&") => ListEnding::Branch,
            Some(_) => ListEnding::Word(CLOSING.iter().copied().find(|&word| word == self.peek_bare())?),
        };
        self.position += match ending {
            ListEnding::Text => 0,
            ListEnding::Parenthesis => 1,
            ListEnding::Branch => 2,
            ListEnding::Word(word) => word.len(),
        };
        Some(ending)
    }

    /// Skips white space, comments, line ends and the here-documents after a line.
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
                self.position += 1;
                self.skip_blanks()?;
            }
            self.read_command()?;
            self.skip_blanks()?;
            if self.starts_with("|&") {
                self.require_extended("has |&")?;
                self.position += "|&".len();
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
                self.position += 1;
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
            _ if RESERVED.contains(&word) => Err(ShellParseError("has a word that shells parse differently")),
            _ => self.read_simple_command(),
        }
    }

    fn read_group(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), ShellParseError>,
    ) -> Result<(), ShellParseError> {
        self.position += self.peek_bare().len();
        self.read_deeper(read)?;
        self.read_group_redirections()
    }

    pub(super) fn read_group_redirections(&mut self) -> Result<(), ShellParseError> {
        let mut group = SimpleCommand::default();
        let n_here_documents = self.here_documents.len();
        loop {
            self.skip_blanks()?;
            if !self.read_redirection(&mut group)? {
                break;
            }
        }
        if !group.redirections.is_empty() || self.here_documents.len() > n_here_documents {
            self.add_command(group, n_here_documents);
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
        self.position += name.len();
        let assign = |value| Assignment { name: name.to_owned(), value };
        let mut assignments = vec![assign(ShellWord::unknown())];
        self.skip_lines()?;
        if self.peek_bare() == "in" {
            self.position += "in".len();
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
        self.position += "do".len();
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
        self.position += "in".len();
        loop {
            self.skip_lines()?;
            if self.peek_bare() == "esac" {
                self.position += "esac".len();
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
        let (start, n_here_documents) = (self.position, self.here_documents.len());
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
            let start_of_word = self.position;
            let lexed = self.read_word()?;
            if lexed.has_braces {
                simple.words.extend(self.read_braced(start_of_word)?);
                continue;
            }
            if simple.words.is_empty() {
                check_program(&lexed)?;
            }
            // Possibly the number of a descriptor.
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
            _ if self.position == start => Err(unbalanced_error()),
            _ => {
                self.add_command(simple, n_here_documents);
                Ok(())
            }
        }
    }

    /// Adds a command, and assigns the new here-documents to it.
    pub(super) fn add_command(&mut self, simple: SimpleCommand, n_here_documents: usize) {
        let command = self.commands.len();
        self.here_documents
            .iter_mut()
            .skip(n_here_documents)
            .for_each(|document| document.command_index = command);
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
        self.position += name.len() + 1;
        let value = if self.is_at_word() { self.read_word()?.word } else { ShellWord::from_text("") };
        // No shell splits a value or expands a glob in it.
        simple.assignments.push(Assignment { name: name.to_owned(), value });
        Ok(true)
    }
}

/// Rejects a first word that some shell does not take for a program.
fn check_program(lexed: &LexedWord) -> Result<(), ShellParseError> {
    let text = lexed.word.text.as_str();
    if lexed.is_continued && (RESERVED.contains(&text) || text.contains('=')) {
        return Err(ShellParseError("has an escaped line break in an odd place"));
    }
    if text.contains('=') || (lexed.word.extent == KnownExtent::Prefix && !lexed.is_quoted) {
        return Err(ShellParseError("has a program name that is not literal"));
    }
    Ok(())
}

pub(super) fn unbalanced_error() -> ShellParseError {
    ShellParseError("is incomplete")
}

//! The grammar: lists, pipelines, groups, branches and loops.

use super::expand::name_len;
use super::lex::{Lexed, Reader, ends_word};
use super::{Assignment, Dialect, NotUnderstood, Simple, Word, wrap};

/// Words that mean something where a command begins, to some shell at least.
pub(super) const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "[[", "]]", "function", "select", "coproc",
];
/// Those of them that end a list.
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// What ended a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Parenthesis,
    Word(&'static str),
    Branch,
}

/// Reads a whole text, `depth` levels below the line a person sees.
pub(super) fn commands(text: &str, depth: usize, dialect: Dialect) -> Result<Vec<Simple>, NotUnderstood> {
    let mut commands = Reader::new(text, depth, dialect)?.all()?;
    for command in &mut commands {
        command.inner = wrap::inner(command, depth, dialect)?;
    }
    Ok(commands)
}

/// Reads a text that is nothing but words.
pub(super) fn only_words(text: &str) -> Result<Vec<Word>, NotUnderstood> {
    let commands = Reader::new(text, 0, Dialect::Common)?.all()?;
    let [Simple { assignments, words, redirections, .. }] = commands.as_slice() else {
        return Err(NotUnderstood("is not one command"));
    };
    if !assignments.is_empty() || !redirections.is_empty() || words.is_empty() {
        return Err(NotUnderstood("is more than a program and its words"));
    }
    Ok(words.clone())
}

impl Reader<'_> {
    /// Reads to the end of the text.
    pub(super) fn all(mut self) -> Result<Vec<Simple>, NotUnderstood> {
        match self.list()? {
            (End::Text, _) if self.here.is_empty() => Ok(self.commands),
            (End::Text, _) => Err(NotUnderstood("has a here-document that does not end")),
            (End::Parenthesis | End::Word(_) | End::Branch, _) => Err(unbalanced()),
        }
    }

    /// Reads the inside of `$(…)` and what closes it.
    pub(super) fn substitution(&mut self) -> Result<(), NotUnderstood> {
        // Here-documents of the line around are not read inside.
        let around = std::mem::take(&mut self.here);
        let start = self.at;
        self.list_until(End::Parenthesis)?;
        let has_lines = self.text.get(start..self.at).is_some_and(|inside| inside.contains('\n'));
        if !self.here.is_empty() || (has_lines && !around.is_empty()) {
            return Err(NotUnderstood("has a here-document that does not end"));
        }
        self.here = around;
        Ok(())
    }

    pub(super) fn list_until(&mut self, end: End) -> Result<(), NotUnderstood> {
        let (found, n_commands) = self.list()?;
        // An empty substitution is fine; an empty group is not, but harmless.
        if found != end || (n_commands == 0 && end != End::Parenthesis) {
            return Err(unbalanced());
        }
        Ok(())
    }

    /// Reads commands until something closes the list, steps over that, and counts them.
    fn list(&mut self) -> Result<(End, usize), NotUnderstood> {
        let mut n_commands = 0;
        loop {
            self.skip_lines()?;
            if let Some(end) = self.end() {
                return Ok((end, n_commands));
            }
            self.and_or()?;
            n_commands += 1;
            self.skip_blanks()?;
            match self.peek() {
                Some(b';') if self.starts(";;") => {}
                Some(b';' | b'&') => self.at += 1,
                None | Some(b'\n' | b')') => {}
                Some(_) => return Err(unbalanced()),
            }
        }
    }

    fn end(&mut self) -> Option<End> {
        let end = match self.peek() {
            None => End::Text,
            Some(b')') => End::Parenthesis,
            Some(b';') if self.starts(";;") && !self.starts(";;&") => End::Branch,
            Some(_) => End::Word(CLOSING.iter().copied().find(|&word| word == self.peek_bare())?),
        };
        self.at += match end {
            End::Text => 0,
            End::Parenthesis => 1,
            End::Branch => 2,
            End::Word(word) => word.len(),
        };
        Some(end)
    }

    /// Steps over blanks, comments and line ends, and over the here-documents after a line.
    pub(super) fn skip_lines(&mut self) -> Result<(), NotUnderstood> {
        self.skip_blanks()?;
        while self.take("\n") {
            self.here_documents()?;
            self.skip_blanks()?;
        }
        Ok(())
    }

    fn and_or(&mut self) -> Result<(), NotUnderstood> {
        loop {
            self.skip_lines()?;
            while self.peek_bare() == "!" {
                self.at += 1;
                self.skip_blanks()?;
            }
            self.command()?;
            self.skip_blanks()?;
            if self.starts("|&") {
                self.only_extended("has |&")?;
                self.at += "|&".len();
                continue;
            }
            if !self.take("&&") && !self.take("||") && !self.take("|") {
                return Ok(());
            }
        }
    }

    pub(super) fn command(&mut self) -> Result<(), NotUnderstood> {
        match self.peek() {
            Some(b'(') if self.starts("((") => {
                self.only_extended("has ((")?;
                return self.double_parenthesis();
            }
            Some(b'(') => {
                self.at += 1;
                self.deeper(Self::substitution)?;
                return self.after_group();
            }
            _ => {}
        }
        let word = self.peek_bare();
        match word {
            "{" => self.group(|reader| reader.list_until(End::Word("}"))),
            "if" => self.group(Self::branches),
            "while" | "until" => self.group(|reader| {
                reader.list_until(End::Word("do"))?;
                reader.list_until(End::Word("done"))
            }),
            "for" => self.group(Self::for_loop),
            "case" if self.n_substitutions > 0 && self.dialect == Dialect::Common => {
                Err(NotUnderstood("has a case inside a substitution"))
            }
            "case" => self.group(Self::case),
            "function" if self.dialect == Dialect::Extended => self.deeper(Self::function),
            "[[" if self.dialect == Dialect::Extended => self.extended_condition(),
            "[[" => self.condition(),
            _ if RESERVED.contains(&word) => {
                Err(NotUnderstood("has a word that not every shell reads alike"))
            }
            _ => self.simple(),
        }
    }

    fn group(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), NotUnderstood>,
    ) -> Result<(), NotUnderstood> {
        self.at += self.peek_bare().len();
        self.deeper(read)?;
        self.after_group()
    }

    pub(super) fn after_group(&mut self) -> Result<(), NotUnderstood> {
        let mut around = Simple::default();
        let n_here = self.here.len();
        loop {
            self.skip_blanks()?;
            if !self.redirection(&mut around)? {
                break;
            }
        }
        if !around.redirections.is_empty() || self.here.len() > n_here {
            self.add(around, n_here);
        }
        Ok(())
    }

    fn branches(&mut self) -> Result<(), NotUnderstood> {
        loop {
            self.list_until(End::Word("then"))?;
            match self.list()? {
                (End::Word("elif"), 1..) => {}
                (End::Word("else"), 1..) => return self.list_until(End::Word("fi")),
                (End::Word("fi"), 1..) => return Ok(()),
                _ => return Err(unbalanced()),
            }
        }
    }

    fn for_loop(&mut self) -> Result<(), NotUnderstood> {
        self.skip_blanks()?;
        if self.starts("((") {
            self.only_extended("has ((")?;
            return self.counting_loop();
        }
        let name = self.peek_bare();
        if name.is_empty() || name_len(name) != name.len() {
            return Err(unbalanced());
        }
        self.at += name.len();
        let assign = |value| Assignment { name: name.to_owned(), value };
        let mut assignments = vec![assign(Word::unknown())];
        self.skip_lines()?;
        if self.peek_bare() == "in" {
            self.at += "in".len();
            self.skip_blanks()?;
            while self.at_word() {
                assignments.extend(self.words_of()?.into_iter().map(assign));
                self.skip_blanks()?;
            }
            if !matches!(self.peek(), Some(b';' | b'\n')) {
                return Err(unbalanced());
            }
        }
        self.commands.push(Simple { assignments, ..Simple::default() });
        if !self.starts(";;") {
            self.take(";");
        }
        self.skip_lines()?;
        if self.peek_bare() != "do" {
            return Err(unbalanced());
        }
        self.at += "do".len();
        self.list_until(End::Word("done"))
    }

    fn case(&mut self) -> Result<(), NotUnderstood> {
        self.skip_blanks()?;
        if !self.at_word() {
            return Err(unbalanced());
        }
        self.word()?;
        self.skip_lines()?;
        if self.peek_bare() != "in" {
            return Err(unbalanced());
        }
        self.at += "in".len();
        loop {
            self.skip_lines()?;
            if self.peek_bare() == "esac" {
                self.at += "esac".len();
                return Ok(());
            }
            self.take("(");
            self.patterns()?;
            match self.list()? {
                (End::Branch, _) => {}
                (End::Word("esac"), _) => return Ok(()),
                _ => return Err(unbalanced()),
            }
        }
    }

    fn patterns(&mut self) -> Result<(), NotUnderstood> {
        loop {
            self.skip_blanks()?;
            if !self.at_word() {
                return Err(unbalanced());
            }
            self.word()?;
            self.skip_blanks()?;
            if self.take(")") {
                return Ok(());
            }
            if !self.take("|") {
                return Err(unbalanced());
            }
        }
    }

    pub(super) fn at_word(&self) -> bool {
        self.rest().chars().next().is_some_and(|letter| !ends_word(letter))
    }

    pub(super) fn simple(&mut self) -> Result<(), NotUnderstood> {
        let mut simple = Simple::default();
        let (start, n_here) = (self.at, self.here.len());
        loop {
            self.skip_blanks()?;
            if self.redirection(&mut simple)? {
                continue;
            }
            if !self.at_word() {
                break;
            }
            if simple.words.is_empty() && self.assignment(&mut simple)? {
                continue;
            }
            let start_of_word = self.at;
            let lexed = self.word()?;
            if lexed.has_braces {
                simple.words.extend(self.braced(start_of_word)?);
                continue;
            }
            if simple.words.is_empty() {
                check_program(&lexed)?;
            }
            // Is it a descriptor's number?
            let is_number = !lexed.is_quoted && lexed.word.text.bytes().all(|byte| byte.is_ascii_digit());
            let is_braced = lexed.word.text.ends_with('}');
            if (is_number || is_braced) && matches!(self.peek(), Some(b'<' | b'>')) {
                return Err(NotUnderstood("has an unusual redirection"));
            }
            simple.words.push(lexed.word);
        }
        match self.peek() {
            Some(b'(') => {
                self.only_extended("has a parenthesis after a word")?;
                self.function_body(&simple)
            }
            _ if self.at == start => Err(unbalanced()),
            _ => {
                self.add(simple, n_here);
                Ok(())
            }
        }
    }

    /// Adds a command, to which the here-documents announced since belong.
    pub(super) fn add(&mut self, simple: Simple, n_here: usize) {
        let command = self.commands.len();
        self.here.iter_mut().skip(n_here).for_each(|here| here.command = command);
        self.commands.push(simple);
    }

    /// Reads `NAME=VALUE` if it comes next.
    fn assignment(&mut self, simple: &mut Simple) -> Result<bool, NotUnderstood> {
        let name = &self.rest()[..name_len(self.rest())];
        if name.is_empty() || !self.rest()[name.len()..].starts_with('=') {
            return self.extended_assignment(name, simple);
        }
        if self.rest()[name.len() + 1..].starts_with('(') {
            return self.extended_assignment(name, simple);
        }
        self.at += name.len() + 1;
        let value = if self.at_word() { self.word()?.word } else { Word::known("") };
        // No shell splits a value or looks for files in its place.
        simple.assignments.push(Assignment { name: name.to_owned(), value });
        Ok(true)
    }
}

/// Refuses a first word that a shell may take for something else than a program.
fn check_program(lexed: &Lexed) -> Result<(), NotUnderstood> {
    let text = lexed.word.text.as_str();
    if lexed.is_continued && (RESERVED.contains(&text) || text.contains('=')) {
        return Err(NotUnderstood("has an escaped line break in an odd place"));
    }
    if text.contains('=') || (lexed.word.extent == super::Extent::Begins && !lexed.is_quoted) {
        return Err(NotUnderstood("has a program whose name is not plain"));
    }
    Ok(())
}

pub(super) fn unbalanced() -> NotUnderstood {
    NotUnderstood("is not complete")
}

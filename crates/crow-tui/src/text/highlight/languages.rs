//! The words and marks of languages.

/// The lexical rules of a language.
#[derive(Debug, PartialEq)]
pub(super) struct LanguageRules {
    /// Names and extensions in lower case.
    names: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    pub(super) nests_comments: bool,
    /// In the order in which they are tried.
    pub(super) strings: &'static [StringRule],
    pub(super) keywords: &'static [&'static str],
    pub(super) ignores_case: bool,
    /// Whether a capital begins a type.
    pub(super) has_types: bool,
    /// Whether a word before a parenthesis is a function.
    pub(super) has_calls: bool,
    /// Whether a word before a colon or an equals sign is a key.
    pub(super) has_keys: bool,
    /// Whether words contain dashes.
    pub(super) has_dashes: bool,
    pub(super) is_diff: bool,
}

/// The marks of a string.
#[derive(Debug, PartialEq)]
pub(super) struct StringRule {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) has_escapes: bool,
    pub(super) is_multiline: bool,
    /// Whether it has one letter and may be a lifetime instead.
    pub(super) is_character: bool,
}

const fn string(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: true, is_multiline: false, is_character: false }
}

const fn long_string(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: true, is_multiline: true, is_character: false }
}

const fn raw_string(open: &'static str, close: &'static str) -> StringRule {
    StringRule { open, close, has_escapes: false, is_multiline: true, is_character: false }
}

const CHARACTER: StringRule =
    StringRule { open: "'", close: "'", has_escapes: true, is_multiline: false, is_character: true };

const QUOTES: &[StringRule] = &[string("\"", "\""), string("'", "'")];

/// A language like C without words of its own.
const BASE: LanguageRules = LanguageRules {
    names: &[],
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    nests_comments: false,
    strings: QUOTES,
    keywords: &[],
    ignores_case: false,
    has_types: true,
    has_calls: true,
    has_keys: false,
    has_dashes: false,
    is_diff: false,
};

/// A configuration file with `#` comments and keys.
const CONFIGURATION: LanguageRules = LanguageRules {
    line_comments: &["#"],
    block_comment: None,
    keywords: &["true", "false", "null", "yes", "no", "on", "off"],
    has_types: false,
    has_calls: false,
    has_keys: true,
    has_dashes: true,
    ..BASE
};

#[rustfmt::skip]
const LANGUAGES: &[LanguageRules] = &[
    LanguageRules {
        names: &["rust", "rs"],
        nests_comments: true,
        strings: &[raw_string("r##\"", "\"##"), raw_string("r#\"", "\"#"), raw_string("r\"", "\""), long_string("\"", "\""), CHARACTER],
        keywords: &["as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super", "trait", "true", "type", "union", "unsafe", "use", "where", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["python", "py", "pyi", "python3"],
        line_comments: &["#"],
        block_comment: None,
        strings: &[long_string("\"\"\"", "\"\"\""), long_string("'''", "'''"), string("\"", "\""), string("'", "'")],
        keywords: &["and", "as", "assert", "async", "await", "break", "case", "class", "continue", "def", "del", "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "match", "None", "nonlocal", "not", "or", "pass", "raise", "return", "self", "True", "try", "while", "with", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["javascript", "js", "mjs", "cjs", "jsx", "typescript", "ts", "tsx", "mts"],
        strings: &[string("\"", "\""), string("'", "'"), long_string("`", "`")],
        keywords: &["abstract", "any", "as", "async", "await", "boolean", "break", "case", "catch", "class", "const", "continue", "declare", "default", "delete", "do", "else", "enum", "export", "extends", "false", "finally", "for", "from", "function", "get", "if", "implements", "import", "in", "instanceof", "interface", "keyof", "let", "never", "new", "null", "number", "of", "private", "protected", "public", "readonly", "return", "set", "static", "string", "super", "switch", "this", "throw", "true", "try", "type", "typeof", "undefined", "unknown", "var", "void", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["go", "golang"],
        strings: &[string("\"", "\""), string("'", "'"), raw_string("`", "`")],
        keywords: &["any", "bool", "break", "byte", "case", "chan", "const", "continue", "default", "defer", "else", "error", "fallthrough", "false", "float64", "for", "func", "go", "goto", "if", "import", "int", "int64", "interface", "iota", "map", "nil", "package", "range", "return", "rune", "select", "string", "struct", "switch", "true", "type", "uint", "var"],
        ..BASE
    },
    LanguageRules {
        names: &["c", "h", "cpp", "cc", "cxx", "hpp", "hh", "c++", "objc", "m", "cuda", "cu", "glsl", "zig"],
        keywords: &["auto", "bool", "break", "case", "catch", "char", "class", "const", "constexpr", "continue", "default", "define", "defined", "delete", "do", "double", "else", "endif", "enum", "explicit", "extern", "false", "float", "fn", "for", "friend", "goto", "if", "ifdef", "ifndef", "include", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "nullptr", "NULL", "operator", "override", "pragma", "private", "protected", "public", "pub", "register", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned", "using", "var", "virtual", "void", "volatile", "while"],
        ..BASE
    },
    LanguageRules {
        names: &["java", "kotlin", "kt", "kts", "scala", "groovy", "swift", "dart"],
        strings: &[long_string("\"\"\"", "\"\"\""), string("\"", "\""), string("'", "'")],
        keywords: &["abstract", "actor", "as", "async", "await", "boolean", "break", "case", "catch", "char", "class", "companion", "const", "continue", "data", "def", "default", "defer", "do", "double", "else", "enum", "export", "extends", "extension", "false", "final", "finally", "float", "for", "fun", "func", "guard", "if", "implements", "import", "in", "init", "instanceof", "int", "interface", "internal", "is", "lateinit", "let", "long", "match", "new", "nil", "null", "object", "open", "operator", "override", "package", "private", "protected", "protocol", "public", "record", "return", "sealed", "self", "static", "struct", "super", "suspend", "switch", "this", "throw", "throws", "trait", "true", "try", "typealias", "val", "var", "void", "when", "where", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["csharp", "cs", "c#", "fsharp", "fs"],
        keywords: &["abstract", "as", "async", "await", "base", "bool", "break", "case", "catch", "class", "const", "continue", "decimal", "default", "delegate", "do", "double", "else", "enum", "event", "false", "finally", "float", "for", "foreach", "get", "if", "in", "init", "int", "interface", "internal", "is", "let", "lock", "long", "match", "namespace", "new", "null", "object", "out", "override", "params", "partial", "private", "protected", "public", "readonly", "record", "ref", "return", "sealed", "set", "static", "string", "struct", "switch", "this", "throw", "true", "try", "typeof", "using", "var", "virtual", "void", "when", "where", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["ruby", "rb", "elixir", "ex", "exs", "crystal"],
        line_comments: &["#"],
        block_comment: None,
        keywords: &["alias", "and", "begin", "break", "case", "class", "def", "defmodule", "defp", "do", "else", "elsif", "end", "ensure", "false", "fn", "for", "if", "in", "module", "next", "nil", "not", "or", "private", "puts", "raise", "redo", "require", "rescue", "retry", "return", "self", "super", "then", "true", "unless", "until", "use", "when", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["php"],
        line_comments: &["//", "#"],
        keywords: &["abstract", "array", "as", "break", "case", "catch", "class", "const", "continue", "default", "do", "echo", "else", "elseif", "enum", "extends", "false", "final", "finally", "fn", "for", "foreach", "function", "if", "implements", "instanceof", "interface", "match", "namespace", "new", "null", "private", "protected", "public", "readonly", "require", "return", "static", "switch", "this", "throw", "trait", "true", "try", "use", "var", "while", "yield"],
        ..BASE
    },
    LanguageRules {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "shellscript", "dockerfile", "containerfile", "makefile", "mk", "make", "just", "justfile"],
        line_comments: &["#"],
        block_comment: None,
        strings: &[long_string("\"", "\""), raw_string("'", "'")],
        keywords: &["case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for", "function", "if", "in", "local", "readonly", "return", "select", "set", "shift", "source", "then", "trap", "unset", "until", "while", "FROM", "RUN", "COPY", "ADD", "CMD", "ENTRYPOINT", "ENV", "ARG", "WORKDIR", "USER", "EXPOSE", "VOLUME", "LABEL", "include", "ifeq", "ifneq", "endif"],
        has_types: false,
        has_calls: false,
        has_dashes: true,
        ..BASE
    },
    LanguageRules {
        names: &["sql", "postgresql", "sqlite", "mysql", "psql"],
        line_comments: &["--"],
        strings: &[raw_string("'", "'"), string("\"", "\"")],
        keywords: &["add", "all", "alter", "and", "as", "asc", "begin", "between", "by", "cascade", "case", "check", "column", "commit", "constraint", "create", "cross", "default", "delete", "desc", "distinct", "drop", "else", "end", "exists", "false", "foreign", "from", "full", "group", "having", "if", "in", "index", "inner", "insert", "integer", "into", "is", "join", "key", "left", "like", "limit", "not", "null", "offset", "on", "or", "order", "outer", "primary", "references", "returning", "right", "rollback", "select", "set", "table", "text", "then", "true", "union", "unique", "update", "using", "values", "varchar", "view", "when", "where", "with"],
        ignores_case: true,
        has_types: false,
        ..BASE
    },
    LanguageRules {
        names: &["lua", "haskell", "hs", "elm", "ada"],
        line_comments: &["--"],
        block_comment: None,
        keywords: &["and", "break", "case", "class", "data", "deriving", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "import", "in", "infix", "instance", "let", "local", "module", "newtype", "nil", "not", "of", "or", "repeat", "return", "then", "true", "type", "until", "where", "while"],
        ..BASE
    },
    LanguageRules {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        keywords: &["true", "false", "null"],
        has_types: false,
        has_calls: false,
        ..BASE
    },
    LanguageRules { names: &["yaml", "yml", "toml", "ini", "conf", "cfg", "properties", "env", "hcl", "tf", "nix", "lock"], ..CONFIGURATION },
    LanguageRules {
        names: &["html", "htm", "xml", "svg", "vue", "svelte", "xhtml"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        has_types: false,
        has_calls: false,
        has_keys: true,
        has_dashes: true,
        ..BASE
    },
    LanguageRules {
        names: &["css", "scss", "less", "sass"],
        line_comments: &[],
        has_types: false,
        has_keys: true,
        has_dashes: true,
        ..BASE
    },
    LanguageRules { names: &["proto", "graphql", "gql", "thrift"], keywords: &["enum", "extend", "fragment", "import", "input", "interface", "message", "mutation", "oneof", "option", "optional", "package", "query", "repeated", "required", "returns", "rpc", "scalar", "schema", "service", "string", "subscription", "syntax", "type", "union", "int32", "int64", "bool", "bytes", "double", "float", "true", "false"], line_comments: &["//", "#"], ..BASE },
    LanguageRules { names: &["diff", "patch"], is_diff: true, ..BASE },
];

/// Finds a language by its name or by the extension of its files.
pub(super) fn find_language(name: &str) -> Option<&'static LanguageRules> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().find(|rules| rules.names.contains(&name.as_str()))
}

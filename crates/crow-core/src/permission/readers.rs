//! The programs that only read, with their allowed options. Data only; `read_only` does the comparison. Strict:
//! programs and options that are not listed do more than read.

/// The meaning of a program's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderOperands {
    /// No operands.
    None,
    /// No operands, and one of these options is required.
    OptionRequired,
    /// Text; no file is opened.
    Text,
    /// One name with a dot; a second operand would be a new value, and a name without a dot is an action.
    OneName,
    /// Files and directories to open.
    Files,
    /// Files and directories whose names and metadata are shown.
    Names,
    /// A pattern or a script, unless an option gave it, then files.
    PatternThenFiles,
    /// At most one file: a second one would be written.
    OneFile,
    /// A display format with a leading `+`.
    Format,
    /// Revisions and files of a Git repository.
    Revisions,
    /// Text with a list option; without it, something would be created.
    TextWithListOption,
}

/// A program, or a subcommand, that only reads with these options.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderProgram {
    /// Its names.
    pub(super) names: &'static str,
    /// The subcommands, of one or two words joined by `+`; empty without any.
    pub(super) subcommands: &'static str,
    /// One-letter options without a value; `#` is a number.
    pub(super) flags: &'static str,
    /// One-letter options with a value.
    pub(super) valued: &'static str,
    /// Long options, with a trailing `=` if they have a value.
    pub(super) long: &'static str,
    pub(super) operands: ReaderOperands,
    /// Whether no option at all, listed or not, makes it do more: then a file name that looks like an option is
    /// harmless.
    pub(super) is_always_harmless: bool,
}

const fn tame_reader(
    names: &'static str,
    operands: ReaderOperands,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
) -> ReaderProgram {
    ReaderProgram { names, subcommands: "", flags, valued, long, operands, is_always_harmless: true }
}

const fn strict_reader(reader: ReaderProgram) -> ReaderProgram {
    ReaderProgram { is_always_harmless: false, ..reader }
}

const fn with_subcommands(subcommands: &'static str, reader: ReaderProgram) -> ReaderProgram {
    ReaderProgram { subcommands, is_always_harmless: false, ..reader }
}

/// Options of `git log`, `git show` and `git diff`, which share most of them.
const GIT_LOG: &str = "--oneline --graph --all --decorate --decorate= --no-decorate --stat --stat= --shortstat \
    --numstat --dirstat --summary --name-only --name-status --patch --no-patch --patch-with-stat --raw --cached --staged \
    --abbrev-commit --no-abbrev-commit --abbrev= --pretty= --format= --date= --since= --until= --after= --before= --author= \
    --committer= --grep= --all-match --invert-grep --max-count= --skip= --reverse --follow --first-parent --merges \
    --no-merges --branches --tags --remotes --left-right --cherry-pick --cherry-mark --merge-base --word-diff --word-diff= \
    --color-words --color --color= --no-color --minimal --patience --histogram --ignore-all-space --ignore-space-change \
    --ignore-blank-lines --ignore-space-at-eol --find-renames --find-copies --no-renames --diff-filter= --unified= \
    --function-context --check --quiet --exit-code --relative --full-history --simplify-by-decoration --topo-order \
    --date-order --no-ext-diff --no-textconv --count --summary --numbered --email --committer --ancestry-path --no-index-never \
    --text --full-index --binary --inter-hunk-context= --pickaxe-all --pickaxe-regex --line-prefix= --no-prefix --notes --no-notes";

/// Options for lists of branches and tags.
const GIT_LIST: &str = "--all --list --remotes --verbose --show-current --contains= --no-contains= --merged --no-merged \
    --merged= --no-merged= --sort= --format= --points-at= --column --color --color= --no-color --abbrev= --ignore-case";

/// The table.
pub(super) const READERS: &[ReaderProgram] = &[
    // Shell builtins and system information.
    tame_reader(
        "pwd whoami tty nproc uptime arch groups logname users umask",
        ReaderOperands::None,
        "PL",
        "",
        "--all",
    ),
    tame_reader("export", ReaderOperands::None, "p", "", ""),
    tame_reader("ulimit", ReaderOperands::None, "aSH", "", ""),
    tame_reader("hostname", ReaderOperands::None, "fsiI", "", ""),
    tame_reader("uname", ReaderOperands::None, "asnrvmpio", "", "--all"),
    tame_reader("id", ReaderOperands::Text, "ugGnrz", "", "--user --group --groups --name"),
    tame_reader("type which whereis", ReaderOperands::Text, "apPtsbm", "", "--all"),
    tame_reader("basename", ReaderOperands::Text, "az", "s", "--multiple --suffix="),
    tame_reader("dirname", ReaderOperands::Text, "z", "", "--zero"),
    tame_reader("seq", ReaderOperands::Text, "w", "fs", "--equal-width"),
    tame_reader("expr sleep cal getconf tput", ReaderOperands::Text, "", "", ""),
    tame_reader("printenv", ReaderOperands::Text, "0", "", ""),
    tame_reader("env", ReaderOperands::None, "0", "", ""),
    tame_reader("locale", ReaderOperands::Text, "akmc", "", ""),
    strict_reader(tame_reader(
        "date",
        ReaderOperands::Format,
        "uR",
        "dI",
        "--utc --universal --date= --iso-8601 --iso-8601= --rfc-3339= --rfc-email",
    )),
    tame_reader(
        "ps",
        ReaderOperands::Text,
        "aAdefFlLuxwHjTM",
        "opuCtg",
        "--sort= --forest --no-headers --pid= --format= --width=",
    ),
    tame_reader(
        "free lscpu lsblk vmstat",
        ReaderOperands::Text,
        "hmgbkwtvafle",
        "so",
        "--human --bytes --json",
    ),
    // Names and metadata of files.
    tame_reader(
        "ls",
        ReaderOperands::Names,
        "aAlhHtrSRdF1CmnopgGikLqQsuUvxXbBcfNZ",
        "wIT",
        "--all --almost-all --human-readable --color --color= --group-directories-first --recursive --reverse --size --sort= \
         --time= --time-style= --full-time --directory --classify --inode --ignore= --width= --si --format= --indicator-style= \
         --numeric-uid-gid --no-group --dereference --hide= --literal --quote-name",
    ),
    tame_reader(
        "stat",
        ReaderOperands::Names,
        "LftxF",
        "c",
        "--format= --printf= --dereference --file-system --terse",
    ),
    tame_reader(
        "du",
        ReaderOperands::Names,
        "ashckmbDHLlxS0",
        "dt",
        "--summarize --human-readable --max-depth= --total --apparent-size --all \
         --exclude= --bytes --threshold= --time --si --one-file-system",
    ),
    tame_reader(
        "df",
        ReaderOperands::Names,
        "ahHiklmTP",
        "tx",
        "--human-readable --all --inodes --print-type --total --type= --output=",
    ),
    tame_reader(
        "realpath readlink",
        ReaderOperands::Names,
        "efmnqszLP",
        "",
        "--canonicalize --canonicalize-existing --relative-to= --relative-base= \
         --no-symlinks --zero --strip",
    ),
    tame_reader(
        "file",
        ReaderOperands::Files,
        "biLhkzrs0N",
        "",
        "--brief --mime --mime-type --mime-encoding --dereference",
    ),
    strict_reader(tame_reader(
        "tree",
        ReaderOperands::Names,
        "adfhilpsugDFqNQrtvUCnJX",
        "LIP",
        "--dirsfirst --noreport --gitignore --prune --filelimit= --sort= \
         --du --si --charset= --matchdirs --ignore-case",
    )),
    // Content of files.
    tame_reader(
        "cat",
        ReaderOperands::Files,
        "AbeEnstTuv",
        "",
        "--number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank",
    ),
    tame_reader("head", ReaderOperands::Files, "qvz#", "nc", "--lines= --bytes= --quiet --silent --verbose"),
    tame_reader("tail", ReaderOperands::Files, "qvzr#", "nc", "--lines= --bytes= --quiet --silent --verbose"),
    tame_reader(
        "wc",
        ReaderOperands::Files,
        "lwcmL",
        "",
        "--lines --words --bytes --chars --max-line-length",
    ),
    tame_reader("nl", ReaderOperands::Files, "p", "bdfhilnsvw", "--body-numbering= --number-format="),
    tame_reader("tac rev", ReaderOperands::Files, "br", "s", ""),
    tame_reader(
        "cut",
        ReaderOperands::Files,
        "snz",
        "bcdf",
        "--bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter=",
    ),
    tame_reader(
        "tr",
        ReaderOperands::Text,
        "cCdst",
        "",
        "--complement --delete --squeeze-repeats --truncate-set1",
    ),
    tame_reader("fold", ReaderOperands::Files, "bs", "w", "--width= --spaces --bytes"),
    tame_reader("fmt", ReaderOperands::Files, "cstu", "wp", "--width="),
    tame_reader(
        "column",
        ReaderOperands::Files,
        "txenR",
        "scoN",
        "--table --separator= --output-separator= --fillrows",
    ),
    tame_reader("expand unexpand", ReaderOperands::Files, "ia", "t", "--tabs= --initial --all"),
    tame_reader("paste", ReaderOperands::Files, "sz", "d", "--serial --delimiters="),
    tame_reader(
        "join comm",
        ReaderOperands::Files,
        "zi123",
        "aevjot12",
        "--nocheck-order --check-order --output-delimiter= --total",
    ),
    strict_reader(tame_reader(
        "sort",
        ReaderOperands::Files,
        "bdfghinrRMVcCmsuz",
        "ktS",
        "--numeric-sort --reverse --unique --human-numeric-sort --version-sort --key= \
         --field-separator= --ignore-case --general-numeric-sort --stable --zero-terminated --check --dictionary-order",
    )),
    strict_reader(tame_reader(
        "uniq",
        ReaderOperands::OneFile,
        "cdDiuz",
        "fsw",
        "--count --repeated --unique --ignore-case --skip-fields= --skip-chars= --check-chars=",
    )),
    tame_reader("cmp", ReaderOperands::Files, "blsv", "in", "--silent --quiet --print-bytes --verbose"),
    tame_reader(
        "diff",
        ReaderOperands::Files,
        "abBcdeEiNpqrsStTuwyZ#",
        "CUWxIFL",
        "--unified --unified= --context --context= --brief --recursive --side-by-side \
         --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --new-file --report-identical-files --color --color= --width= \
         --suppress-common-lines --minimal --text --exclude= --label= --strip-trailing-cr --show-function-line=",
    ),
    tame_reader(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5",
        ReaderOperands::Files,
        "btz",
        "l",
        "--tag --binary --text",
    ),
    strict_reader(tame_reader("gofmt", ReaderOperands::Files, "ldes", "", "")),
    strict_reader(tame_reader("shasum", ReaderOperands::Files, "b", "a", "--algorithm=")),
    tame_reader("base64 base32", ReaderOperands::Files, "d", "w", "--decode --wrap="),
    tame_reader(
        "od hexdump hd",
        ReaderOperands::Files,
        "abcdfilosvxC",
        "AjNtwn",
        "--format= --read-bytes= --skip-bytes= --address-radix=",
    ),
    strict_reader(tame_reader("xxd", ReaderOperands::OneFile, "bpueiC", "lscgo", "")),
    tame_reader("strings", ReaderOperands::Files, "afw", "nte", "--all --bytes= --radix="),
    tame_reader("zcat bzcat xzcat gzcat", ReaderOperands::Files, "fv", "", ""),
    // Search.
    tame_reader(
        "grep egrep fgrep zgrep",
        ReaderOperands::PatternThenFiles,
        "abcEFGhHiIlLnoPqrsTUvVwxyzZ#",
        "eABCmdD",
        "--regexp= --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color --color= --colour --colour= \
         --files-with-matches --files-without-match --max-count= --only-matching --quiet --silent --no-messages --byte-offset --with-filename \
         --no-filename --line-number --null --after-context= --before-context= --context= --text --binary-files= --exclude= --exclude-dir= \
         --include= --recursive --extended-regexp --fixed-strings --basic-regexp --perl-regexp --label= --line-buffered",
    ),
    strict_reader(tame_reader(
        "rg",
        ReaderOperands::PatternThenFiles,
        "abcFhHiIlnNoPpqsSUvwx0",
        "eABCgjmMrtTEd",
        "--regexp= --ignore-case --smart-case --case-sensitive --word-regexp --line-regexp --fixed-strings --count --count-matches --files \
         --files-with-matches --files-without-match --glob= --iglob= --type= --type-not= --type-list \
         --max-count= --max-depth= --max-columns= --max-filesize= --line-number --no-line-number --column --heading --no-heading --color= \
         --colors= --context= --after-context= --before-context= --only-matching --replace= --invert-match --multiline --multiline-dotall \
         --pcre2 --sort= --sortr= --stats --trim --null --no-messages --no-filename --with-filename --json --vimgrep --pretty --passthru \
         --crlf --text --threads= --quiet --include-zero --no-config --one-file-system --glob-case-insensitive",
    )),
    strict_reader(tame_reader(
        "fd fdfind",
        ReaderOperands::PatternThenFiles,
        "HIisagpl01u",
        "dteEjcS",
        "--hidden --no-ignore --ignore-case --case-sensitive --glob \
         --regex --fixed-strings --absolute-path --full-path --max-depth= --min-depth= --exact-depth= --type= --extension= --exclude= --size= \
         --changed-within= --changed-before= --color= --max-results= --print0 --strip-cwd-prefix --list-details --prune",
    )),
    strict_reader(tame_reader(
        "ag",
        ReaderOperands::PatternThenFiles,
        "acHiGlLnQsSuUvw0",
        "ABCmg",
        "--ignore= --hidden --nocolor --nogroup --count --files-with-matches --literal",
    )),
    strict_reader(tame_reader(
        "sed gsed",
        ReaderOperands::PatternThenFiles,
        "nErsuz",
        "e",
        "--quiet --silent --regexp-extended --expression=",
    )),
    strict_reader(tame_reader("awk gawk mawk nawk", ReaderOperands::PatternThenFiles, "", "Fv", "")),
    strict_reader(tame_reader(
        "jq",
        ReaderOperands::PatternThenFiles,
        "rcnseSMCajR",
        "",
        "--raw-output --compact-output --null-input --slurp --sort-keys --tab \
         --exit-status --color-output --monochrome-output --raw-input --join-output --ascii-output --indent= --stream --seq",
    )),
    // Git.
    with_subcommands(
        "status",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "sbvz",
            "u",
            "--short --branch --porcelain --porcelain= --ignored --ignored= --untracked-files \
         --untracked-files= --column --show-stash --ahead-behind --no-ahead-behind --long --verbose --no-renames --renames",
        ),
    ),
    with_subcommands("reflog", tame_reader("git", ReaderOperands::None, "#", "n", GIT_LOG)),
    with_subcommands("shortlog", tame_reader("git", ReaderOperands::Revisions, "sne", "", GIT_LOG)),
    with_subcommands(
        "log show diff whatchanged rev-list diff-tree diff-index range-diff cherry stash+show",
        tame_reader("git", ReaderOperands::Revisions, "pPuszmtrRiEFwbBMCDgWcae#", "nLSGUl", GIT_LOG),
    ),
    with_subcommands("stash+list", tame_reader("git", ReaderOperands::Revisions, "ps", "n", GIT_LOG)),
    with_subcommands("branch", tame_reader("git", ReaderOperands::TextWithListOption, "avrl", "", GIT_LIST)),
    with_subcommands("tag", tame_reader("git", ReaderOperands::TextWithListOption, "ln#", "", GIT_LIST)),
    with_subcommands("submodule", tame_reader("git", ReaderOperands::None, "", "", "")),
    with_subcommands("symbolic-ref", tame_reader("git", ReaderOperands::OneFile, "q", "", "--short --quiet")),
    with_subcommands("remote", tame_reader("git", ReaderOperands::None, "v", "", "--verbose")),
    with_subcommands("remote+get-url", tame_reader("git", ReaderOperands::Text, "", "", "--push --all")),
    with_subcommands(
        "worktree+list submodule+status notes+list bisect+log",
        tame_reader("git", ReaderOperands::Text, "v", "", "--porcelain --verbose --cached --recursive"),
    ),
    with_subcommands("config", tame_reader("git", ReaderOperands::OneName, "", "", "")),
    with_subcommands(
        "config+list",
        tame_reader(
            "git",
            ReaderOperands::None,
            "z",
            "",
            "--show-origin --show-scope --name-only --global --local --system --null",
        ),
    ),
    strict_reader(tame_reader(
        "pgrep",
        ReaderOperands::Text,
        "flaxivnoc",
        "uGPt",
        "--full --list-name --list-full --exact --count",
    )),
    with_subcommands(
        "config",
        tame_reader(
            "git",
            ReaderOperands::TextWithListOption,
            "lz",
            "",
            "--get= --get-all= --get-regexp= --list --show-origin --show-scope --name-only --global --local \
         --system --null --bool --int --type= --default=",
        ),
    ),
    with_subcommands(
        "rev-parse",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "q",
            "",
            "--short --short= --verify --quiet --abbrev-ref --abbrev-ref= --symbolic --symbolic-full-name \
         --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-bare-repository --all \
         --branches --tags --remotes --revs-only --no-revs --flags --no-flags --is-inside-git-dir --show-superproject-working-tree --path-format=",
        ),
    ),
    with_subcommands(
        "describe name-rev merge-base show-ref for-each-ref count-objects check-ignore check-attr version",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "avHqsdznl",
            "",
            "--tags --all --always --dirty --long --abbrev= --match= --exclude= --contains --name-only --refs= --is-ancestor --octopus \
         --fork-point --independent --heads --hash --hash= --verify --quiet --sort= --format= --count= --points-at= --merged --no-merged \
         --contains= --human-readable --verbose --non-matching --short --build-options --first-parent --exact-match",
        ),
    ),
    with_subcommands(
        "blame annotate",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "lnftspwecMCb",
            "L",
            "--porcelain --line-porcelain --date= --show-email --show-name --since= \
         --abbrev= --color-lines --root --incremental --score-debug",
        ),
    ),
    with_subcommands(
        "ls-files",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "cdmoiskutvzf",
            "xX",
            "--cached --deleted --modified --others --ignored --stage --unmerged --killed \
         --exclude-standard --exclude= --directory --full-name --error-unmatch --abbrev= --eol --deduplicate",
        ),
    ),
    with_subcommands(
        "ls-tree",
        tame_reader(
            "git",
            ReaderOperands::Revisions,
            "rtdlz",
            "",
            "--name-only --name-status --full-name --full-tree --long --abbrev= --object-only --format=",
        ),
    ),
    with_subcommands("cat-file", tame_reader("git", ReaderOperands::Revisions, "ptse", "", "")),
    with_subcommands(
        "grep",
        tame_reader(
            "git",
            ReaderOperands::PatternThenFiles,
            "abcEFGhHiIlLnopPqvwWz#",
            "eABCm",
            "--cached --untracked --no-index-never --count --ignore-case --word-regexp \
         --line-number --column --name-only --files-with-matches --files-without-match --heading --break --show-function --context= --after-context= \
         --before-context= --all-match --and --or --not --extended-regexp --fixed-strings --perl-regexp --max-depth= --quiet --color= --no-color \
         --only-matching --full-name --max-count=",
        ),
    ),
    // Others, with options that only show information.
    with_subcommands("version", tame_reader("go", ReaderOperands::Files, "mv", "", "")),
    with_subcommands("env", tame_reader("go", ReaderOperands::Text, "", "", "-json -changed")),
    with_subcommands("doc", tame_reader("go", ReaderOperands::Text, "", "", "-all -c -cmd -short -src -u")),
    with_subcommands(
        "list",
        tame_reader("go", ReaderOperands::Text, "mefu", "", "-json -deps -test -find -f="),
    ),
    with_subcommands(
        "list show freeze check",
        tame_reader(
            "pip pip3",
            ReaderOperands::Text,
            "flv",
            "",
            "--format= --outdated --user --local --files --verbose --disable-pip-version-check",
        ),
    ),
    with_subcommands(
        "ls list root prefix bin",
        tame_reader(
            "npm",
            ReaderOperands::Text,
            "ag",
            "",
            "--depth= --all --global --json --long --parseable --omit= --prod --production",
        ),
    ),
    strict_reader(tame_reader("node nodejs npm pnpm", ReaderOperands::OptionRequired, "v", "", "--version")),
    strict_reader(tame_reader(
        "python python2 python3 pip pip3",
        ReaderOperands::OptionRequired,
        "V",
        "",
        "--version",
    )),
    strict_reader(tame_reader(
        "bun deno ruby gem perl php gcc cc g++ clang make cmake ninja meson docker podman kubectl helm terraform gh jq rg git curl wget tmux vim \
         nvim bash zsh sqlite3 psql mysql protoc dotnet swift kotlinc scala",
        ReaderOperands::OptionRequired,
        "",
        "",
        "--version",
    )),
    strict_reader(tame_reader("java javac", ReaderOperands::OptionRequired, "", "", "-version --version")),
];

//! The programs that only read, with the options they may have for that. Data only; how a command is compared with it
//! is `reading`'s. Strict: a program or an option that is not here does more than read.

/// What a program does with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// It has none.
    None,
    /// It has none, and without one of these options it does something else.
    Shown,
    /// They are text, and nothing is opened.
    Text,
    /// There is one, which is text; a second would be set.
    One,
    /// It opens these files and folders.
    Files,
    /// It shows names and facts of these files and folders, not what is in them.
    Names,
    /// The first is a pattern or a script, unless an option gave one; the others are files.
    PatternThenFiles,
    /// It opens one file at the most: it would write to a second one.
    OneFile,
    /// One that says how something is shown, with a `+` in front.
    Format,
    /// Revisions and files of a Git repository.
    Revisions,
    /// Text, if an option says that something is listed; otherwise it would make something.
    Listed,
}

/// A program, or a subcommand of one, that only reads with these options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    /// Its names.
    pub(super) names: &'static str,
    /// The subcommands, of one or two words with a `+` between them; empty if it has none.
    pub(super) subcommands: &'static str,
    /// One-letter options without a value; `#` is a number.
    pub(super) flags: &'static str,
    /// One-letter options with a value.
    pub(super) valued: &'static str,
    /// Long options, those with a value with `=` at the end.
    pub(super) long: &'static str,
    pub(super) operands: Operands,
    /// Whether no option at all, also of those not named here, makes it do more: then a file whose name looks like an
    /// option does no harm.
    pub(super) is_tame: bool,
}

const fn tame(
    names: &'static str,
    operands: Operands,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
) -> Reader {
    Reader { names, subcommands: "", flags, valued, long, operands, is_tame: true }
}

const fn strict(reader: Reader) -> Reader {
    Reader { is_tame: false, ..reader }
}

const fn with(subcommands: &'static str, reader: Reader) -> Reader {
    Reader { subcommands, is_tame: false, ..reader }
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

/// Options of lists of branches and tags.
const GIT_LIST: &str = "--all --list --remotes --verbose --show-current --contains= --no-contains= --merged --no-merged \
    --merged= --no-merged= --sort= --format= --points-at= --column --color --color= --no-color --abbrev= --ignore-case";

/// The table.
pub(super) const READERS: &[Reader] = &[
    // Of the shell.
    tame("pwd whoami tty nproc uptime arch groups logname users umask", Operands::None, "PL", "", "--all"),
    tame("hostname", Operands::None, "fsiI", "", ""),
    tame("uname", Operands::None, "asnrvmpio", "", "--all"),
    tame("id", Operands::Text, "ugGnrz", "", "--user --group --groups --name"),
    tame("type which whereis", Operands::Text, "apPtsbm", "", "--all"),
    tame("basename", Operands::Text, "az", "s", "--multiple --suffix="),
    tame("dirname", Operands::Text, "z", "", "--zero"),
    tame("seq", Operands::Text, "w", "fs", "--equal-width"),
    tame("expr sleep cal getconf tput", Operands::Text, "", "", ""),
    tame("printenv", Operands::Text, "0", "", ""),
    tame("env", Operands::None, "0", "", ""),
    tame("locale", Operands::Text, "akmc", "", ""),
    strict(tame(
        "date",
        Operands::Format,
        "uR",
        "dI",
        "--utc --universal --date= --iso-8601 --iso-8601= --rfc-3339= --rfc-email",
    )),
    tame(
        "ps",
        Operands::Text,
        "aAdefFlLuxwHjTM",
        "opuCtg",
        "--sort= --forest --no-headers --pid= --format= --width=",
    ),
    tame("free lscpu lsblk vmstat", Operands::Text, "hmgbkwtvafle", "so", "--human --bytes --json"),
    // Names and facts of files.
    tame(
        "ls",
        Operands::Names,
        "aAlhHtrSRdF1CmnopgGikLqQsuUvxXbBcfNZ",
        "wIT",
        "--all --almost-all --human-readable --color --color= --group-directories-first --recursive --reverse --size --sort= \
         --time= --time-style= --full-time --directory --classify --inode --ignore= --width= --si --format= --indicator-style= \
         --numeric-uid-gid --no-group --dereference --hide= --literal --quote-name",
    ),
    tame("stat", Operands::Names, "LftxF", "c", "--format= --printf= --dereference --file-system --terse"),
    tame(
        "du",
        Operands::Names,
        "ashckmbDHLlxS0",
        "dt",
        "--summarize --human-readable --max-depth= --total --apparent-size --all \
         --exclude= --bytes --threshold= --time --si --one-file-system",
    ),
    tame(
        "df",
        Operands::Names,
        "ahHiklmTP",
        "tx",
        "--human-readable --all --inodes --print-type --total --type= --output=",
    ),
    tame(
        "realpath readlink",
        Operands::Names,
        "efmnqszLP",
        "",
        "--canonicalize --canonicalize-existing --relative-to= --relative-base= \
         --no-symlinks --zero --strip",
    ),
    tame(
        "file",
        Operands::Files,
        "biLhkzrs0N",
        "",
        "--brief --mime --mime-type --mime-encoding --dereference",
    ),
    strict(tame(
        "tree",
        Operands::Names,
        "adfhilpsugDFqNQrtvUCnJX",
        "LIP",
        "--dirsfirst --noreport --gitignore --prune --filelimit= --sort= \
         --du --si --charset= --matchdirs --ignore-case",
    )),
    // What is in files.
    tame(
        "cat",
        Operands::Files,
        "AbeEnstTuv",
        "",
        "--number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank",
    ),
    tame("head", Operands::Files, "qvz#", "nc", "--lines= --bytes= --quiet --silent --verbose"),
    tame("tail", Operands::Files, "qvzr#", "nc", "--lines= --bytes= --quiet --silent --verbose"),
    tame("wc", Operands::Files, "lwcmL", "", "--lines --words --bytes --chars --max-line-length"),
    tame("nl", Operands::Files, "p", "bdfhilnsvw", "--body-numbering= --number-format="),
    tame("tac rev", Operands::Files, "br", "s", ""),
    tame(
        "cut",
        Operands::Files,
        "snz",
        "bcdf",
        "--bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter=",
    ),
    tame("tr", Operands::Text, "cCdst", "", "--complement --delete --squeeze-repeats --truncate-set1"),
    tame("fold", Operands::Files, "bs", "w", "--width= --spaces --bytes"),
    tame("fmt", Operands::Files, "cstu", "wp", "--width="),
    tame("column", Operands::Files, "txenR", "scoN", "--table --separator= --output-separator= --fillrows"),
    tame("expand unexpand", Operands::Files, "ia", "t", "--tabs= --initial --all"),
    tame("paste", Operands::Files, "sz", "d", "--serial --delimiters="),
    tame(
        "join comm",
        Operands::Files,
        "zi123",
        "aevjot12",
        "--nocheck-order --check-order --output-delimiter= --total",
    ),
    strict(tame(
        "sort",
        Operands::Files,
        "bdfghinrRMVcCmsuz",
        "ktS",
        "--numeric-sort --reverse --unique --human-numeric-sort --version-sort --key= \
         --field-separator= --ignore-case --general-numeric-sort --stable --zero-terminated --check --dictionary-order",
    )),
    strict(tame(
        "uniq",
        Operands::OneFile,
        "cdDiuz",
        "fsw",
        "--count --repeated --unique --ignore-case --skip-fields= --skip-chars= --check-chars=",
    )),
    tame("cmp", Operands::Files, "blsv", "in", "--silent --quiet --print-bytes --verbose"),
    tame(
        "diff",
        Operands::Files,
        "abBcdeEiNpqrsStTuwyZ#",
        "CUWxIFL",
        "--unified --unified= --context --context= --brief --recursive --side-by-side \
         --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --new-file --report-identical-files --color --color= --width= \
         --suppress-common-lines --minimal --text --exclude= --label= --strip-trailing-cr --show-function-line=",
    ),
    tame(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5",
        Operands::Files,
        "btz",
        "l",
        "--tag --binary --text",
    ),
    strict(tame("gofmt", Operands::Files, "ldes", "", "")),
    strict(tame("shasum", Operands::Files, "b", "a", "--algorithm=")),
    tame("base64 base32", Operands::Files, "d", "w", "--decode --wrap="),
    tame(
        "od hexdump hd",
        Operands::Files,
        "abcdfilosvxC",
        "AjNtwn",
        "--format= --read-bytes= --skip-bytes= --address-radix=",
    ),
    strict(tame("xxd", Operands::OneFile, "bpueiC", "lscgo", "")),
    tame("strings", Operands::Files, "afw", "nte", "--all --bytes= --radix="),
    tame("zcat bzcat xzcat gzcat", Operands::Files, "fv", "", ""),
    // Search.
    tame(
        "grep egrep fgrep zgrep",
        Operands::PatternThenFiles,
        "abcEFGhHiIlLnoPqrsTUvVwxyzZ#",
        "eABCmdD",
        "--regexp= --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color --color= --colour --colour= \
         --files-with-matches --files-without-match --max-count= --only-matching --quiet --silent --no-messages --byte-offset --with-filename \
         --no-filename --line-number --null --after-context= --before-context= --context= --text --binary-files= --exclude= --exclude-dir= \
         --include= --recursive --extended-regexp --fixed-strings --basic-regexp --perl-regexp --label= --line-buffered",
    ),
    strict(tame(
        "rg",
        Operands::PatternThenFiles,
        "abcFhHiIlnNoPpqsSUvwx0",
        "eABCgjmMrtTEd",
        "--regexp= --ignore-case --smart-case --case-sensitive --word-regexp --line-regexp --fixed-strings --count --count-matches --files \
         --files-with-matches --files-without-match --glob= --iglob= --type= --type-not= --type-list \
         --max-count= --max-depth= --max-columns= --max-filesize= --line-number --no-line-number --column --heading --no-heading --color= \
         --colors= --context= --after-context= --before-context= --only-matching --replace= --invert-match --multiline --multiline-dotall \
         --pcre2 --sort= --sortr= --stats --trim --null --no-messages --no-filename --with-filename --json --vimgrep --pretty --passthru \
         --crlf --text --threads= --quiet --include-zero --no-config --one-file-system --glob-case-insensitive",
    )),
    strict(tame(
        "fd fdfind",
        Operands::PatternThenFiles,
        "HIisagpl01u",
        "dteEjcS",
        "--hidden --no-ignore --ignore-case --case-sensitive --glob \
         --regex --fixed-strings --absolute-path --full-path --max-depth= --min-depth= --exact-depth= --type= --extension= --exclude= --size= \
         --changed-within= --changed-before= --color= --max-results= --print0 --strip-cwd-prefix --list-details --prune",
    )),
    strict(tame(
        "ag",
        Operands::PatternThenFiles,
        "acHiGlLnQsSuUvw0",
        "ABCmg",
        "--ignore= --hidden --nocolor --nogroup --count --files-with-matches --literal",
    )),
    strict(tame(
        "sed gsed",
        Operands::PatternThenFiles,
        "nErsuz",
        "e",
        "--quiet --silent --regexp-extended --expression=",
    )),
    strict(tame("awk gawk mawk nawk", Operands::PatternThenFiles, "", "Fv", "")),
    strict(tame(
        "jq",
        Operands::PatternThenFiles,
        "rcnseSMCajR",
        "",
        "--raw-output --compact-output --null-input --slurp --sort-keys --tab \
         --exit-status --color-output --monochrome-output --raw-input --join-output --ascii-output --indent= --stream --seq",
    )),
    // Git.
    with(
        "status",
        tame(
            "git",
            Operands::Revisions,
            "sbvz",
            "u",
            "--short --branch --porcelain --porcelain= --ignored --ignored= --untracked-files \
         --untracked-files= --column --show-stash --ahead-behind --no-ahead-behind --long --verbose --no-renames --renames",
        ),
    ),
    with("reflog", tame("git", Operands::None, "#", "n", GIT_LOG)),
    with("shortlog", tame("git", Operands::Revisions, "sne", "", GIT_LOG)),
    with(
        "log show diff whatchanged rev-list diff-tree diff-index range-diff cherry stash+show",
        tame("git", Operands::Revisions, "pPuszmtrRiEFwbBMCDgWcae#", "nLSGUl", GIT_LOG),
    ),
    with("stash+list", tame("git", Operands::Revisions, "ps", "n", GIT_LOG)),
    with("branch", tame("git", Operands::Listed, "avrl", "", GIT_LIST)),
    with("tag", tame("git", Operands::Listed, "l", "", GIT_LIST)),
    with("remote", tame("git", Operands::None, "v", "", "--verbose")),
    with("remote+get-url", tame("git", Operands::Text, "", "", "--push --all")),
    with(
        "worktree+list submodule+status notes+list bisect+log",
        tame("git", Operands::Text, "v", "", "--porcelain --verbose --cached --recursive"),
    ),
    with("config", tame("git", Operands::One, "", "", "")),
    strict(tame(
        "pgrep",
        Operands::Text,
        "flaxivnoc",
        "uGPt",
        "--full --list-name --list-full --exact --count",
    )),
    with(
        "config",
        tame(
            "git",
            Operands::Listed,
            "lz",
            "",
            "--get= --get-all= --get-regexp= --list --show-origin --show-scope --name-only --global --local \
         --system --null --bool --int --type= --default=",
        ),
    ),
    with(
        "rev-parse",
        tame(
            "git",
            Operands::Revisions,
            "q",
            "",
            "--short --short= --verify --quiet --abbrev-ref --abbrev-ref= --symbolic --symbolic-full-name \
         --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-bare-repository --all \
         --branches --tags --remotes --revs-only --no-revs --flags --no-flags --is-inside-git-dir --show-superproject-working-tree --path-format=",
        ),
    ),
    with(
        "describe name-rev merge-base show-ref for-each-ref count-objects check-ignore check-attr version",
        tame(
            "git",
            Operands::Revisions,
            "avHqsdznl",
            "",
            "--tags --all --always --dirty --long --abbrev= --match= --exclude= --contains --name-only --refs= --is-ancestor --octopus \
         --fork-point --independent --heads --hash --hash= --verify --quiet --sort= --format= --count= --points-at= --merged --no-merged \
         --contains= --human-readable --verbose --non-matching --short --build-options --first-parent --exact-match",
        ),
    ),
    with(
        "blame annotate",
        tame(
            "git",
            Operands::Revisions,
            "lnftspwecMCb",
            "LS",
            "--porcelain --line-porcelain --date= --show-email --show-name --since= \
         --abbrev= --color-lines --root --incremental --score-debug",
        ),
    ),
    with(
        "ls-files",
        tame(
            "git",
            Operands::Revisions,
            "cdmoiskutvzf",
            "xX",
            "--cached --deleted --modified --others --ignored --stage --unmerged --killed \
         --exclude-standard --exclude= --directory --full-name --error-unmatch --abbrev= --eol --deduplicate",
        ),
    ),
    with(
        "ls-tree",
        tame(
            "git",
            Operands::Revisions,
            "rtdlz",
            "",
            "--name-only --name-status --full-name --full-tree --long --abbrev= --object-only --format=",
        ),
    ),
    with("cat-file", tame("git", Operands::Revisions, "ptse", "", "")),
    with(
        "grep",
        tame(
            "git",
            Operands::PatternThenFiles,
            "abcEFGhHiIlLnopPqvwWz#",
            "eABCm",
            "--cached --untracked --no-index-never --count --ignore-case --word-regexp \
         --line-number --column --name-only --files-with-matches --files-without-match --heading --break --show-function --context= --after-context= \
         --before-context= --all-match --and --or --not --extended-regexp --fixed-strings --perl-regexp --max-depth= --quiet --color= --no-color \
         --only-matching --full-name --max-count=",
        ),
    ),
    // Others, where they only say what is there.
    with("version", tame("go", Operands::Files, "mv", "", "")),
    with("env", tame("go", Operands::Text, "", "", "-json -changed")),
    with("doc", tame("go", Operands::Text, "", "", "-all -c -cmd -short -src -u")),
    with("list", tame("go", Operands::Text, "mefu", "", "-json -deps -test -find -f=")),
    with(
        "list show freeze check",
        tame(
            "pip pip3",
            Operands::Text,
            "flv",
            "",
            "--format= --outdated --user --local --files --verbose --disable-pip-version-check",
        ),
    ),
    with(
        "ls list root prefix bin",
        tame(
            "npm",
            Operands::Text,
            "ag",
            "",
            "--depth= --all --global --json --long --parseable --omit= --prod --production",
        ),
    ),
    strict(tame("node nodejs npm pnpm yarn", Operands::Shown, "v", "", "--version")),
    strict(tame("python python2 python3 pip pip3", Operands::Shown, "V", "", "--version")),
    strict(tame(
        "bun deno ruby gem perl php gcc cc g++ clang make cmake ninja meson docker podman kubectl helm terraform gh jq rg git curl wget tmux vim \
         nvim bash zsh sqlite3 psql mysql protoc dotnet swift kotlinc scala",
        Operands::Shown,
        "",
        "",
        "--version",
    )),
    strict(tame("java javac", Operands::Shown, "", "", "-version --version")),
];

//! The risk table: effects of options of known programs that ask even under a rule.
//!
//! Data only; `risks` compares words with it. Programs that are not listed do what their rule allows.

/// The additional effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RiskEffect {
    /// It runs something that no rule can see.
    Runs,
    /// It writes, sends or reads elsewhere.
    Writes,
}

/// A word that makes a program do more than its rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandRisk {
    /// The index of the word; a rule that states it covers it.
    pub(super) word_index: usize,
    /// The effect.
    pub(super) effect: RiskEffect,
    /// The reason for the user, with the program as its subject.
    pub(super) reason: &'static str,
}

/// The position where a row applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RiskScope {
    /// Anywhere.
    Anywhere,
    /// Before the first operand, among the program's own options.
    BeforeOperands,
    /// With this subcommand.
    WithSubcommand(&'static str),
    /// At the subcommand; the options are subcommands.
    Subcommand,
}

/// Options of a program with their effect.
#[derive(Clone, Copy)]
pub(super) struct RiskRow {
    /// The programs, without a version.
    pub(super) programs: &'static str,
    /// The position.
    pub(super) scope: RiskScope,
    /// The options: `-x` in a bundle, `--long` (also abbreviated), `-word` exactly; `word` is an operand; `NAME=` a
    /// prefix; `+` an operand with this prefix; `*` any operand; `=` an operand that contains one; `#2` the second
    /// operand; `0` no operand at all.
    pub(super) options: &'static str,
    /// The effect.
    pub(super) effect: RiskEffect,
    /// The reason for the user, with the program as its subject.
    pub(super) reason: &'static str,
}

const fn runs_row(programs: &'static str, options: &'static str, reason: &'static str) -> RiskRow {
    RiskRow { programs, scope: RiskScope::Anywhere, options, effect: RiskEffect::Runs, reason }
}

const fn writes_row(programs: &'static str, options: &'static str, reason: &'static str) -> RiskRow {
    RiskRow { programs, scope: RiskScope::Anywhere, options, effect: RiskEffect::Writes, reason }
}

const fn with_subcommand(operand: &'static str, row: RiskRow) -> RiskRow {
    RiskRow { scope: RiskScope::WithSubcommand(operand), ..row }
}

const fn at_subcommand(row: RiskRow) -> RiskRow {
    RiskRow { scope: RiskScope::Subcommand, ..row }
}

const fn before_operands(row: RiskRow) -> RiskRow {
    RiskRow { scope: RiskScope::BeforeOperands, ..row }
}

/// One-letter options with a joined value, whose letters are not options.
pub(super) const VALUED_LETTERS: &[(&str, &str)] = &[
    ("sed", "ef"),
    ("sort", "kt"),
    ("curl", "dHXAbeuFmw"),
    ("make", "j"),
    ("cargo", "pFj"),
    ("tar", "f"),
    ("perl", "IF"),
];

/// Programs that read a single dash with several letters as one option.
pub(super) const UNBUNDLED_PROGRAMS: &[&str] = &[
    "go", "find", "gfind", "openssl", "java", "gcc", "cc", "clang", "g++", "c++", "clang++", "sqlite", "lua",
];

/// Options before a subcommand that have no value.
pub(super) const VALUELESS: &[&str] = &[
    "--no-pager",
    "--no-optional-locks",
    "--bare",
    "--literal-pathspecs",
    "-P",
    "-q",
    "-v",
    "--quiet",
    "--verbose",
    "--silent",
    "-y",
    "--yes",
];

/// Options before a subcommand that a rule may omit.
pub(super) const IGNORED_OPTIONS: &[(&str, &str)] = &[
    ("git", "--no-pager --no-optional-locks --literal-pathspecs -P"),
    ("cargo", "-q --quiet -v --verbose"),
    ("npm", "--silent"),
];

/// Programs that read no option after `--`.
pub(super) const DOUBLE_DASH_PROGRAMS: &[&str] = &["git", "rg", "sort", "gsort"];

/// Other programs, and Git subcommands, that are controlled by their input.
pub(super) const INPUT_PROGRAMS: &str =
    "patch cpio at batch crontab bc dc gdb lldb psql mysql sqlite ed ex xargs parallel code pdb";
pub(super) const INPUT_GIT_SUBCOMMANDS: &str = "apply am fast-import update-ref";

/// Long options with the same effect in most programs, by prefix.
pub(super) const GENERIC_OPTIONS: &[(&str, RiskEffect, &str)] = &[
    ("--config", RiskEffect::Runs, "takes options from elsewhere, which can name a program"),
    ("--conf", RiskEffect::Runs, "takes options from elsewhere, which can name a program"),
    ("--rcfile", RiskEffect::Runs, "takes options from elsewhere, which can name a program"),
    ("--options-file", RiskEffect::Runs, "takes options from elsewhere, which can name a program"),
    ("--plugin", RiskEffect::Runs, "loads arbitrary code"),
    ("--load", RiskEffect::Runs, "loads arbitrary code"),
    ("--require", RiskEffect::Runs, "loads arbitrary code"),
    ("--preload", RiskEffect::Runs, "loads arbitrary code"),
    ("--import", RiskEffect::Runs, "loads arbitrary code"),
    ("--extension", RiskEffect::Runs, "loads arbitrary code"),
    ("--init-", RiskEffect::Runs, "runs code at its start"),
    ("--filter", RiskEffect::Runs, "runs another program on what it reads"),
    ("--post-render", RiskEffect::Runs, "runs another program on what it makes"),
    ("--exec", RiskEffect::Runs, "runs another program"),
    ("--shell", RiskEffect::Runs, "runs another program"),
    ("--command", RiskEffect::Runs, "runs another program"),
    ("--eval", RiskEffect::Runs, "runs a text as a program"),
    ("--pager", RiskEffect::Runs, "runs an arbitrary pager"),
    ("--editor", RiskEffect::Runs, "runs an arbitrary editor"),
    ("--browser", RiskEffect::Runs, "runs an arbitrary browser"),
    ("--interpreter", RiskEffect::Runs, "runs an arbitrary interpreter"),
    ("--linker", RiskEffect::Runs, "runs an arbitrary linker"),
    ("--ld-path", RiskEffect::Runs, "runs an arbitrary linker"),
    ("--wrapper", RiskEffect::Runs, "runs another program"),
    ("--launcher", RiskEffect::Runs, "runs another program"),
    ("--unix-socket", RiskEffect::Runs, "talks to a program on this machine"),
    ("--abstract-unix-socket", RiskEffect::Runs, "talks to a program on this machine"),
    ("--output", RiskEffect::Writes, "writes to an arbitrary place"),
    ("--out", RiskEffect::Writes, "writes to an arbitrary place"),
    ("--log-file", RiskEffect::Writes, "writes to an arbitrary file"),
    ("--report-file", RiskEffect::Writes, "writes to an arbitrary file"),
    ("--install-dir", RiskEffect::Writes, "writes to an arbitrary place"),
    ("--dest", RiskEffect::Writes, "writes to an arbitrary place"),
];

/// Options with such a prefix that only affect the display, for all programs; then exceptions per program.
pub(super) const DISPLAY_OPTIONS: &str = "--output-format --output-style --output-type --output-width --output-encoding \
     --output-indicator-new --output-indicator-old --output-indicator-context --output-logs --outline --confirm \
     --command-prefix --execution-order";
pub(super) const EXEMPT_OPTIONS: &[(&str, &str)] = &[
    ("git", "--filter --exec-path"),
    ("docker", "--filter"),
    ("podman", "--filter"),
    ("dotnet", "--filter --configuration"),
    ("pnpm", "--filter --filter-prod"),
    ("turbo", "--filter"),
    ("cmake", "--config"),
    ("ctest", "--config --output-on-failure"),
    ("swift", "--filter --configuration"),
    ("phpunit", "--filter"),
    ("kubectl", "--output"),
    ("oc", "--output"),
    ("aws", "--output"),
    ("gh", "--command"),
    ("jq", "--exit-status"),
];

/// Programs for which a word with a leading `@` is a name; for others it is a file of arguments.
pub(super) const NAMES_WITH_AT: &str =
    "git npm pnpm yarn bun npx echo printf node gh jj hg nx turbo lerna rush";

/// Options that look like abbreviations of dangerous ones.
pub(super) const HARMLESS_OPTIONS: &[(&str, &str)] = &[
    ("git", "--text --exec-path --no-ext-diff --or"),
    ("tar", "--checkpoint --to-stdout"),
    ("curl", "--data --form-string --trace-time --compressed --head --header"),
    ("cargo", "--color"),
    ("node", "--test"),
    ("pytest", "--co --color"),
];

/// The table.
pub(super) const ROWS: &[RiskRow] = &[
    // Version control.
    before_operands(runs_row(
        "git",
        "-c --config-env",
        "sets configuration, which can name a program to run",
    )),
    before_operands(runs_row(
        "git",
        "-C --git-dir --work-tree --exec-path= --namespace",
        "works in another repository, whose configuration can name programs",
    )),
    before_operands(runs_row("git", "-p --paginate", "runs a pager that the repository names")),
    runs_row("git", "--ext-diff --textconv", "runs a program that the repository names"),
    runs_row("git", "--upload-pack --receive-pack --exec --remote", "runs another program through an option"),
    runs_row(
        "git",
        "--extcmd --open-files-in-pager --template --config --unsafe-paths",
        "runs another program through an option",
    ),
    at_subcommand(runs_row(
        "git",
        "difftool mergetool filter-branch send-email instaweb daemon",
        "runs programs that the configuration names",
    )),
    at_subcommand(runs_row("git", "config", "changes configuration, which can name programs")),
    with_subcommand("maintenance", runs_row("git", "start register", "has itself run later")),
    with_subcommand(
        "fetch",
        runs_row("git", "/ ./ ../ ~ file: ext:", "runs a transport in an arbitrary directory"),
    ),
    with_subcommand(
        "pull",
        runs_row("git", "/ ./ ../ ~ file: ext:", "runs a transport in an arbitrary directory"),
    ),
    with_subcommand(
        "ls-remote",
        runs_row("git", "/ ./ ../ ~ file: ext:", "runs a transport in an arbitrary directory"),
    ),
    with_subcommand("fast-export", writes_row("git", "--export-marks", "writes to an arbitrary file")),
    with_subcommand(
        "fast-import",
        writes_row("git", "--export-marks --export-pack-edges", "writes to an arbitrary file"),
    ),
    with_subcommand("checkout-index", writes_row("git", "--prefix", "writes to an arbitrary place")),
    with_subcommand("worktree", writes_row("git", "add move", "writes to an arbitrary place")),
    with_subcommand("grep", runs_row("git", "-O", "runs an arbitrary pager")),
    with_subcommand("rebase", runs_row("git", "-x", "runs commands between commits")),
    with_subcommand("clone", runs_row("git", "-c -u", "sets configuration, which can name a program to run")),
    with_subcommand("bisect", runs_row("git", "run", "runs a command at each step")),
    with_subcommand("submodule", runs_row("git", "foreach", "runs a command in each submodule")),
    with_subcommand("hook", runs_row("git", "run", "runs a hook")),
    runs_row("git", "ext::", "runs a program as a transport"),
    writes_row("git", "--output --output-directory --separate-git-dir", "writes to an arbitrary file"),
    with_subcommand("archive", writes_row("git", "-o", "writes to an arbitrary file")),
    with_subcommand("format-patch", writes_row("git", "-o", "writes to an arbitrary directory")),
    with_subcommand("bundle", writes_row("git", "create", "writes to an arbitrary file")),
    runs_row("hg svn", "--config --config-option -c", "sets configuration, which can name a program to run"),
    at_subcommand(runs_row("gh", "alias extension", "gives commands a name or installs them")),
    // Search.
    runs_row("rg", "--pre --hostname-bin", "runs another program on what it searches"),
    runs_row("ag ack", "--pager --output", "runs an arbitrary pager"),
    runs_row("bat batcat", "--pager", "runs an arbitrary pager"),
    runs_row("fzf", "--preview --bind --become", "runs other commands"),
    runs_row("find gfind", "-exec -execdir -ok -okdir", "runs a command on what it finds"),
    writes_row("find gfind", "-delete", "deletes what it finds"),
    writes_row("find gfind", "-fprint -fprint0 -fprintf -fls", "writes to an arbitrary file"),
    runs_row("fd fdfind", "-x -X --exec --exec-batch", "runs a command on what it finds"),
    // Text.
    runs_row("sort gsort", "--compress-program", "runs another program on its temporary files"),
    writes_row("sort gsort", "-o --output -T --temporary-directory", "writes to an arbitrary place"),
    writes_row("uniq", "#2", "writes to its second file"),
    writes_row("shuf tree", "-o --output", "writes to an arbitrary file"),
    writes_row("sed gsed", "-i -I --in-place", "changes files in place"),
    runs_row("sed gsed", "-f --file", "runs a script that may run commands or write files"),
    writes_row("yq", "-i --inplace --in-place", "changes files in place"),
    writes_row("xxd", "#2", "writes to its second file"),
    runs_row("split", "--filter", "runs a command on each piece"),
    runs_row("man", "-P --pager -H --html -C --config-file", "runs an arbitrary pager"),
    runs_row("less more most", "+ -k --lesskey-file --lesskey-src", "runs commands at its start"),
    writes_row("less more most", "-o -O --log-file --LOG-FILE", "writes to an arbitrary file"),
    runs_row(
        "vi vim nvim view ex ed emacs emacsclient nano pico joe kak hx code",
        "* 0",
        "is an editor, which can do anything",
    ),
    // Files.
    runs_row(
        "tar gtar bsdtar",
        "--checkpoint-action --to-command --use-compress-program -I --rsh-command --rmt-command --info-script --new-volume-script -F -T --files-from",
        "runs another program on what it packs",
    ),
    writes_row(
        "tar gtar bsdtar",
        "-C --directory -P --absolute-names --one-top-level --index-file --volno-file",
        "writes to an arbitrary place",
    ),
    runs_row("zip", "-T --unzip-command", "runs another program to test"),
    writes_row("unzip", "-d", "writes to an arbitrary place"),
    runs_row(
        "rsync",
        "-e --rsh --rsync-path -M --remote-option --config --daemon",
        "runs another program to connect",
    ),
    writes_row(
        "rsync",
        "--log-file --write-batch --only-write-batch --partial-dir --backup-dir -T --temp-dir --delete",
        "writes to an arbitrary place",
    ),
    writes_row("dd", "of=", "writes to an arbitrary file"),
    writes_row("install", "-t --target-directory", "writes to an arbitrary place"),
    runs_row("install", "--strip-program", "runs another program"),
    writes_row("truncate shred", "*", "destroys what a file holds"),
    runs_row(
        "openssl",
        "-config -engine -provider-path -t -pre -post -c",
        "takes options from elsewhere or loads code",
    ),
    runs_row(
        "gpg gpg2",
        "--photo-viewer --agent-program --dirmngr-program --keyserver-options --options --homedir",
        "takes options from elsewhere, which can name a program",
    ),
    runs_row("logrotate", "*", "runs the commands that its file names"),
    runs_row("nmap", "--script --datadir --servicedb", "loads arbitrary code"),
    writes_row("nmap", "-oN -oX -oG -oA -oS", "writes to an arbitrary file"),
    runs_row("tcpdump", "-z --postrotate-command", "runs a command on what it writes"),
    writes_row("tcpdump tshark", "-w", "writes to an arbitrary file"),
    runs_row("mutt neomutt", "-F -e", "takes options from elsewhere, which can name a program"),
    runs_row("convert magick", "| msl: mvg: ephemeral: @", "runs commands or a script of its own"),
    runs_row("terraform tofu", "-chdir", "works in another directory"),
    writes_row("gpg gpg2 iconv age", "-o", "writes to an arbitrary file"),
    writes_row("patch", "-d --directory -o", "writes to an arbitrary place"),
    with_subcommand(
        "cp",
        writes_row("docker podman nerdctl kubectl oc", "cp", "writes to an arbitrary place"),
    ),
    with_subcommand(
        "build",
        writes_row(
            "docker podman nerdctl",
            "-o --output --iidfile --metadata-file",
            "writes to an arbitrary place",
        ),
    ),
    with_subcommand(
        "compose",
        runs_row(
            "docker podman",
            "-f --file --env-file --project-directory",
            "takes what it starts from elsewhere",
        ),
    ),
    with_subcommand(
        "config",
        runs_row("npm pnpm yarn", "set edit delete", "changes settings, which can name a program"),
    ),
    with_subcommand(
        "test",
        runs_row("npm pnpm yarn bun", "--config", "takes options from elsewhere, which can name a program"),
    ),
    runs_row(
        "jest vitest",
        "--setupFiles --setupFilesAfterEnv --globalTeardown --testRunner --runner --resolver --transform --testEnvironment",
        "loads arbitrary code",
    ),
    writes_row("openssl", "-out -keyout -writerand -CAserial", "writes to an arbitrary file"),
    // Network.
    writes_row(
        "curl",
        "-o -O -J --output --output-dir --remote-name --remote-name-all --remote-header-name -D --dump-header --trace --trace-ascii --stderr -c --cookie-jar --libcurl --etag-save --hsts --alt-svc",
        "writes to an arbitrary file",
    ),
    writes_row("curl", "-T --upload-file -F --form", "sends files"),
    runs_row(
        "curl",
        "file: gopher: dict: telnet: ldap: smb: scp: sftp:",
        "reads from elsewhere than the web",
    ),
    runs_row(
        "curl",
        "-x --proxy --preproxy --socks --connect-to --resolve -Q --quote",
        "connects to somewhere else",
    ),
    runs_row(
        "curl",
        "-K --config --engine --proxy-header --netrc-file",
        "takes options from a file or loads code",
    ),
    writes_row(
        "wget",
        "-O --output-document -P --directory-prefix -o --output-file -a --append-output --save-cookies --warc-file --rejected-log",
        "writes to an arbitrary place",
    ),
    writes_row("wget", "--post-file --body-file -i --input-file", "sends files"),
    runs_row("wget", "-e --execute --config --use-askpass", "sets options that can name a program"),
    runs_row("ssh scp sftp", "-o -F -S -I -D -W -E", "sets options that can name a program"),
    runs_row(
        "nc ncat netcat socat",
        "-e -c --exec --sh-exec --lua-exec EXEC: SYSTEM: exec: system:",
        "runs a program for who connects",
    ),
    // Building.
    runs_row("cargo", "--config -Z", "sets configuration, which can name a program to run"),
    runs_row("cargo", "+", "uses another toolchain"),
    runs_row("cargo", "--manifest-path -C", "builds another project, whose build scripts run"),
    writes_row(
        "cargo",
        "--target-dir --out-dir --artifact-dir --root --logfile",
        "writes to an arbitrary place",
    ),
    runs_row("rustc clippy-driver", "-C --codegen -Z --sysroot", "can name a linker to run"),
    with_subcommand(
        "rustc",
        runs_row("cargo", "-C --codegen -Z --sysroot -l -L", "can name a linker to run"),
    ),
    writes_row("rustc", "-o --out-dir --emit --dep-info", "writes to an arbitrary place"),
    with_subcommand("env", runs_row("go", "-w -u", "changes what later builds run")),
    runs_row(
        "go",
        "-exec -toolexec -vettool -overlay -modfile -C -gcflags -asmflags -ldflags -gccgoflags",
        "runs another program to build or test",
    ),
    writes_row(
        "go",
        "-o -outputdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -pkgdir",
        "writes to an arbitrary place",
    ),
    at_subcommand(runs_row("go", "generate tool", "runs commands that the sources name")),
    runs_row(
        "make gmake",
        "= -E --eval -f --file --makefile -C --directory -I --include-dir",
        "sets what the rules run, or takes rules from elsewhere",
    ),
    runs_row("cmake", "-E -P -C -D", "runs commands"),
    writes_row("cmake", "--install --prefix", "writes to an arbitrary place"),
    runs_row("jq", "-f --from-file -L", "runs a script of its own"),
    runs_row("pip uv", "--python", "uses another interpreter"),
    with_subcommand("am", writes_row("git", "--directory", "writes to an arbitrary place")),
    with_subcommand("apply", writes_row("git", "--directory", "writes to an arbitrary place")),
    with_subcommand("interpret-trailers", writes_row("git", "--in-place", "changes files in place")),
    with_subcommand("lfs", runs_row("git", "install", "changes configuration, which can name programs")),
    at_subcommand(runs_row("git", "credential", "gives or takes keys")),
    at_subcommand(runs_row(
        "git",
        "cvsimport svn p4 cvsexportcommit",
        "runs programs that the configuration names",
    )),
    runs_row("ctest", "-S -SP --script --build-and-test", "runs an arbitrary script"),
    runs_row("ninja", "-C -f -t", "runs the rules of another directory, or a tool"),
    runs_row(
        "rake",
        "-e -E -f -r -R -I -p --rakefile --rakelibdir --execute",
        "runs a text or an arbitrary file",
    ),
    runs_row("rspec", "-r -I -O --options", "loads arbitrary code"),
    runs_row(
        "mocha jest vitest ava tap",
        "-r -c --loader --reporter --setup --globalSetup --environment",
        "loads arbitrary code",
    ),
    runs_row("playwright tsx ts-node", "-c -r --loader --project -P", "loads arbitrary code"),
    runs_row("pylint", "--rc", "takes options from elsewhere, which can name a program"),
    runs_row("mypy", "--python-executable --custom-typeshed-dir", "runs another program"),
    writes_row(
        "tsc",
        "--declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile",
        "writes to an arbitrary place",
    ),
    runs_row("tsc", "-p --project --plugins", "takes options from elsewhere"),
    runs_row(
        "pandoc",
        "-F -L --lua-filter --pdf-engine --template -d --defaults --data-dir",
        "runs another program on what it reads",
    ),
    writes_row("pandoc", "-o --extract-media", "writes to an arbitrary file"),
    runs_row(
        "gcc cc clang g++ c++ clang++",
        "-wrapper -B -fplugin -specs -Xclang -load -fuse-ld -Xlinker -Xassembler",
        "runs another program or loads code",
    ),
    runs_row(
        "gcc cc clang g++ c++ clang++ ld",
        "-Wl, -Wa, -Wp, -plugin",
        "gives options to a linker, which can load code",
    ),
    runs_row("mvn", "-f --file -s --settings -D --define", "sets what the build runs"),
    runs_row(
        "gradle gradlew",
        "-I --init-script -b --build-file -p --project-dir -D --system-prop -P",
        "sets what the build runs",
    ),
    at_subcommand(runs_row("npm", "exec x explore", "runs a program of a package")),
    runs_row(
        "npm",
        "--script-shell --node-options --prefix -C --userconfig --globalconfig --call --git --viewer",
        "sets what runs the scripts",
    ),
    writes_row("npm", "--logs-dir --cache", "writes to an arbitrary place"),
    at_subcommand(runs_row("pnpm yarn bun", "exec dlx x", "runs a program of a package")),
    runs_row("pnpm yarn bun", "-C --dir --cwd --script-shell --config", "sets what runs the scripts"),
    runs_row("npx bunx pnpx uvx pipx", "*", "runs a program of a package"),
    before_operands(runs_row(
        "npx bunx pnpx uvx pipx",
        "-c --call -p --package",
        "runs a program of a package",
    )),
    at_subcommand(runs_row("uv poetry pipenv conda hatch rye pdm", "run", "runs another program")),
    at_subcommand(runs_row("bundle bundler", "exec", "runs another program")),
    runs_row(
        "pip uv",
        "-i --index-url --extra-index-url -f --find-links --config-settings",
        "installs code from an arbitrary place",
    ),
    writes_row("pip", "-t --target --prefix --root --log", "writes to an arbitrary place"),
    runs_row(
        "pytest py.test",
        "-p -c --config-file --rootdir -o --override-ini --pdbcls --confcutdir",
        "loads arbitrary code",
    ),
    writes_row(
        "pytest py.test",
        "--basetemp --junitxml --junit-xml --log-file --report-log --debug",
        "writes to an arbitrary place",
    ),
    writes_row("pytest py.test", "--pastebin", "sends what it shows"),
    runs_row(
        "eslint",
        "-c --config --rulesdir --plugin --parser --format -f --resolve-plugins-relative-to",
        "loads arbitrary code",
    ),
    writes_row("eslint", "-o --output-file", "writes to an arbitrary file"),
    // Interpreters: program text or input that no rule can see.
    runs_row("python pypy ipython", "-c 0 -", "runs a text as a program"),
    runs_row(
        "node nodejs deno bun",
        "-e --eval -p --print -r --require --import --loader --experimental-loader eval repl 0 -",
        "runs a text as a program",
    ),
    runs_row("ruby", "-e -r 0 -", "runs a text as a program"),
    runs_row("perl", "-e -E -M -m -d 0 -", "runs a text as a program"),
    writes_row("perl ruby", "-i", "changes files in place"),
    runs_row("php", "-r -B -R -E -F -d 0 -", "runs a text as a program"),
    runs_row("lua luajit tclsh guile", "-e -l -c 0 -", "runs a text as a program"),
    runs_row("Rscript R julia", "-e -E --eval 0 -", "runs a text as a program"),
    runs_row("java", "-javaagent -agentlib -agentpath -XX", "loads arbitrary code"),
    runs_row("sh bash dash ash", "-s 0 -", "runs what it reads"),
    runs_row(
        "zsh fish ksh mksh csh tcsh rbash pwsh powershell osascript",
        "-c -e -s -Command -EncodedCommand 0 -",
        "runs a text as commands",
    ),
    runs_row("sqlite sqlite3", "-cmd -init", "runs commands at its start"),
    runs_row("psql mysql", "-c -f -e --command --file --execute", "can run commands"),
    runs_row("gdb lldb", "* 0", "can run commands"),
    // Programs that run another one in their own way.
    runs_row(". source", "*", "runs the commands of a file"),
    runs_row(
        "su runuser pkexec runas chroot unshare nsenter systemd-run",
        "* 0",
        "runs a program as someone else or elsewhere",
    ),
    runs_row("at batch crontab", "* 0", "runs commands later"),
    runs_row(
        "watch parallel entr script flock strace ltrace unbuffer chronic expect screen tmux start-stop-daemon run-parts daemonize",
        "* 0",
        "runs another program",
    ),
    at_subcommand(runs_row("docker podman nerdctl", "run exec", "runs a program in a container")),
    with_subcommand("compose", runs_row("docker podman", "run exec", "runs a program in a container")),
    with_subcommand(
        "container",
        runs_row("docker podman", "run exec create", "runs a program in a container"),
    ),
    with_subcommand(
        "create",
        runs_row(
            "docker podman nerdctl",
            "-v --volume --mount --privileged --device",
            "gives a container more of this machine",
        ),
    ),
    runs_row("docker-compose", "run exec -f --file", "runs a program in a container"),
    before_operands(runs_row(
        "docker podman nerdctl",
        "-H --host --config -c --context",
        "works on another machine",
    )),
    at_subcommand(runs_row("kubectl oc", "exec run debug", "runs a program in a cluster")),
    runs_row("kubectl oc", "--kubeconfig", "takes options from a file that can name a program"),
];

//! What known programs can be made to do by their words: the table behind "asks even under a rule".
//!
//! Data only. A row names options of one program and says what they do; how words are compared with it is
//! `risks`'s. Programs that are not here do what their rule was written for.

/// What an option makes a program do besides its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// It runs something that no rule could see.
    Runs,
    /// It writes, sends or reads somewhere else.
    Writes,
}

/// Where a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Anywhere.
    Anywhere,
    /// Before the first operand, where options of the program itself stand.
    InFront,
    /// With this subcommand.
    With(&'static str),
    /// Where the subcommand stands; the options are subcommands.
    Subcommand,
}

/// Options of a program and what they do.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The programs, without a version.
    pub(super) programs: &'static str,
    /// Where it holds.
    pub(super) place: Where,
    /// The options: `-x` in a bundle, `--long` (also abbreviated), `-word` as it is; `word` is an operand;
    /// `NAME=` one that begins so; `+` one that begins with it; `*` any operand; `=` one with a `=` in it;
    /// `#2` the second operand; `0` no operand at all.
    pub(super) options: &'static str,
    /// What they do.
    pub(super) does: Does,
    /// The same for a person, with the program as subject.
    pub(super) why: &'static str,
}

const fn runs(programs: &'static str, options: &'static str, why: &'static str) -> Row {
    Row { programs, place: Where::Anywhere, options, does: Does::Runs, why }
}

const fn writes(programs: &'static str, options: &'static str, why: &'static str) -> Row {
    Row { programs, place: Where::Anywhere, options, does: Does::Writes, why }
}

const fn with(operand: &'static str, row: Row) -> Row {
    Row { place: Where::With(operand), ..row }
}

const fn subcommands(row: Row) -> Row {
    Row { place: Where::Subcommand, ..row }
}

const fn in_front(row: Row) -> Row {
    Row { place: Where::InFront, ..row }
}

/// One-letter options whose value may be joined to them, so that its letters are no options.
pub(super) const VALUED: &[(&str, &str)] = &[
    ("sed", "ef"),
    ("sort", "kt"),
    ("curl", "dHXAbeuFmw"),
    ("make", "j"),
    ("cargo", "pFj"),
    ("tar", "f"),
    ("perl", "IF"),
];

/// Programs that read a single dash and several letters as one option.
pub(super) const UNBUNDLED: &[&str] = &[
    "go", "find", "gfind", "openssl", "java", "gcc", "cc", "clang", "g++", "c++", "clang++", "sqlite", "lua",
];

/// Options in front of a subcommand that have no value.
pub(super) const LONE: &[&str] = &[
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

/// Options in front of a subcommand that a rule need not name.
pub(super) const PASSED: &[(&str, &str)] = &[
    ("git", "--no-pager --no-optional-locks --literal-pathspecs -P"),
    ("cargo", "-q --quiet -v --verbose"),
    ("npm", "--silent"),
];

/// Programs that read no option after `--`.
pub(super) const ENDED: &[&str] = &["git", "rg", "sort", "gsort"];

/// Other programs, and subcommands of git, whose input says what they do.
pub(super) const FED: &str =
    "patch cpio at batch crontab bc dc gdb lldb psql mysql sqlite ed ex xargs parallel code pdb";
pub(super) const FED_GIT: &str = "apply am fast-import update-ref";

/// Long options that do the same in most programs that have them, by how they begin.
pub(super) const GENERIC: &[(&str, Does, &str)] = &[
    ("--config", Does::Runs, "takes options from elsewhere, which can name a program"),
    ("--conf", Does::Runs, "takes options from elsewhere, which can name a program"),
    ("--rcfile", Does::Runs, "takes options from elsewhere, which can name a program"),
    ("--options-file", Does::Runs, "takes options from elsewhere, which can name a program"),
    ("--plugin", Does::Runs, "loads code of its choice"),
    ("--load", Does::Runs, "loads code of its choice"),
    ("--require", Does::Runs, "loads code of its choice"),
    ("--preload", Does::Runs, "loads code of its choice"),
    ("--import", Does::Runs, "loads code of its choice"),
    ("--extension", Does::Runs, "loads code of its choice"),
    ("--init-", Does::Runs, "runs code at its start"),
    ("--filter", Does::Runs, "runs another program on what it reads"),
    ("--post-render", Does::Runs, "runs another program on what it makes"),
    ("--exec", Does::Runs, "runs another program"),
    ("--shell", Does::Runs, "runs another program"),
    ("--command", Does::Runs, "runs another program"),
    ("--eval", Does::Runs, "runs a text as a program"),
    ("--pager", Does::Runs, "runs a pager of its choice"),
    ("--editor", Does::Runs, "runs an editor of its choice"),
    ("--browser", Does::Runs, "runs a browser of its choice"),
    ("--interpreter", Does::Runs, "runs an interpreter of its choice"),
    ("--linker", Does::Runs, "runs a linker of its choice"),
    ("--ld-path", Does::Runs, "runs a linker of its choice"),
    ("--wrapper", Does::Runs, "runs another program"),
    ("--launcher", Does::Runs, "runs another program"),
    ("--unix-socket", Does::Runs, "talks to a program on this machine"),
    ("--abstract-unix-socket", Does::Runs, "talks to a program on this machine"),
    ("--output", Does::Writes, "writes to a place of its choice"),
    ("--out", Does::Writes, "writes to a place of its choice"),
    ("--log-file", Does::Writes, "writes to a file of its choice"),
    ("--report-file", Does::Writes, "writes to a file of its choice"),
    ("--install-dir", Does::Writes, "writes to a place of its choice"),
    ("--dest", Does::Writes, "writes to a place of its choice"),
];

/// Options that begin like those and only say how something looks, in any program; then in some programs.
pub(super) const LOOKS: &str = "--output-format --output-style --output-type --output-width --output-encoding \
     --output-indicator-new --output-indicator-old --output-indicator-context --output-logs --outline --confirm \
     --command-prefix --execution-order";
pub(super) const EXEMPT: &[(&str, &str)] = &[
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

/// Programs to which a word that begins with `@` is a name; to others it is a file with more words.
pub(super) const NAMES_WITH_AT: &str =
    "git npm pnpm yarn bun npx echo printf node gh jj hg nx turbo lerna rush";

/// Options that look like abbreviations of dangerous ones and are options themselves.
pub(super) const HARMLESS: &[(&str, &str)] = &[
    ("git", "--text --exec-path --no-ext-diff --or"),
    ("tar", "--checkpoint --to-stdout"),
    ("curl", "--data --form-string --trace-time --compressed --head --header"),
    ("cargo", "--color"),
    ("node", "--test"),
    ("pytest", "--co --color"),
];

/// The table.
pub(super) const ROWS: &[Row] = &[
    // Version control.
    in_front(runs("git", "-c --config-env", "sets configuration, which can name a program to run")),
    in_front(runs(
        "git",
        "-C --git-dir --work-tree --exec-path= --namespace",
        "works in another repository, whose configuration can name programs",
    )),
    in_front(runs("git", "-p --paginate", "runs a pager that the repository names")),
    runs("git", "--ext-diff --textconv", "runs a program that the repository names"),
    runs("git", "--upload-pack --receive-pack --exec --remote", "runs another program through an option"),
    runs(
        "git",
        "--extcmd --open-files-in-pager --template --config --unsafe-paths",
        "runs another program through an option",
    ),
    subcommands(runs(
        "git",
        "difftool mergetool filter-branch send-email instaweb daemon",
        "runs programs that the configuration names",
    )),
    subcommands(runs("git", "config", "changes configuration, which can name programs")),
    with("maintenance", runs("git", "start register", "has itself run later")),
    with("fetch", runs("git", "/ ./ ../ ~ file: ext:", "runs a transport in a folder of its choice")),
    with("pull", runs("git", "/ ./ ../ ~ file: ext:", "runs a transport in a folder of its choice")),
    with("ls-remote", runs("git", "/ ./ ../ ~ file: ext:", "runs a transport in a folder of its choice")),
    with("fast-export", writes("git", "--export-marks", "writes to a file of its choice")),
    with(
        "fast-import",
        writes("git", "--export-marks --export-pack-edges", "writes to a file of its choice"),
    ),
    with("checkout-index", writes("git", "--prefix", "writes to a place of its choice")),
    with("worktree", writes("git", "add move", "writes to a place of its choice")),
    with("grep", runs("git", "-O", "runs a pager of its choice")),
    with("rebase", runs("git", "-x", "runs commands between commits")),
    with("clone", runs("git", "-c -u", "sets configuration, which can name a program to run")),
    with("bisect", runs("git", "run", "runs a command at each step")),
    with("submodule", runs("git", "foreach", "runs a command in each submodule")),
    with("hook", runs("git", "run", "runs a hook")),
    runs("git", "ext::", "runs a program as a transport"),
    writes("git", "--output --output-directory --separate-git-dir", "writes to a file of its choice"),
    with("archive", writes("git", "-o", "writes to a file of its choice")),
    with("format-patch", writes("git", "-o", "writes to a folder of its choice")),
    with("bundle", writes("git", "create", "writes to a file of its choice")),
    runs("hg svn", "--config --config-option -c", "sets configuration, which can name a program to run"),
    subcommands(runs("gh", "alias extension", "gives commands a name or installs them")),
    // Search.
    runs("rg", "--pre --hostname-bin", "runs another program on what it searches"),
    runs("ag ack", "--pager --output", "runs a pager of its choice"),
    runs("bat batcat", "--pager", "runs a pager of its choice"),
    runs("fzf", "--preview --bind --become", "runs other commands"),
    runs("find gfind", "-exec -execdir -ok -okdir", "runs a command on what it finds"),
    writes("find gfind", "-delete", "deletes what it finds"),
    writes("find gfind", "-fprint -fprint0 -fprintf -fls", "writes to a file of its choice"),
    runs("fd fdfind", "-x -X --exec --exec-batch", "runs a command on what it finds"),
    // Text.
    runs("sort gsort", "--compress-program", "runs another program on its temporary files"),
    writes("sort gsort", "-o --output -T --temporary-directory", "writes to a place of its choice"),
    writes("uniq", "#2", "writes to its second file"),
    writes("shuf tree", "-o --output", "writes to a file of its choice"),
    writes("sed gsed", "-i -I --in-place", "changes files in place"),
    runs("sed gsed", "-f --file", "runs a script that may run commands or write files"),
    writes("yq", "-i --inplace --in-place", "changes files in place"),
    writes("xxd", "#2", "writes to its second file"),
    runs("split", "--filter", "runs a command on each piece"),
    runs("man", "-P --pager -H --html -C --config-file", "runs a pager of its choice"),
    runs("less more most", "+ -k --lesskey-file --lesskey-src", "runs commands at its start"),
    writes("less more most", "-o -O --log-file --LOG-FILE", "writes to a file of its choice"),
    runs(
        "vi vim nvim view ex ed emacs emacsclient nano pico joe kak hx code",
        "* 0",
        "is an editor, which can do anything",
    ),
    // Files.
    runs(
        "tar gtar bsdtar",
        "--checkpoint-action --to-command --use-compress-program -I --rsh-command --rmt-command --info-script --new-volume-script -F -T --files-from",
        "runs another program on what it packs",
    ),
    writes(
        "tar gtar bsdtar",
        "-C --directory -P --absolute-names --one-top-level --index-file --volno-file",
        "writes to a place of its choice",
    ),
    runs("zip", "-T --unzip-command", "runs another program to test"),
    writes("unzip", "-d", "writes to a place of its choice"),
    runs(
        "rsync",
        "-e --rsh --rsync-path -M --remote-option --config --daemon",
        "runs another program to connect",
    ),
    writes(
        "rsync",
        "--log-file --write-batch --only-write-batch --partial-dir --backup-dir -T --temp-dir --delete",
        "writes to a place of its choice",
    ),
    writes("dd", "of=", "writes to a file of its choice"),
    writes("install", "-t --target-directory", "writes to a place of its choice"),
    runs("install", "--strip-program", "runs another program"),
    writes("truncate shred", "*", "destroys what a file holds"),
    runs(
        "openssl",
        "-config -engine -provider-path -t -pre -post -c",
        "takes options from elsewhere or loads code",
    ),
    runs(
        "gpg gpg2",
        "--photo-viewer --agent-program --dirmngr-program --keyserver-options --options --homedir",
        "takes options from elsewhere, which can name a program",
    ),
    runs("logrotate", "*", "runs the commands that its file names"),
    runs("nmap", "--script --datadir --servicedb", "loads code of its choice"),
    writes("nmap", "-oN -oX -oG -oA -oS", "writes to a file of its choice"),
    runs("tcpdump", "-z --postrotate-command", "runs a command on what it writes"),
    writes("tcpdump tshark", "-w", "writes to a file of its choice"),
    runs("mutt neomutt", "-F -e", "takes options from elsewhere, which can name a program"),
    runs("convert magick", "| msl: mvg: ephemeral: @", "runs commands or a script of its own"),
    runs("terraform tofu", "-chdir", "works in another folder"),
    writes("gpg gpg2 iconv age", "-o", "writes to a file of its choice"),
    writes("patch", "-d --directory -o", "writes to a place of its choice"),
    with("cp", writes("docker podman nerdctl kubectl oc", "cp", "writes to a place of its choice")),
    with(
        "build",
        writes(
            "docker podman nerdctl",
            "-o --output --iidfile --metadata-file",
            "writes to a place of its choice",
        ),
    ),
    with(
        "compose",
        runs(
            "docker podman",
            "-f --file --env-file --project-directory",
            "takes what it starts from elsewhere",
        ),
    ),
    with("config", runs("npm pnpm yarn", "set edit delete", "changes settings, which can name a program")),
    with(
        "test",
        runs("npm pnpm yarn bun", "--config", "takes options from elsewhere, which can name a program"),
    ),
    runs(
        "jest vitest",
        "--setupFiles --setupFilesAfterEnv --globalTeardown --testRunner --runner --resolver --transform --testEnvironment",
        "loads code of its choice",
    ),
    writes("openssl", "-out -keyout -writerand -CAserial", "writes to a file of its choice"),
    // Network.
    writes(
        "curl",
        "-o -O -J --output --output-dir --remote-name --remote-name-all --remote-header-name -D --dump-header --trace --trace-ascii --stderr -c --cookie-jar --libcurl --etag-save --hsts --alt-svc",
        "writes to a file of its choice",
    ),
    writes("curl", "-T --upload-file -F --form", "sends files"),
    runs("curl", "file: gopher: dict: telnet: ldap: smb: scp: sftp:", "reads from elsewhere than the web"),
    runs(
        "curl",
        "-x --proxy --preproxy --socks --connect-to --resolve -Q --quote",
        "connects to somewhere else",
    ),
    runs(
        "curl",
        "-K --config --engine --proxy-header --netrc-file",
        "takes options from a file or loads code",
    ),
    writes(
        "wget",
        "-O --output-document -P --directory-prefix -o --output-file -a --append-output --save-cookies --warc-file --rejected-log",
        "writes to a place of its choice",
    ),
    writes("wget", "--post-file --body-file -i --input-file", "sends files"),
    runs("wget", "-e --execute --config --use-askpass", "sets options that can name a program"),
    runs("ssh scp sftp", "-o -F -S -I -D -W -E", "sets options that can name a program"),
    runs(
        "nc ncat netcat socat",
        "-e -c --exec --sh-exec --lua-exec EXEC: SYSTEM: exec: system:",
        "runs a program for who connects",
    ),
    // Building.
    runs("cargo", "--config -Z", "sets configuration, which can name a program to run"),
    runs("cargo", "+", "uses another toolchain"),
    runs("cargo", "--manifest-path -C", "builds another project, whose build scripts run"),
    writes(
        "cargo",
        "--target-dir --out-dir --artifact-dir --root --logfile",
        "writes to a place of its choice",
    ),
    runs("rustc clippy-driver", "-C --codegen -Z --sysroot", "can name a linker to run"),
    with("rustc", runs("cargo", "-C --codegen -Z --sysroot -l -L", "can name a linker to run")),
    writes("rustc", "-o --out-dir --emit --dep-info", "writes to a place of its choice"),
    with("env", runs("go", "-w -u", "changes what later builds run")),
    runs(
        "go",
        "-exec -toolexec -vettool -overlay -modfile -C -gcflags -asmflags -ldflags -gccgoflags",
        "runs another program to build or test",
    ),
    writes(
        "go",
        "-o -outputdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -pkgdir",
        "writes to a place of its choice",
    ),
    subcommands(runs("go", "generate tool", "runs commands that the sources name")),
    runs(
        "make gmake",
        "= -E --eval -f --file --makefile -C --directory -I --include-dir",
        "sets what the rules run, or takes rules from elsewhere",
    ),
    runs("cmake", "-E -P -C -D", "runs commands"),
    writes("cmake", "--install --prefix", "writes to a place of its choice"),
    runs("jq", "-f --from-file -L", "runs a script of its own"),
    runs("pip uv", "--python", "uses another interpreter"),
    with("am", writes("git", "--directory", "writes to a place of its choice")),
    with("apply", writes("git", "--directory", "writes to a place of its choice")),
    with("interpret-trailers", writes("git", "--in-place", "changes files in place")),
    with("lfs", runs("git", "install", "changes configuration, which can name programs")),
    subcommands(runs("git", "credential", "gives or takes keys")),
    subcommands(runs(
        "git",
        "cvsimport svn p4 cvsexportcommit",
        "runs programs that the configuration names",
    )),
    runs("ctest", "-S -SP --script --build-and-test", "runs a script of its choice"),
    runs("ninja", "-C -f -t", "runs the rules of another folder, or a tool"),
    runs(
        "rake",
        "-e -E -f -r -R -I -p --rakefile --rakelibdir --execute",
        "runs a text or a file of its choice",
    ),
    runs("rspec", "-r -I -O --options", "loads code of its choice"),
    runs(
        "mocha jest vitest ava tap",
        "-r -c --loader --reporter --setup --globalSetup --environment",
        "loads code of its choice",
    ),
    runs("playwright tsx ts-node", "-c -r --loader --project -P", "loads code of its choice"),
    runs("pylint", "--rc", "takes options from elsewhere, which can name a program"),
    runs("mypy", "--python-executable --custom-typeshed-dir", "runs another program"),
    writes(
        "tsc",
        "--declarationDir --tsBuildInfoFile --generateTrace --generateCpuProfile",
        "writes to a place of its choice",
    ),
    runs("tsc", "-p --project --plugins", "takes options from elsewhere"),
    runs(
        "pandoc",
        "-F -L --lua-filter --pdf-engine --template -d --defaults --data-dir",
        "runs another program on what it reads",
    ),
    writes("pandoc", "-o --extract-media", "writes to a file of its choice"),
    runs(
        "gcc cc clang g++ c++ clang++",
        "-wrapper -B -fplugin -specs -Xclang -load -fuse-ld -Xlinker -Xassembler",
        "runs another program or loads code",
    ),
    runs(
        "gcc cc clang g++ c++ clang++ ld",
        "-Wl, -Wa, -Wp, -plugin",
        "gives options to a linker, which can load code",
    ),
    runs("mvn", "-f --file -s --settings -D --define", "sets what the build runs"),
    runs(
        "gradle gradlew",
        "-I --init-script -b --build-file -p --project-dir -D --system-prop -P",
        "sets what the build runs",
    ),
    subcommands(runs("npm", "exec x explore", "runs a program of a package")),
    runs(
        "npm",
        "--script-shell --node-options --prefix -C --userconfig --globalconfig --call --git --viewer",
        "sets what runs the scripts",
    ),
    writes("npm", "--logs-dir --cache", "writes to a place of its choice"),
    subcommands(runs("pnpm yarn bun", "exec dlx x", "runs a program of a package")),
    runs("pnpm yarn bun", "-C --dir --cwd --script-shell --config", "sets what runs the scripts"),
    runs("npx bunx pnpx uvx pipx", "*", "runs a program of a package"),
    in_front(runs("npx bunx pnpx uvx pipx", "-c --call -p --package", "runs a program of a package")),
    subcommands(runs("uv poetry pipenv conda hatch rye pdm", "run", "runs another program")),
    subcommands(runs("bundle bundler", "exec", "runs another program")),
    runs(
        "pip uv",
        "-i --index-url --extra-index-url -f --find-links --config-settings",
        "installs code from a place of its choice",
    ),
    writes("pip", "-t --target --prefix --root --log", "writes to a place of its choice"),
    runs(
        "pytest py.test",
        "-p -c --config-file --rootdir -o --override-ini --pdbcls --confcutdir",
        "loads code of its choice",
    ),
    writes(
        "pytest py.test",
        "--basetemp --junitxml --junit-xml --log-file --report-log --debug",
        "writes to a place of its choice",
    ),
    writes("pytest py.test", "--pastebin", "sends what it shows"),
    runs(
        "eslint",
        "-c --config --rulesdir --plugin --parser --format -f --resolve-plugins-relative-to",
        "loads code of its choice",
    ),
    writes("eslint", "-o --output-file", "writes to a file of its choice"),
    // Interpreters: a text or an input is a program that nobody saw.
    runs("python pypy ipython", "-c 0 -", "runs a text as a program"),
    runs(
        "node nodejs deno bun",
        "-e --eval -p --print -r --require --import --loader --experimental-loader eval repl 0 -",
        "runs a text as a program",
    ),
    runs("ruby", "-e -r 0 -", "runs a text as a program"),
    runs("perl", "-e -E -M -m -d 0 -", "runs a text as a program"),
    writes("perl ruby", "-i", "changes files in place"),
    runs("php", "-r -B -R -E -F -d 0 -", "runs a text as a program"),
    runs("lua luajit tclsh guile", "-e -l -c 0 -", "runs a text as a program"),
    runs("Rscript R julia", "-e -E --eval 0 -", "runs a text as a program"),
    runs("java", "-javaagent -agentlib -agentpath -XX", "loads code of its choice"),
    runs("sh bash dash ash", "-s 0 -", "runs what it reads"),
    runs(
        "zsh fish ksh mksh csh tcsh rbash pwsh powershell osascript",
        "-c -e -s -Command -EncodedCommand 0 -",
        "runs a text as commands",
    ),
    runs("sqlite sqlite3", "-cmd -init", "runs commands at its start"),
    runs("psql mysql", "-c -f -e --command --file --execute", "can run commands"),
    runs("gdb lldb", "* 0", "can run commands"),
    // Programs that run another one in a way of their own.
    runs(". source", "*", "runs the commands of a file"),
    runs(
        "su runuser pkexec runas chroot unshare nsenter systemd-run",
        "* 0",
        "runs a program as someone else or elsewhere",
    ),
    runs("at batch crontab", "* 0", "runs commands later"),
    runs(
        "watch parallel entr script flock strace ltrace unbuffer chronic expect screen tmux start-stop-daemon run-parts daemonize",
        "* 0",
        "runs another program",
    ),
    subcommands(runs("docker podman nerdctl", "run exec", "runs a program in a container")),
    with("compose", runs("docker podman", "run exec", "runs a program in a container")),
    with("container", runs("docker podman", "run exec create", "runs a program in a container")),
    with(
        "create",
        runs(
            "docker podman nerdctl",
            "-v --volume --mount --privileged --device",
            "gives a container more of this machine",
        ),
    ),
    runs("docker-compose", "run exec -f --file", "runs a program in a container"),
    in_front(runs("docker podman nerdctl", "-H --host --config -c --context", "works on another machine")),
    subcommands(runs("kubectl oc", "exec run debug", "runs a program in a cluster")),
    runs("kubectl oc", "--kubeconfig", "takes options from a file that can name a program"),
];

//! Machines without mount namespaces for commands, and the programs of others that a command can reach there.

use std::{
    fs,
    os::unix::{fs::MetadataExt as _, net::UnixListener},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use super::{Place, binary, said};

/// Starts the rest of a command line where no namespace can be created.
const NO_NAMESPACES: &str =
    "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces; exec \"$@\"";

/// Runs the helper in a user namespace that cannot create another one; `None` where none can be created at all.
fn without_namespaces(args: &[&str]) -> Option<Output> {
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", NO_NAMESPACES, "sh", program]).args(args);
        command.stdin(Stdio::null()).output().ok()
    };
    run("true", &[]).filter(|output| output.status.success())?;
    run(&binary().display().to_string(), args)
}

#[test]
fn probe_detects_the_available_mechanisms() {
    let whole = Command::new(binary()).args(["sandbox-exec", "--probe"]).output().expect("it starts");
    let whole = said(&whole);
    assert!(["namespace\n", "no namespace: "].iter().any(|start| whole.starts_with(start)), "{whole}");
    if let Some(output) = without_namespaces(&["sandbox-exec", "--probe"]) {
        let told = said(&output);
        assert!(told.starts_with("no namespace: the mount namespace failed: "), "{told}");
    } else {
        assert!(
            whole.starts_with("no namespace"),
            "name spaces work here, so they can be taken away: {whole}"
        );
    }
}

#[test]
fn command_that_cannot_be_confined_as_requested_does_not_run() {
    let place = Place::new();
    let root = place.root.display().to_string();
    let new = place.root.join("new").display().to_string();
    if let Some(output) = without_namespaces(&["sandbox-exec", "--write", &root, "--", "touch", &new]) {
        assert_eq!(output.status.code(), Some(126), "{}", said(&output));
        assert!(said(&output).contains("so it did not run: the mount namespace failed"), "{}", said(&output));
        assert!(!place.root.join("new").exists());
        let output =
            without_namespaces(&["sandbox-exec", "--no-namespace", "--write", &root, "--", "touch", &new]);
        assert!(place.root.join("new").exists(), "{:?}", output.map(|output| said(&output)));
    }
}

/// Connects to sockets; each line of the output is a socket that accepted.
const CONNECT: &str = "for s in $SOCKETS; do perl -MIO::Socket::UNIX -e \
    'print \"$ARGV[0]\\n\" if IO::Socket::UNIX->new(Peer => $ARGV[0])' $s; done";

/// Sockets of programs in a home directory, a runtime directory, and the common temporary directory.
struct Servers {
    _folders: [tempfile::TempDir; 2],
    home: PathBuf,
    runtime: PathBuf,
    sockets: Vec<PathBuf>,
    _listening: Vec<UnixListener>,
}

impl Servers {
    fn start() -> Self {
        let lasting = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
        let agent = tempfile::Builder::new().prefix("ssh-").tempdir_in("/tmp").expect("a folder can be made");
        // Names of sockets are short.
        let (home, runtime) = (lasting.path().join("h"), lasting.path().join("u"));
        let sockets = [
            home.join(".gnupg/S.gpg-agent"),
            home.join(".docker/run/docker.sock"),
            home.join(".ssh/agent/s.1"),
            home.join("any.sock"),
            runtime.join("nvim.1.0"),
            runtime.join("emacs/server"),
            agent.path().join("agent.1"),
        ];
        let listen = |path: &PathBuf| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            UnixListener::bind(path).expect("a short name")
        };
        let listening = sockets.iter().map(listen).collect();
        Self { _folders: [lasting, agent], home, runtime, sockets: sockets.into(), _listening: listening }
    }

    fn reached(&self, place: &Place, options: &[&str]) -> String {
        let sockets: Vec<String> = self.sockets.iter().map(|path| path.display().to_string()).collect();
        let script = format!("SOCKETS='{}'; {CONNECT}", sockets.join(" "));
        said(&place.run(options, &script))
    }
}

#[test]
fn sockets_of_other_programs_are_unreachable() {
    let (place, servers) = (Place::new(), Servers::start());
    assert_eq!(servers.reached(&place, &["--free"]).lines().count(), servers.sockets.len());
    let (root, home) = (place.root.display().to_string(), servers.home.display().to_string());
    let runtime = servers.runtime.display().to_string();
    let person = ["--home", home.as_str(), "--runtime", runtime.as_str()];
    for held in
        [&["--write", root.as_str()][..], &["--read-only"], &["--write", &root, "--write-beside", "/tmp"]]
    {
        assert_eq!(servers.reached(&place, &[held, &person].concat()), "", "{held:?}");
        assert_eq!(servers.reached(&place, &[held, &person, &["--no-namespace"]].concat()), "", "{held:?}");
    }
    // Temporary files below such a directory stay usable, and the sockets beside them are unreachable.
    let temporary = servers.runtime.join("tmp");
    fs::create_dir(&temporary).expect("a folder can be made");
    for (beside, file) in [(&temporary, "kept"), (&servers.runtime, "new")] {
        let beside = beside.display().to_string();
        let options = [&["--write", root.as_str(), "--write-beside", &beside], &person[..]].concat();
        assert_eq!(servers.reached(&place, &options), "", "{beside}");
        let output = place.run(&options, &format!("echo good > {beside}/{file}"));
        assert_eq!(
            fs::read_to_string(Path::new(&beside).join(file)).unwrap_or_default(),
            "good\n",
            "{}",
            said(&output)
        );
    }
}

#[test]
fn socket_pair_works_where_others_are_closed() {
    let place = Place::new();
    let pair =
        "perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die; print \"pair\"'";
    let output = place.run_held(&["--no-namespace"], pair);
    assert_eq!(said(&output), "pair");
}

#[test]
fn attributes_of_files_outside_stay_as_they_are() {
    let set_attribute = if cfg!(target_arch = "x86_64") {
        "perl -e '($f, $n, $v) = (\"$ENV{OUT}/file\", \"user.x\", \"y\"); syscall(188, $f, $n, $v, 1, 0)'"
    } else {
        "perl -e '($f, $n, $v) = (\"$ENV{OUT}/file\", \"user.x\", \"y\"); syscall(5, $f, $n, $v, 1, 0)'"
    };
    for (script, is_open_without) in [
        ("chmod 777 $OUT/folder", false),
        ("chmod u+s $OUT/file", false),
        ("chmod 600 $OUT/file", true),
        ("touch -d 2001-02-03 $OUT/file", true),
        (set_attribute, false),
    ] {
        let look = |place: &Place| {
            let found =
                ["file", "folder"].map(|name| fs::metadata(place.outside.join(name)).expect("it is there"));
            found.map(|found| (found.mode(), found.mtime(), found.ctime(), found.ctime_nsec()))
        };
        let tried = |options: &[&str]| {
            let place = Place::new();
            let before = look(&place);
            let root = place.root.display().to_string();
            let options = if options == ["--free"] {
                options.to_vec()
            } else {
                [&["--write", &root], options].concat()
            };
            place.run(&options, script);
            look(&place) == before
        };
        assert!(!tried(&["--free"]), "free: {script}");
        assert!(tried(&[]), "held: {script}");
        // The manual and `doctor` name what remains reachable.
        assert_eq!(!tried(&["--no-namespace"]), is_open_without, "without a name space: {script}");
    }
}

#[test]
fn environment_of_another_program_cannot_be_read() {
    let place = Place::new();
    // Git reads nothing before the program has started.
    let script =
        "cat /proc/$PID/environ | tr '\\0' '\\n' | grep -c ^PATH=; cat /proc/$PID/mem 2>/dev/null | wc -c";
    assert_eq!(said(&place.run(&["--free"], script)).lines().next(), Some("1"));
    for options in [[].as_slice(), &["--no-namespace"]] {
        let told = place.run_held(options, script);
        assert_eq!(String::from_utf8_lossy(&told.stdout), "0\n0\n", "{options:?}");
    }
    let status = place.run_held(&[], "grep ^CapBnd /proc/self/status");
    let set = said(&status).split_whitespace().last().map(|set| u64::from_str_radix(set, 16)).expect("a set");
    // DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, MKNOD, PERFMON, BPF.
    for number in [2, 16, 17, 19, 21, 27, 38, 39] {
        assert_eq!(set.clone().expect("a number") & (1 << number), 0, "{number}");
    }
}

#[test]
fn command_of_another_user_is_confined() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    if !nix::unistd::geteuid().is_root() || !super::repositories::can_be_nobody() {
        return;
    }
    for options in [[].as_slice(), &["--no-namespace"]] {
        let place = Place::new();
        for path in [place.folder(), &place.root, &place.outside, &place.outside.join("file")] {
            chown(path, Some(65534), Some(65534)).expect("root may");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("root may");
        }
        let script = "echo x > $OUT/file; chmod 777 $OUT/folder; echo good > new; git init -q a; \
                      git -C a config core.pager x; chmod 0311 a";
        let root = place.root.display().to_string();
        let output = place.run_as_nobody(&[&["--write", &root], options].concat(), script);
        assert_eq!(fs::read_to_string(place.outside.join("file")).expect("it is there"), "good\n");
        assert_eq!(
            fs::read_to_string(place.root.join("new")).unwrap_or_default(),
            "good\n",
            "{}",
            said(&output)
        );
        assert!(!place.root.join("a/.git/config").exists(), "{options:?}: {}", said(&output));
    }
}

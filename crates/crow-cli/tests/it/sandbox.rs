//! Attempts of a sandboxed command to have effects outside.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "what is tested here is the place where commands start")]

mod autorun;
mod partial;
mod repositories;
mod sockets;
mod targets;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Run in the root directory; `$OUT` is a directory beside it, `$PID` a process outside, and `$PORT` a listening
/// port. Each has its effect without the sandbox.
const ESCAPES: [(&str, &str); 20] = [
    ("write a file", "echo bad > $OUT/file"),
    ("add to a file", "echo bad >> $OUT/file"),
    ("cut a file", "truncate -s 0 $OUT/file"),
    ("make a file", "echo bad > $OUT/new"),
    ("remove a file", "rm -f $OUT/file"),
    ("make a folder", "mkdir $OUT/new"),
    ("remove a folder", "rmdir $OUT/folder"),
    ("make a link", "ln -s /etc $OUT/new"),
    ("make a pipe", "mkfifo $OUT/new"),
    ("move a file out", "echo bad > new; mv new $OUT/new"),
    ("move a file in", "mv $OUT/file ."),
    ("move a file over another", "echo bad > new; mv new $OUT/file"),
    ("write through a link", "ln -s $OUT/file link; echo bad > link"),
    ("write through a second name", "ln $OUT/file name && echo bad > name"),
    ("write through the root of a process", "echo bad > /proc/self/root/$OUT/file"),
    ("write through the root of another", "echo bad > /proc/$PID/root/$OUT/file"),
    ("write through the folder of another", "echo bad > /proc/$PID/cwd/file"),
    ("write to what the caller left open", "echo bad >&9"),
    ("end a process outside", "kill -9 $PID && until grep -q ') Z' /proc/$PID/stat; do :; done"),
    ("leave it to a child in a session of its own", "setsid sh -c 'echo bad > $OUT/file'; wait"),
];

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// A root, a directory beside it, and a process outside.
struct Place {
    folder: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    left_open: File,
    bystander: Child,
    listener: TcpListener,
}

impl Place {
    fn new() -> Self {
        // Not in a temporary directory, where commands of other tests look for repositories.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        fs::create_dir(&root).expect("a folder can be made");
        fs::create_dir_all(outside.join("folder")).expect("a folder can be made");
        fs::write(outside.join("file"), "good\n").expect("a file can be written");
        let left_open = File::options().append(true).open(outside.join("file")).expect("it opens");
        let mut bystander = Command::new("sleep");
        bystander.arg("1000").current_dir(&outside).stdin(Stdio::null());
        let bystander = bystander.spawn().expect("sleep starts");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be asked");
        Self { folder, root, outside, left_open, bystander, listener }
    }

    /// Renders everything outside as text by name, and whether the bystander lives.
    fn outside(&mut self) -> BTreeMap<String, String> {
        let entries = fs::read_dir(&self.outside).expect("it is there").flatten();
        let shown = entries.map(|entry| {
            let found = entry.metadata().expect("it is there");
            let text = if found.is_file() {
                fs::read_to_string(entry.path()).unwrap_or_default()
            } else {
                String::new()
            };
            (
                entry.file_name().to_string_lossy().into_owned(),
                format!("{:o} {} {text}", found.mode(), found.nlink()),
            )
        });
        let mut shown: BTreeMap<String, String> = shown.collect();
        let lives = self.bystander.try_wait().expect("it can be asked").is_none();
        shown.insert("(bystander)".to_owned(), lives.to_string());
        shown
    }

    /// The directory that contains everything.
    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script under the supervisor.
    fn run(&self, options: &[&str], script: &str) -> Output {
        self.command(options, script).output().expect("the supervisor starts")
    }

    /// Runs a script as an unprivileged user.
    fn run_as_nobody(&self, options: &[&str], script: &str) -> Output {
        use std::os::unix::process::CommandExt as _;
        self.command(options, script).uid(65534).gid(65534).output().expect("the supervisor starts")
    }

    fn command(&self, options: &[&str], script: &str) -> Command {
        let exec = format!("exec 9>&{}; exec \"$@\"", self.left_open.as_raw_fd());
        // Only descriptors that the shell was given are inherited.
        nix::fcntl::fcntl(&self.left_open, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
            .expect("it can be left open");
        let mut command = Command::new("bash");
        command.args(["-c", &exec, "bash"]).arg(binary()).arg("sandbox-exec").args(options);
        command.args(["--", "sh", "-c", script]).current_dir(&self.root);
        command
            .env("OUT", &self.outside)
            .env("GIT_CEILING_DIRECTORIES", env!("CARGO_TARGET_TMPDIR"))
            .env("PID", self.bystander.id().to_string())
            .env("SSH_AUTH_SOCK", "/x");
        let port = self.listener.local_addr().expect("it has one").port();
        command.env("PORT", port.to_string()).stdin(Stdio::null());
        command
    }

    /// Runs a script that may write in the root.
    fn run_held(&self, more: &[&str], script: &str) -> Output {
        let root = self.root.display().to_string();
        self.run(&[&["--write", root.as_str()], more].concat(), script)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[track_caller]
fn check_held(options: &[&str]) {
    for (what, script) in ESCAPES {
        let mut free = Place::new();
        let before = free.outside();
        free.run(&["--free"], script);
        assert_ne!(free.outside(), before, "free, it can {what}");
        let mut held = Place::new();
        let before = held.outside();
        let output = match options {
            [] => held.run_held(&[], script),
            options => held.run(options, script),
        };
        assert_eq!(held.outside(), before, "held, it cannot {what}: {}", said(&output));
    }
}

#[test]
fn command_confined_to_its_root_changes_nothing_outside() {
    check_held(&[]);
}

#[test]
fn read_only_command_changes_nothing() {
    check_held(&["--read-only"]);
    // Without a writable directory.
    check_held(&["--no-network"]);
    let place = Place::new();
    let output =
        place.run(&["--read-only"], "echo bad > new; cat $OUT/file; echo all right > /dev/null; exit 3");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"good\n".as_slice()));
    assert!(!place.root.join("new").exists());
}

/// Runs a script that must work as it does without the sandbox.
#[track_caller]
fn check_works(script: &str) {
    let place = Place::new();
    let output = place.run_held(&[], &format!("set -e\n{script}"));
    assert!(output.status.success(), "{script}: {}", said(&output));
}

#[test]
fn project_commands_work() {
    check_works(
        "echo a > a; mkdir -p b/c; mv a b/c/a; ln b/c/a d; ln -s d e; echo f >> e; chmod 600 d; rm -r b d e",
    );
    check_works("cat $OUT/file; ls /proc/self /etc > list; echo x > /dev/null; head -c 9 /dev/zero > z");
    check_works("cat <<END\n$(echo here)\nEND\n");
    check_works("bash -c 'cat <(echo a) > b; echo c | tee >(cat > d) > /dev/null; cat <<< e'");
    check_works("sleep 1000 & kill $!; mkfifo f; (echo x > f) & read y < f; wait");
    check_works("echo x > /dev/stdout; echo y > /dev/stderr");
    check_works("bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'");
    check_works(
        "export HOME=$PWD; git init -q .; echo x > x; git add x; \
         git -c user.name=a -c user.email=a@b commit -qm x; git status -s; git log --oneline; git gc -q",
    );
}

#[test]
fn network_is_closed_when_configured() {
    let connect = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'";
    let place = Place::new();
    let output = place.run_held(&["--no-network"], connect);
    assert!(said(&output).contains("Operation not permitted"), "{}", said(&output));
    assert!(place.listener.accept().is_err(), "a program connected");
    let output = place.run_held(&[], connect);
    assert!(output.status.success() && place.listener.accept().is_ok(), "{}", said(&output));
}

#[test]
fn command_cannot_end_its_supervisor() {
    let place = Place::new();
    let output = place.run_held(&[], "kill -9 $PPID; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); exit 5");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
}

#[test]
fn sockets_of_other_programs_are_hidden() {
    let place = Place::new();
    let output = place.run_held(&[], "echo ${SSH_AUTH_SOCK:-hidden}; grep NoNewPrivs /proc/self/status");
    assert_eq!(said(&output), "hidden\nNoNewPrivs:\t1\n");
    assert_eq!(said(&place.run(&["--free"], "echo $SSH_AUTH_SOCK")), "/x\n");
}

/// Run in a repository: each would make Git or Crow run something later, outside.
const TRAPS: [&str; 10] = [
    "echo ../elsewhere > .git/commondir",
    "mkdir -p .git/hooks; echo bad > .git/hooks/pre-commit",
    "rm -rf .git/hooks; mkdir .git/hooks; echo bad > .git/hooks/pre-commit",
    "mv .git/hooks .git/old; mkdir .git/hooks; echo bad > .git/hooks/pre-commit",
    "echo bad > .git/config",
    "git config core.fsmonitor bad",
    "mv .git old; mkdir -p .git/hooks; cp old/config .git; echo bad >> .git/config",
    "echo bad > .crow/config.yaml",
    "rm -rf .crow; mkdir .crow; echo bad > .crow/config.yaml",
    "mv .crow old; mkdir .crow; echo bad > .crow/config.yaml",
];

/// Creates a repository that contains Crow's configuration directory.
fn repository() -> Place {
    let place = Place::new();
    let set_up = "git init -q .; rm -rf .git/hooks; mkdir .crow; echo good > .crow/config.yaml";
    let output = place.run(&["--free"], set_up);
    assert!(output.status.success(), "{}", said(&output));
    place
}

/// Returns the files that would be read later.
fn traps(place: &Place) -> String {
    let read = |name: &str| fs::read_to_string(place.root.join(name)).unwrap_or_default();
    let hooks = fs::read_dir(place.root.join(".git/hooks")).map_or(0, Iterator::count);
    format!("{hooks} {} {} {}", read(".git/config"), read(".git/commondir"), read(".crow/config.yaml"))
}

#[track_caller]
fn check_traps(traps_tried: &[&str], run: impl Fn(&Place, &str) -> Output) {
    for script in traps_tried {
        let free = repository();
        let before = traps(&free);
        free.run(&["--free"], script);
        assert_ne!(traps(&free), before, "free: {script}");
        let held = repository();
        let output = run(&held, script);
        assert_eq!(traps(&held), before, "held: {script}: {}", said(&output));
    }
}

fn crow_folder(place: &Place) -> String {
    place.root.join(".crow").display().to_string()
}

#[test]
fn files_run_or_read_later_cannot_be_changed() {
    check_traps(&TRAPS, |place, script| place.run_held(&["--protect", &crow_folder(place)], script));
}

#[test]
fn configuration_is_unreachable_without_a_mount_namespace() {
    check_traps(&TRAPS, |place, script| {
        let crow = crow_folder(place);
        let script = format!("{script}; echo good > sub/file; echo good > file");
        fs::create_dir_all(place.root.join("sub")).expect("a folder can be made");
        let output = place.run_held(&["--no-namespace", "--protect", &crow], &script);
        assert!(place.root.join("sub/file").exists(), "what is below can be written: {}", said(&output));
        assert!(!place.root.join("file").exists(), "nothing new can be made beside it");
        output
    });
}

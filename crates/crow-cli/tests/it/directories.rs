//! Directories without a valid name, and directories and files that others can read.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use serde_json::json;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Runs the program in a directory; renders its exit code and output.
fn run(home: &Path, cwd: &Path, words: &[&OsStr]) -> String {
    let output = Command::new(binary())
        .args(words)
        .current_dir(cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("exit {} {}{}", output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn odd(folder: &Path) -> PathBuf {
    let odd = folder.join(OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir_all(&odd).expect("a folder can be made");
    odd
}

#[test]
fn directory_name_that_is_not_utf8_is_a_clear_error() {
    let model = ModelServer::start("text \"Hello.\"");
    let world = TestHome::new(model.base_url());
    let (home, project) = (world.home(), world.project());
    let odd = odd(&project);
    let below = odd.join("below");
    fs::create_dir(&below).expect("a folder can be made");
    let link = project.join("link");
    symlink(&odd, &link).expect("a link can be made");
    let words = |words: &[&'static str]| words.iter().map(|&word| OsStr::new(word)).collect::<Vec<_>>();
    let ran = [
        run(&home, &odd, &words(&["run", "hello"])),
        run(&home, &below, &words(&["run", "hello"])),
        run(&home, &project, &[OsStr::new("run"), OsStr::new("-c"), odd.as_os_str(), OsStr::new("hello")]),
        run(&home, &project, &words(&["run", "-c", "link", "hello"])),
        run(&home, &project, &words(&["mcp", "--cwd", "link"])),
        run(&home, &project, &words(&["trust", "show", "link"])),
        run(&home, &project, &words(&["speckit", "-C", "link", "paths"])),
    ];
    for ran in ran {
        assert!(ran.starts_with("exit 2 ") && ran.contains("is not UTF-8"), "{ran}");
    }
    let configured = run(&home, &project, &[OsStr::new("-d"), odd.as_os_str(), OsStr::new("models")]);
    assert!(configured.starts_with("exit 3 ") && configured.contains("is not UTF-8"), "{configured}");
    let homeless = run(&odd, &project, &words(&["models"]));
    assert!(homeless.starts_with("exit 3 ") && homeless.contains("is not UTF-8"), "{homeless}");
    assert_eq!(model.n_requests(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn session_in_a_directory_that_is_not_utf8_is_rejected() {
    let model = ModelServer::start("text \"Hello.\"");
    let world = TestHome::new(model.base_url());
    let link = world.project().join("link");
    symlink(odd(&world.project()), &link).expect("a link can be made");
    let mut client = FakeClient::start(binary(), &world.home()).await;
    let refused = [
        client.request("session/new", json!({"cwd": link, "mcpServers": []})).await,
        client
            .request(
                "session/new",
                json!({"cwd": world.project(), "additionalDirectories": [link], "mcpServers": []}),
            )
            .await,
    ];
    for refused in refused {
        let error = refused.expect_err("it is refused");
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["data"]["details"].to_string().contains("is not UTF-8"), "{error}");
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn open_up(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[tokio::test(flavor = "current_thread")]
async fn directory_readable_by_others_is_made_private_with_a_notice() {
    let model = ModelServer::start("text \"Hello.\"");
    let world = TestHome::new(model.base_url());
    let (folder, keys) = (world.home().join(".crow"), world.home().join(".crow/.env"));
    fs::write(&keys, "A_API_KEY=x\n").expect("it can be written");
    open_up(&folder, 0o755);
    open_up(&keys, 0o644);
    let doctor = run(&world.home(), &world.project(), &[OsStr::new("doctor")]);
    assert_eq!((mode(&folder), mode(&keys)), (0o755, 0o644), "the doctor changes nothing");
    for path in [&folder, &keys] {
        let line = format!("{}: other users can read it", path.display());
        assert!(doctor.contains(&line), "{doctor}");
    }
    let mut client =
        FakeClient::start_with(binary(), &world.home(), json!({"session": {"notices": {}}})).await;
    for _ in 0..2 {
        let session = client.new_session(&world.project()).await;
        let id = client.prompt(&session, "hello").await;
        client.response_to(id).await.expect("it ends");
        model.replace_answers("text \"Hello.\"");
    }
    assert_eq!((mode(&folder), mode(&keys)), (0o700, 0o600));
    let log = client.log();
    assert_eq!(
        log.matches("Other users could read these paths, which are private now: ").count(),
        1,
        "{log}"
    );
    let doctor = run(&world.home(), &world.project(), &[OsStr::new("doctor")]);
    assert!(!doctor.contains("other users"), "{doctor}");
}

#[test]
fn symlink_to_a_directory_readable_by_others_is_left_and_reported() {
    let model = ModelServer::start("text \"Hello.\"");
    let world = TestHome::new(model.base_url());
    let (keys, real) = (world.home().join(".crow/.env"), world.home().join("dotfiles.env"));
    fs::write(&real, "A_API_KEY=x\n").expect("it can be written");
    open_up(&real, 0o644);
    symlink(&real, &keys).expect("a link can be made");
    let ran = run(&world.home(), &world.project(), &[OsStr::new("run"), OsStr::new("hello")]);
    assert!(ran.starts_with("exit 0 "), "{ran}");
    let left = format!("which Crow leaves unchanged: {} (it is a link", keys.display());
    assert!(ran.contains(&left), "{ran}");
    assert_eq!(mode(&real), 0o644);
}

//! Sockets of other programs at unknown paths, in a network namespace without any others.

use std::process::{Command, Stdio};

use super::{Place, binary, said};

/// Listens in a directory as `$case` specifies and runs the rest there.
const LISTEN: &str = r#"
use Socket;
use Cwd;
my ($case, $dir, @run) = @ARGV;
my $root = getcwd;
chdir $dir or die;
my @open;
sub at {
    my ($path, $kind) = @_;
    socket(my $s, AF_UNIX, $kind // SOCK_STREAM, 0) or die;
    bind($s, pack_sockaddr_un($path)) or die "$path: $!";
    listen($s, 9) if !$kind;
    push @open, $s;
}
if ($case eq "plain") { at("$dir/s") }
if ($case eq "relative") { at("s") }
if ($case eq "datagram") { at("s", SOCK_DGRAM) }
if ($case eq "renamed") { at("$dir/first"); rename("$dir/first", "$dir/s") or die }
if ($case eq "renamed and made again") { at("$dir/a"); rename("$dir/a", "$dir/s") or die; at("$dir/a") }
if ($case eq "a second name") { at("$dir/first"); link("$dir/first", "$dir/s") or die }
if ($case eq "a link in its place") { at("$dir/a"); rename("$dir/a", "$dir/s") or die; symlink("/dev/null", "$dir/a") or die }
if ($case eq "a line break") { at("$dir/a\nb") }
if ($case eq "bytes") { at("$dir/\xff\xfe") }
if ($case eq "many") { at("$dir/$_") for 1 .. 600 }
chdir $root or die;
exit(system(@run, $dir) >> 8);
"#;

/// Prints the reachable sockets of a directory, and whether a new one can be created.
const REACH: &str = r#"
use Socket;
opendir(my $folder, $ARGV[0]) or die;
for my $path (map { "$ARGV[0]/$_" } readdir $folder) {
    for my $kind (SOCK_STREAM, SOCK_DGRAM) {
        my $s;
        my $reached = socket($s, AF_UNIX, $kind, 0) && connect($s, pack_sockaddr_un($path));
        print "reached\n" if $reached;
    }
}
my $s;
my $own = socket($s, AF_UNIX, SOCK_STREAM, 0) && bind($s, pack_sockaddr_un("own")) && listen($s, 1);
print $own ? "its own\n" : "none\n";
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or print "no pair\n";
exit !$own;
"#;

/// Returns the sockets of this kind that a confined command reaches.
fn reached(case: &str, held: &[&str]) -> String {
    let place = Place::new();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "perl", "-e", LISTEN, case]).arg(&place.outside);
    command.arg(binary()).arg("sandbox-exec").args(held);
    if held != ["--free"] {
        command.arg("--write").arg(&place.root);
    }
    command.args(["--", "perl", "-e", REACH]).current_dir(&place.root).stdin(Stdio::null());
    said(&command.output().expect("it starts"))
}

const NOTE: &str = "crow-cli sandbox-exec: Unix sockets were blocked for the command: a program listens on one whose path \
                    cannot be determined (/proc/net/unix)\n";

#[test]
fn socket_with_an_unknown_path_is_unreachable() {
    for case in [
        "relative",
        "datagram",
        "renamed",
        "renamed and made again",
        "a second name",
        "a link in its place",
        "a line break",
        "many",
    ] {
        let free = reached(case, &["--free"]);
        assert!(free.starts_with("reached\n"), "{case}: {free}");
        assert_eq!(reached(case, &[]), format!("none\n{NOTE}"), "{case}");
    }
}

#[test]
fn sockets_of_the_command_work_where_paths_are_known() {
    for case in ["plain", "bytes"] {
        assert!(reached(case, &["--free"]).starts_with("reached\n"), "{case}");
        assert_eq!(reached(case, &[]), "its own\n", "{case}");
    }
}

//! Parses the kernel's table of Unix sockets, `/proc/net/unix`. Any program may have added any name.

use std::collections::BTreeSet;

/// Columns before the name of a socket: number, references, protocol, flags, type, state and inode.
const COLUMNS: usize = 7;

/// The index of the state.
const STATE: usize = 5;

/// The state of an unconnected socket, to which others may connect or send.
const UNCONNECTED: &str = "01";

/// The sockets that can be connected to by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketTable<'a> {
    /// Their absolute paths, in any encoding, each once.
    pub paths: BTreeSet<&'a [u8]>,
    /// Whether the list is complete. It is not if a path is relative, contains a line break, or occurs twice (one of
    /// the sockets was moved). A name may contain lines in the format of the table, which cannot be detected; the
    /// first of them is then a path without that socket.
    pub is_complete: bool,
}

/// Parses the table, which ends with a line feed.
pub fn read_socket_table(table: &[u8]) -> SocketTable<'_> {
    let mut found = SocketTable { paths: BTreeSet::new(), is_complete: table.ends_with(b"\n") };
    let lines = table.strip_suffix(b"\n").unwrap_or(table).split(|byte| *byte == b'\n');
    for line in lines.skip(1) {
        found.is_complete &= match read_name(line) {
            Some(SocketName::Path(path)) => found.paths.insert(path),
            Some(SocketName::Other) => true,
            None => false,
        };
    }
    found
}

/// The name of a socket.
enum SocketName<'a> {
    /// A path for connections.
    Path(&'a [u8]),
    /// None, an abstract name, or that of a connection.
    Other,
}

/// Parses a line; `None` if it is invalid or has a relative path.
fn read_name(line: &[u8]) -> Option<SocketName<'_>> {
    let mut rest = line;
    let mut is_connected = false;
    for column in 0..COLUMNS {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        let digits = if column == 0 { value.strip_suffix(b":")? } else { value };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        is_connected |= column == STATE && value != UNCONNECTED.as_bytes();
        rest = after;
    }
    match rest.strip_prefix(b" ") {
        None | Some([b'@', ..]) => Some(SocketName::Other),
        Some([]) => None,
        Some(_) if is_connected => Some(SocketName::Other),
        Some(path) => path.starts_with(b"/").then_some(SocketName::Path(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";

    #[track_caller]
    fn check_table(lines: &[u8], paths: &[&[u8]], is_whole: bool) {
        let table = [HEADING.as_bytes(), lines].concat();
        let expected = SocketTable { paths: paths.iter().copied().collect(), is_complete: is_whole };
        assert_eq!(read_socket_table(&table), expected, "{}", String::from_utf8_lossy(lines));
    }

    #[test]
    fn table_lists_paths_without_other_names() {
        let lines = b"00000000a: 00000002 00000000 00010000 0001 01 16111 /run/user/0/nvim.1.0\n\
            00000000b: 00000003 00000000 00000000 0001 03  4711 /run/user/0/nvim.1.0\n\
            00000000c: 00000002 00000000 00010000 0001 01     7 @/tmp/.X11-unix/X0\n\
            00000000d: 00000003 00000000 00000000 0001 03 99999\n\
            00000000e: 00000003 00000000 00000000 0001 03    12 relative\n\
            00000000f: 00000002 00000000 00010000 0001 01    12 /tmp/with blanks  in it\n\
            000000010: 00000002 00000000 00000000 0002 01    13 /tmp/\xff\xfe\n";
        check_table(lines, &[b"/run/user/0/nvim.1.0", b"/tmp/with blanks  in it", b"/tmp/\xff\xfe"], true);
        check_table(b"", &[], true);
    }

    #[test]
    fn table_is_incomplete_with_ambiguous_names() {
        let line = |name: &str| format!("0000a: 00000002 00000000 00010000 0001 01 16111 {name}\n");
        for name in ["relative", "./a", "../a", "/tmp/a\nb", "/tmp/a\n", "\n/tmp/a", "\n", "/tmp/a\n\n"] {
            let table = HEADING.to_owned() + &line(name) + &line("/tmp/other");
            let read = read_socket_table(table.as_bytes());
            assert!(!read.is_complete, "{name:?}");
            assert!(read.paths.contains(b"/tmp/other".as_slice()), "{name:?}");
        }
        // A forged name is also a path; callers check that a socket exists there.
        let forged = line("/tmp/a\n0000b: 00000002 00000000 00010000 0001 01 1 /tmp/b");
        check_table(forged.as_bytes(), &[b"/tmp/a", b"/tmp/b"], true);
        // One of them was moved.
        check_table((line("/a") + &line("/a")).as_bytes(), &[b"/a"], false);
        // The table is truncated.
        check_table(line("/a").trim_end().as_bytes(), &[b"/a"], false);
        check_table(b"0000a: 00000002 0000\n", &[], false);
        assert!(!read_socket_table(b"").is_complete);
    }
}

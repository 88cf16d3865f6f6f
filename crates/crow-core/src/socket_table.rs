//! The kernel's table of Unix sockets, `/proc/net/unix`. Any program may have put any name into it.

use std::collections::BTreeSet;

/// The columns before the name: number, references, protocol, flags, type, state and inode.
const COLUMNS: usize = 7;

/// Returns the absolute paths that programs have bound Unix sockets to, each once.
pub fn listening_sockets(table: &str) -> BTreeSet<&str> {
    table.split('\n').skip(1).filter_map(bound_path).collect()
}

/// Finds the name behind the columns; abstract names begin with `@`.
fn bound_path(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..COLUMNS {
        rest = rest.trim_start_matches(' ').split_once(' ')?.1;
    }
    rest.starts_with('/').then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_other_names_are_not() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000a: 00000002 00000000 00010000 0001 01 16111 /run/user/0/nvim.1.0\n\
            00000000b: 00000003 00000000 00000000 0001 03 4711 /run/user/0/nvim.1.0\n\
            00000000c: 00000002 00000000 00010000 0001 01     7 @/tmp/.X11-unix/X0\n\
            00000000d: 00000003 00000000 00000000 0001 03 99999\n\
            00000000e: 00000002 00000000 00010000 0001 01 12 relative\n\
            00000000f: 00000002 00000000 00010000 0001 01 12 /tmp/with blanks  in it\n\
            odd\n";
        let found: Vec<&str> = listening_sockets(table).into_iter().collect();
        assert_eq!(found, ["/run/user/0/nvim.1.0", "/tmp/with blanks  in it"]);
        assert!(listening_sockets("").is_empty());
    }
}

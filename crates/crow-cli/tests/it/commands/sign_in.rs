//! `auth`, and MCP servers that may need a login.

use super::{Stage, check};
use expect_test::expect;

const YAML: &str = "
providers:
  here: { base_url: '$URL' }
models:
  main: { provider: here }
mcpServers:
  web: { url: '$URL/mcp?key=secret' }
  keyed: { url: 'https://example.org/mcp', headers: { Authorization: Bearer secret } }
  program: { command: no-such-program }
";

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn servers_and_their_logins() {
    let stage = Stage::configured("", YAML);
    check(
        &stage,
        "crow auth | tail -n 3",
        &expect![[r#"
            exit 0
            MCP SERVER  LOGIN
            web         not logged in; if it requires a login: crow-cli auth web
            keyed       key in its headers
        "#]],
    );
    check(
        &stage,
        "crow auth wep",
        &expect![[r#"
            exit 3
            error: unknown MCP server wep
            hint: did you mean web?
        "#]],
    );
    check(
        &stage,
        "crow auth unknown",
        &expect![[r#"
            exit 3
            error: unknown MCP server unknown
            hint: add it to `mcpServers` in $HOME/.crow/config.yaml
        "#]],
    );
    check(
        &stage,
        "crow auth program",
        &expect![[r#"
            exit 1
            error: could not log in to the MCP server program: it is a program, which needs no login
        "#]],
    );
    check(
        &stage,
        "crow auth keyed",
        &expect![[r#"
            exit 1
            error: could not log in to the MCP server keyed: its headers already have an `Authorization`
        "#]],
    );
    check(
        &stage,
        "crow auth web --forget",
        &expect![[r#"
            exit 0
            there was no login at web
        "#]],
    );
    check(
        &stage,
        "crow auth --forget",
        &expect![[r#"
            exit 2
            error: the following required arguments were not provided:
        "#]],
    );
}

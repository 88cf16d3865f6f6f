//! `auth` and the MCP servers that may want a sign-in.

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

#[test]
fn servers_and_their_sign_ins() {
    let stage = Stage::configured("", YAML);
    check(&stage, "crow auth", &expect![]);
    check(&stage, "crow auth wep", &expect![]);
    check(&stage, "crow auth nobody", &expect![]);
    check(&stage, "crow auth program", &expect![]);
    check(&stage, "crow auth keyed", &expect![]);
    check(&stage, "crow auth web", &expect![]);
    check(&stage, "crow auth web --forget", &expect![]);
    check(&stage, "crow auth --forget", &expect![]);
}

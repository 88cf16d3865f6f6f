//! The fake MCP server as a program; its arguments are its behaviors.

fn main() {
    crow_testkit::mcp_server::serve(std::env::args().skip(1).collect());
}

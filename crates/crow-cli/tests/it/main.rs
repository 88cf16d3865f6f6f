//! Tests of the whole: one program, so that it links once.

mod answers;
mod bridge;
mod cancel;
mod capabilities;
mod children;
mod commands;
mod compaction;
mod crash;
mod demo;
mod dependencies;
mod earlier;
mod endings;
mod golden;
mod held;
mod hooks;
mod mcp;
mod mcp_server;
mod memory;
mod replay;
mod sandbox;
mod skills;
mod survivors;
mod tidy;
mod trust;
mod undo;
mod wire;

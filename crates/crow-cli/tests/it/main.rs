//! Tests of the whole: one program, so that it links once.

mod answers;
mod cancel;
mod capabilities;
mod commands;
mod demo;
mod dependencies;
mod endings;
mod golden;
mod mcp;
mod replay;
mod tidy;
mod wire;

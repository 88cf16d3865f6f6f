//! Tests of the whole: one program, so that it links once.

mod commands;
mod demo;
mod dependencies;
mod endings;
mod golden;
mod tidy;
mod wire;

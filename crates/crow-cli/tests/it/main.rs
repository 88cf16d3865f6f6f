//! Tests of the whole: one program, so that it links once.

mod tidy;

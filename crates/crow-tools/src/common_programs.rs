//! The programs of this machine that a model may want to use. Must not know any tool.

/// Programs whose absence changes what a model does: it would try them first.
const COMMON_PROGRAMS: [&str; 14] = [
    "git", "rg", "jq", "python3", "uv", "node", "npm", "pnpm", "cargo", "go", "java", "gcc", "make", "docker",
];

/// Returns the common programs in the directories of a search path, as `PATH` has them, in a fixed order. Blocks.
pub fn find_common_programs(search_path: &str) -> Vec<&'static str> {
    let exists = |name: &&str| crow_process::find_program(name, search_path).is_some();
    COMMON_PROGRAMS.into_iter().filter(exists).collect()
}

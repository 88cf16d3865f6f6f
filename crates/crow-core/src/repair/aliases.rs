//! Aliases of parameter names from the tools of other agents. Knows the parameters of Crow's own tools, nothing else
//! of them.

/// Aliases of one parameter.
pub(super) struct ParameterAliases {
    pub(super) parameter: &'static str,
    /// The tools with this meaning; empty for all tools with such a parameter.
    pub(super) tools: &'static [&'static str],
    /// The aliases, in snake case.
    pub(super) names: &'static [&'static str],
}

const fn for_all_tools(parameter: &'static str, names: &'static [&'static str]) -> ParameterAliases {
    ParameterAliases { parameter, tools: &[], names }
}

const fn for_tools(
    tools: &'static [&'static str],
    parameter: &'static str,
    names: &'static [&'static str],
) -> ParameterAliases {
    ParameterAliases { parameter, tools, names }
}

const TASKS: &[&str] = &["task_send", "task_read", "task_cancel"];
const LISTS: &[&str] = &["grep", "web_search", "query_memory", "query_session"];

/// Each alias is unambiguous for its tool; ambiguous ones are omitted.
pub(super) const ALIASES: &[ParameterAliases] = &[
    for_all_tools(
        "file_path",
        &[
            "path",
            "file",
            "filename",
            "fname",
            "target_file",
            "target_path",
            "absolute_path",
            "relative_path",
            "abs_path",
            "full_path",
        ],
    ),
    for_tools(
        &["read"],
        "offset",
        &[
            "start_line",
            "line_start",
            "from_line",
            "first_line",
            "line",
            "line_number",
            "start",
            "start_line_number",
            "starting_line",
            "start_line_one_indexed",
        ],
    ),
    for_tools(
        &["read"],
        "limit",
        &[
            "max_lines",
            "num_lines",
            "n_lines",
            "number_of_lines",
            "line_count",
            "line_limit",
            "lines",
            "count",
        ],
    ),
    for_tools(
        &["write"],
        "content",
        &[
            "text",
            "contents",
            "file_content",
            "file_contents",
            "file_text",
            "new_content",
            "full_content",
            "body",
            "data",
            "code",
            "code_content",
        ],
    ),
    for_all_tools(
        "old_string",
        &[
            "old_str",
            "old_text",
            "old",
            "old_content",
            "old_code",
            "search",
            "search_string",
            "search_str",
            "search_text",
            "find",
            "find_text",
            "original",
            "original_text",
            "target_text",
            "target_content",
        ],
    ),
    for_all_tools(
        "new_string",
        &[
            "new_str",
            "new_text",
            "new",
            "new_content",
            "new_code",
            "replace",
            "replacement",
            "replace_with",
            "replace_string",
            "replace_text",
            "replacement_string",
            "replacement_text",
            "replacement_content",
            "updated_text",
        ],
    ),
    for_all_tools(
        "replace_all",
        &["all", "all_occurrences", "replace_all_occurrences", "global", "multiple", "allow_multiple"],
    ),
    for_tools(
        &["terminal"],
        "command",
        &["cmd", "shell_command", "command_line", "bash_command", "terminal_command", "bash", "script"],
    ),
    for_all_tools(
        "cwd",
        &[
            "workdir",
            "work_dir",
            "working_directory",
            "working_dir",
            "working_folder",
            "directory",
            "dir",
            "folder",
            "current_directory",
            "current_dir",
            "current_working_directory",
            "dir_path",
            "directory_path",
        ],
    ),
    for_all_tools(
        "timeout",
        &["timeout_seconds", "timeout_secs", "timeout_sec", "timeout_s", "timeout_in_seconds", "time_limit"],
    ),
    for_all_tools("background", &["run_in_background", "is_background", "in_background", "background_job"]),
    for_all_tools("job", &["job_id", "job_name", "bash_id", "shell_id"]),
    for_tools(
        &["grep"],
        "pattern",
        &[
            "regex",
            "regexp",
            "query",
            "search",
            "search_pattern",
            "search_term",
            "search_string",
            "search_query",
            "expression",
            "regular_expression",
        ],
    ),
    for_tools(
        &["glob"],
        "pattern",
        &[
            "glob",
            "glob_pattern",
            "file_pattern",
            "filename_pattern",
            "name_pattern",
            "search_pattern",
            "query",
        ],
    ),
    for_tools(
        &["grep", "glob"],
        "path",
        &[
            "directory",
            "dir",
            "folder",
            "dir_path",
            "directory_path",
            "folder_path",
            "search_path",
            "search_dir",
            "search_directory",
            "target_directory",
            "root",
            "root_dir",
            "base_path",
            "base_dir",
            "cwd",
            "workdir",
            "working_directory",
        ],
    ),
    for_tools(&["grep"], "path", &["file", "file_path", "filename"]),
    for_tools(
        &["grep"],
        "include",
        &[
            "glob",
            "glob_pattern",
            "include_pattern",
            "include_glob",
            "includes",
            "file_pattern",
            "file_glob",
            "filename_pattern",
        ],
    ),
    for_all_tools("ignore_case", &["case_insensitive", "insensitive", "no_case", "i"]),
    for_tools(&["grep"], "output", &["output_mode"]),
    for_tools(
        &["grep"],
        "context",
        &["context_lines", "lines_of_context", "num_context_lines", "surrounding_lines", "c"],
    ),
    for_tools(
        LISTS,
        "limit",
        &[
            "max_results",
            "num_results",
            "n_results",
            "number_of_results",
            "max_matches",
            "max_hits",
            "max_count",
            "result_limit",
            "results_limit",
            "head_limit",
            "top_k",
        ],
    ),
    for_tools(&["web_search", "query_memory", "query_session"], "limit", &["count"]),
    for_all_tools(
        "queries",
        &["query", "q", "search_query", "search_queries", "search_term", "search_terms"],
    ),
    for_tools(
        &["web_fetch"],
        "url",
        &["uri", "link", "href", "address", "web_url", "page_url", "target_url"],
    ),
    for_all_tools("max_length", &["max_chars", "max_characters", "max_len", "length", "limit"]),
    for_tools(&["web_fetch"], "start_index", &["start", "offset", "start_offset", "start_char", "start_at"]),
    for_tools(
        &["todo"],
        "entries",
        &[
            "todos",
            "todo",
            "todo_list",
            "todo_items",
            "plan",
            "plan_entries",
            "items",
            "tasks",
            "steps",
            "list",
        ],
    ),
    for_tools(&["todo"], "content", &["step", "task", "title", "text", "name", "item", "todo", "subject"]),
    for_tools(&["todo"], "status", &["state"]),
    for_tools(
        &["task", "task_send"],
        "prompt",
        &[
            "message",
            "instructions",
            "instruction",
            "text",
            "task_prompt",
            "request",
            "input",
            "task_description",
        ],
    ),
    for_tools(&["task"], "prompt", &["task", "goal", "objective"]),
    for_tools(
        &["task"],
        "title",
        &["description", "name", "task_name", "task_title", "short_description", "label", "summary"],
    ),
    for_tools(&["task"], "agent", &["subagent_type", "subagent", "sub_agent", "agent_type", "agent_name"]),
    for_tools(&["task"], "model", &["model_name", "model_id"]),
    for_tools(TASKS, "task", &["task_id", "id", "task_name", "name", "agent_id", "session_id"]),
    for_tools(
        &["query_memory", "query_session"],
        "query",
        &["q", "search", "search_query", "search_terms", "keywords", "words", "text"],
    ),
    for_tools(&["query_session"], "session_id", &["session", "id"]),
    for_tools(&["list_mcp_resources", "read_mcp_resource"], "server", &["server_name", "mcp_server"]),
    for_tools(&["read_mcp_resource"], "uri", &["url", "resource", "resource_uri", "address"]),
    for_tools(&["speckit_ask"], "question", &["prompt", "text", "query"]),
    for_tools(&["speckit_ask"], "options", &["choices", "answers"]),
    for_tools(&["speckit_ask"], "recommended", &["recommendation", "default"]),
    for_tools(&["speckit_ask"], "label", &["name", "title", "value", "text"]),
    for_tools(&["speckit_ask"], "meaning", &["description", "detail", "details", "explanation"]),
    for_tools(&["speckit_task"], "id", &["task_id", "task"]),
    for_tools(&["speckit_task"], "state", &["status"]),
    for_tools(&["speckit_task"], "note", &["summary", "message", "comment", "reason", "description"]),
    for_tools(&["speckit_converge"], "tasks", &["gaps", "items"]),
    for_tools(&["speckit_converge"], "text", &["description", "title", "content"]),
    for_tools(&["speckit_converge"], "is_critical", &["critical"]),
];

/// Names for the model's comment on a call, without any effect.
const COMMENT_NAMES: &[&str] = &[
    "description",
    "explanation",
    "reason",
    "reasoning",
    "rationale",
    "justification",
    "purpose",
    "thought",
];

/// Other names without effect, by tool: comments under another name, or the default behavior.
const IGNORED_PARAMETERS: &[(&str, &[&str])] = &[
    ("edit", &["instruction", "instructions"]),
    // Hits always have line numbers.
    ("grep", &["n", "line_numbers", "show_line_numbers"]),
    ("todo", &["active_form", "id", "priority"]),
    ("query_memory", &["search_type", "include_forks", "agent_idx", "mode"]),
    ("query_session", &["search_type", "include_forks", "agent_idx"]),
];

/// Whether a name is a comment on the call.
pub(super) fn is_comment(normalized: &str) -> bool {
    COMMENT_NAMES.contains(&normalized)
}

/// Returns the names without effect for a tool.
pub(super) fn ignored_parameters(tool: &str) -> &'static [&'static str] {
    IGNORED_PARAMETERS.iter().find(|(name, _)| *name == tool).map_or(&[], |(_, names)| names)
}

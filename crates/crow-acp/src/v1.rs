//! Conversion to and from ACP version 1. The only module that converts its types.

mod agent_tree;
mod agent_updates;
mod announced_calls;
mod client_requests;
mod elicitation;
mod error_details;
mod extensions;
mod permission;
mod plan;
mod primitives;
mod prompt_content;
mod report;
mod rpc_errors;
mod session_config;
mod session_setup;
mod session_updates;
mod tool_calls;

pub(crate) use self::agent_tree::{
    ClaimRequest, ClaimResponse, ReleaseNotification, agent_capabilities, initialize_request, tokens_spent,
    turn_scope, turn_scope_meta,
};
pub(crate) use self::agent_updates::{message_id, parse_permission_request, stop_reason, to_agent_updates};
pub(crate) use self::announced_calls::AnnouncedCalls;
pub(crate) use self::client_requests::{
    client_command, client_error, create_terminal, kill_terminal, read_file, read_terminal, release_terminal,
    terminal_id, terminal_output, terminal_output_response, to_terminal_exit, wait_for_exit, wait_response,
    write_file,
};
pub(crate) use self::elicitation::{
    elicitation_outcome, parse_form_request, to_elicitation_request, to_elicitation_response,
};
pub(crate) use self::error_details::with_failure_kind;
pub(crate) use self::extensions::{
    ListPromptsRequest, ListPromptsResponse, SetModelRequest, SetModelResponse, SteerRequest, SteerResponse,
    earlier_prompts, fork_end, fork_end_meta, list_prompts_response, steer_response,
};
pub(crate) use self::permission::{
    child_permission_answer, child_permission_request, permission_outcome, permission_request,
    permission_response,
};
pub(crate) use self::primitives::session_id;
pub(crate) use self::prompt_content::{content_block, prompt_blocks, prompt_response};
pub(crate) use self::report::report_outcome;
pub(crate) use self::rpc_errors::{from_rpc_error, missing_file_error, no_user_error, to_rpc_error};
pub(crate) use self::session_config::{MODES_OPTION, opened_options, session_options};
pub(crate) use self::session_setup::{
    check_sign_in_method, client_capabilities, config_options, fork_session_response, initialize_response,
    list_sessions_response, load_session_response, new_session_response, resume_session_response,
    session_info, session_location,
};
pub(crate) use self::session_updates::{is_update_line, session_notification};

//! Errors of real providers, and the resulting messages.

use expect_test::expect_file;

use super::show;
use crate::failure::{ErrorResponse, FailureContext};
use crate::test_settings::{SECRET_KEY, sample_settings};

/// An error as a provider sends it: provider, status, body.
const REAL: [(&str, u16, &str); 44] = [
    (
        "openai",
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-secret-0123456789. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
    ),
    (
        "openai",
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    (
        "openai",
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "openai",
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 61337. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "openai",
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "openai",
        404,
        r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
    ),
    (
        "openai",
        400,
        r#"{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.","type":"invalid_request_error","param":"reasoning_effort","code":"unsupported_value"}}"#,
    ),
    (
        "azure",
        400,
        r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
    ),
    (
        "openrouter",
        402,
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 38192 tokens, but can only afford 1200.","code":402}}"#,
    ),
    (
        "openrouter",
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"qwen3 is temporarily rate-limited upstream.\"}}","provider_name":"Chutes"}}}"#,
    ),
    (
        "openrouter",
        404,
        r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}"#,
    ),
    (
        "openrouter",
        400,
        r#"{"error":{"message":"acme/big is not a valid model ID","code":400},"user_id":"user_1"}"#,
    ),
    (
        "openrouter",
        403,
        r#"{"error":{"message":"openai/gpt-4 requires moderation on OpenAI. Your input was flagged for \"violence\".","code":403,"metadata":{"reasons":["violence"]}}}"#,
    ),
    (
        "groq",
        413,
        r#"{"error":{"message":"Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        "groq",
        400,
        r#"{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}"#,
    ),
    (
        "groq",
        400,
        r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read>"}}"#,
    ),
    (
        "deepseek",
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        "deepseek",
        400,
        r#"{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        "deepseek",
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        "deepseek",
        400,
        r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        "moonshot",
        429,
        r#"{"error":{"message":"Your account org-1 is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}"#,
    ),
    (
        "gemini",
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]"#,
    ),
    (
        "gemini",
        400,
        r#"[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (
        "gemini",
        400,
        r#"[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (
        "gemini",
        404,
        r#"[{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1main, or is not supported for generateContent.","status":"NOT_FOUND"}}]"#,
    ),
    (
        "gemini",
        503,
        r#"[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]"#,
    ),
    ("mistral", 401, r#"{"detail":"Unauthorized"}"#),
    (
        "mistral",
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":"hm"}]},"type":"invalid_request_error","param":null,"code":null}"#,
    ),
    (
        "mistral",
        400,
        r#"{"object":"error","message":"Invalid model: big","type":"invalid_model","param":null,"code":"1500"}"#,
    ),
    (
        "mistral",
        400,
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}"#,
    ),
    (
        "cerebras",
        400,
        r#"{"message":"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}"#,
    ),
    (
        "ollama",
        404,
        r#"{"error":{"message":"model \"big\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
    ),
    (
        "ollama",
        400,
        r#"{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}"#,
    ),
    (
        "llama.cpp",
        400,
        r#"{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}"#,
    ),
    (
        "llama.cpp",
        500,
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
    ),
    (
        "llama.cpp",
        500,
        r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
    ),
    ("llama.cpp", 503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
    (
        "vllm",
        400,
        r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        "vllm",
        404,
        r#"{"object":"error","message":"The model `big` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
    ),
    (
        "lm studio",
        400,
        r#"{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
    ),
    (
        "a proxy",
        502,
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1></center></body>\r\n</html>",
    ),
    ("a proxy", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    ("a proxy", 504, "upstream request timeout"),
    ("a proxy", 500, ""),
];

#[test]
fn real_provider_errors_are_recognized() {
    let mut seen = String::new();
    for (who, code, body) in REAL {
        let mut settings = sample_settings();
        who.clone_into(&mut settings.provider.name);
        let answer = ErrorResponse { code, body, retry_after: None, is_repeated: false };
        let tried = FailureContext::about_model(&settings).explain_response(&answer);
        seen.push_str(&show(&tried));
        // Whatever a provider echoes, the key is not in it.
        let body = body.replace("message\":\"", &format!("message\":\"{SECRET_KEY} tenant-secret "));
        let answer = ErrorResponse { code, body: &body, retry_after: None, is_repeated: true };
        let tried = format!("{:?}", FailureContext::about_model(&settings).explain_response(&answer));
        assert!(!tried.contains("secret"), "{tried}");
    }
    expect_file!["refusals.txt"].assert_eq(&seen);
}

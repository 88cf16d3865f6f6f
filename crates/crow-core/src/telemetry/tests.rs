use super::telemetry_provider;

#[test]
fn telemetry_providers_are_known_by_their_hosts() {
    for (host, name) in [
        ("api.openai.com", Some("openai")),
        ("mine.openai.azure.com", Some("azure.ai.openai")),
        ("bedrock-runtime.eu-west-1.amazonaws.com", Some("aws.bedrock")),
        ("europe-west4-aiplatform.googleapis.com", Some("gcp.vertex_ai")),
        ("notapi.openai.com.example", None),
        ("xapi.openai.com", None),
        ("localhost", None),
        ("", None),
    ] {
        assert_eq!(telemetry_provider(host), name, "{host}");
    }
}

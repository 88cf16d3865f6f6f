//! Faults of the model's provider and of the network in between.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::inspecting_proxy::InspectingProxy;
use super::{Fault, PLAIN, Surroundings};

const DEAD_SERVER: &str = "providers:\n  acme: { base_url: 'http://127.0.0.1:9/v1', api_key: none }\n\
                           models:\n  main: { provider: acme }\nmax_retries_per_step: 0\n";

const WITH_FALLBACK: &str = "providers:\n  acme: { base_url: $URL, api_key: '${ACME_API_KEY}' }\n  \
                             local: { base_url: $URL, api_key: none }\n\
                             models:\n  main: { provider: acme, model: scripted, fallbacks: [spare] }\n  \
                             spare: { provider: local, model: scripted }\nmax_retries_per_step: 0\n";

const BEHIND_PROXY: &str = "providers:\n  acme: { base_url: 'https://api.acme.example/v1', api_key: none }\n\
                            models:\n  main: { provider: acme, model: scripted }\nmax_retries_per_step: 3\n";

pub(super) const FAULTS: [Fault; 6] = [
    Fault {
        title: "The network is gone before a turn",
        event: "Nothing answers at the address of the provider. Crow has tried again as often as `max_retries_per_step` says.",
        config: DEAD_SERVER,
        advice: "The prompt is stored. Once the network is back, `crow-cli --continue` goes on in that session.",
        ..PLAIN
    },
    Fault {
        title: "The network is gone in a turn",
        event: "The connection breaks in the middle of a reply, and comes back.",
        script: "text \"This folder has a parser\" | cut\ntext \" and its tests.\"",
        advice: "What has arrived is kept, and the model is asked to continue there, at most three times in a row.",
        ..PLAIN
    },
    Fault {
        title: "A proxy inspects TLS",
        event: "`HTTPS_PROXY` names a proxy that decrypts all connections, as companies have them: what Crow gets is signed by the\n\
                authority of the proxy.",
        config: BEHIND_PROXY,
        script: "text \"A parser.\"",
        prepare: |stage| {
            let server = stage.server.base_url().trim_start_matches("http://").trim_end_matches("/v1");
            let proxy = InspectingProxy::start("api.acme.example", server.parse().expect("an address"));
            stage.world.write_file("authority.pem", &proxy.authority_pem);
            Surroundings { env: vec![("HTTPS_PROXY", proxy.url.clone())], ..Surroundings::with(proxy) }
        },
        commands: &[
            "crow-cli run 'Explain this folder.'",
            "SSL_CERT_FILE=authority.pem crow-cli run -s calm-tiny-finch 'Explain this folder.'",
        ],
        advice: "Nothing is sent before the certificate is accepted. The file of `SSL_CERT_FILE` is used instead of the system's\n\
                 certificates; no setting accepts every certificate.",
        ..PLAIN
    },
    Fault {
        title: "The key is wrong",
        event: "The provider answers with status 401, and repeats the key.",
        script: "status 401 {\"error\":{\"message\":\"Incorrect API key provided: sk-1234567890abcdef\"}}",
        prepare: |stage| {
            let file = stage.world.home().join(".crow/.env");
            fs::write(&file, "ACME_API_KEY=sk-1234567890abcdef\n").expect("written");
            fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("private");
            Surroundings::default()
        },
        advice: "Keys are never shown. Correct the variable; the next prompt uses it, and the conversation is kept.",
        ..PLAIN
    },
    Fault {
        title: "The quota is used up",
        event: "The provider answers with status 429 and says that there is no credit left.",
        script: "status 429 {\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\
                 \"message\":\"You exceeded your current quota.\"}}",
        advice: "Crow does not try again, since waiting does not help.",
        ..PLAIN
    },
    Fault {
        title: "The quota is used up, and there is a fallback",
        event: "The same, but the model has `fallbacks: [spare]`, a model of another provider.",
        config: WITH_FALLBACK,
        script: "status 429 {\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\
                 \"message\":\"You exceeded your current quota.\"}}\ntext \"A parser.\"",
        advice: "The [fallback](../guides/models.md#fallbacks) answers until the end of the turn. The next prompt\n\
                 begins with the first model again.",
        ..PLAIN
    },
];

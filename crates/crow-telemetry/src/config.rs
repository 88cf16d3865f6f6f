//! The variables of OpenTelemetry's specification that Crow follows.

use std::fmt;

use crow_core::link::percent_decode;

/// The path of traces at a collector.
const TRACES_PATH: &str = "/v1/traces";

const DEFAULT_SERVICE: &str = "crow-cli";

/// A collector, and what is said of this process.
#[derive(Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The URL for traces.
    pub(crate) url: String,
    /// Headers of each request; values may be secrets.
    pub(crate) headers: Vec<(String, String)>,
    /// The attributes of the resource.
    pub(crate) resource: Vec<(String, String)>,
}

/// Shows no header.
impl fmt::Debug for TelemetryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetryConfig").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// The reason why the variables cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TelemetryConfigError {
    /// Another protocol is requested.
    Protocol(String),
    /// A list of headers or attributes is malformed.
    List {
        /// The variable with the list.
        variable: &'static str,
    },
}

impl fmt::Display for TelemetryConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(protocol) => {
                write!(f, "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol:?}, and only http/json is supported")
            }
            Self::List { variable } => write!(f, "{variable} is not a list such as name=value,other=value"),
        }
    }
}

impl TelemetryConfig {
    /// Reads the configuration from variables; `None` if nothing is to be exported. `version` is Crow's.
    pub fn from_variables<'a>(
        variable: impl Fn(&str) -> Option<&'a str>,
        version: &str,
    ) -> Result<Option<Self>, TelemetryConfigError> {
        // An empty variable counts as not set.
        let variable = |name: &str| variable(name).map(str::trim).filter(|value| !value.is_empty());
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_disabled || variable("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter != "otlp") {
            return Ok(None);
        }
        let base_url = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
        let base_url = base_url.map(|base| format!("{}{TRACES_PATH}", base.trim_end_matches('/')));
        let Some(url) = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned).or(base_url) else {
            return Ok(None);
        };
        let protocol = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
        match protocol.or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL")) {
            // A collector takes both encodings at one address.
            None | Some("http/json" | "http/protobuf") => {}
            Some(protocol) => return Err(TelemetryConfigError::Protocol(protocol.to_owned())),
        }
        let list = |name: &'static str| match variable(name).map(parse_list) {
            None => Ok(Vec::new()),
            Some(list) => list.ok_or(TelemetryConfigError::List { variable: name }),
        };
        let mut headers = list("OTEL_EXPORTER_OTLP_TRACES_HEADERS")?;
        if headers.is_empty() {
            headers = list("OTEL_EXPORTER_OTLP_HEADERS")?;
        }
        let mut resource = list("OTEL_RESOURCE_ATTRIBUTES")?;
        let mut set = |name: &str, value: &str| {
            resource.retain(|(known, _)| known != name);
            resource.push((name.to_owned(), value.to_owned()));
        };
        if let Some(service) = variable("OTEL_SERVICE_NAME") {
            set("service.name", service);
        }
        set("telemetry.sdk.language", "rust");
        set("telemetry.sdk.name", "crow-telemetry");
        set("telemetry.sdk.version", version);
        for (name, default) in [("service.version", version), ("service.name", DEFAULT_SERVICE)] {
            if !resource.iter().any(|(known, _)| known == name) {
                resource.insert(0, (name.to_owned(), default.to_owned()));
            }
        }
        Ok(Some(Self { url, headers, resource }))
    }
}

/// Parses `name=value,other=value` with percent-encoded values.
fn parse_list(text: &str) -> Option<Vec<(String, String)>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let entries = entries.map(|entry| {
        let (name, value) = entry.split_once('=')?;
        Some((percent_decode(name.trim())?, percent_decode(value.trim())?))
    });
    entries.collect()
}

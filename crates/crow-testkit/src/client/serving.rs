//! The fake editor's responses to requests, with faults if requested.

use serde_json::{Value, json};

use super::editor::{EditorResponse, ResponseFault, error};
use super::{CommandExit, FakeClient, RpcResult};

impl FakeClient {
    pub(super) async fn answer_permission(&mut self, message: &Value) {
        let options = message["params"]["options"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&str> = options.iter().filter_map(|option| option["optionId"].as_str()).collect();
        let title = message["params"]["toolCall"]["title"].as_str().unwrap_or_default();
        let answer = self.permission_answers.pop_front().unwrap_or_else(|| "allow_once".into());
        self.add_to_log(format!("? {title} [{}] -> {answer}", ids.join(", ")));
        let fault = ResponseFault::parse(&answer);
        let result = match (answer.as_str(), fault) {
            (_, Some(ResponseFault::Error)) => Err(error(-32603, "the dialog broke")),
            ("cancelled", _) => Ok(json!({"outcome": {"outcome": "cancelled"}})),
            (_, Some(_)) => Ok(json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})),
            (answer, None) => {
                let (option_id, prefix) =
                    answer.split_once(": ").map_or((answer, None), |(id, prefix)| (id, Some(prefix)));
                let mut result = json!({"outcome": {"outcome": "selected", "optionId": option_id}});
                if let Some(prefix) = prefix {
                    result["_meta"] = json!({"crow/prefix": prefix});
                }
                Ok(result)
            }
        };
        self.send_response(&message["id"], result, fault).await;
    }

    /// Fills in a form: an offered value into the property with choices, anything else into the text property.
    pub(super) async fn answer_form(&mut self, message: &Value) {
        self.fail_if(self.editor.undeclared_call("elicitation/create"));
        let params = &message["params"];
        let properties = params["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let select_property = properties.iter().find(|(_, property)| property["oneOf"].is_array());
        let values =
            select_property.and_then(|(_, property)| property["oneOf"].as_array()).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(|option| option["const"].as_str()).collect();
        let first_value = values.first().copied().unwrap_or("declined");
        let answer = self.form_answers.pop_front().unwrap_or_else(|| first_value.to_owned());
        let message_text = params["message"].as_str().unwrap_or_default();
        self.add_to_log(format!("? form {message_text} [{}] -> {answer}", values.join(", ")));
        let fault = ResponseFault::parse(&answer);
        let text_property = properties.iter().find(|(_, property)| property.get("oneOf").is_none());
        let property = if values.contains(&answer.as_str()) {
            select_property
        } else {
            text_property.or(select_property)
        };
        let content = property.map(|(name, _)| json!({ name: answer })).unwrap_or_default();
        let result = match (answer.as_str(), fault) {
            (_, Some(ResponseFault::Error)) => Err(error(-32603, "the dialog broke")),
            ("declined", _) => Ok(json!({"action": "decline"})),
            ("cancelled", _) => Ok(json!({"action": "cancel"})),
            (_, Some(_)) => Ok(json!({"action": "accept", "content": {}})),
            (_, None) => Ok(json!({"action": "accept", "content": content})),
        };
        self.send_response(&message["id"], result, fault).await;
    }

    pub(super) async fn serve_request(&mut self, method: &str, message: &Value) {
        self.fail_if(self.editor.undeclared_call(method));
        let fault = self.editor.take_fault(method);
        let id = &message["id"];
        if let Some(fault @ (ResponseFault::Error | ResponseFault::Null | ResponseFault::Silence)) = fault {
            self.add_to_log(format!("> {method} -> {}", fault.name()));
            return self.send_response(id, Err(error(-32603, "the editor broke")), Some(fault)).await;
        }
        let (line, response) = self.editor.serve_request(method, &message["params"]);
        match (line, fault) {
            (Some(line), None) => self.add_to_log(line),
            (line, Some(fault)) => {
                self.add_to_log(format!("{} -> {}", line.unwrap_or(format!("> {method}")), fault.name()));
            }
            (None, None) => {}
        }
        match response {
            EditorResponse::Ready(result) => self.send_response(id, result, fault).await,
            EditorResponse::Pending(exit) => {
                self.pending_waits.insert(id.to_string(), fault);
                let (sender, id) = (self.exit_sender.clone(), id.clone());
                // Fails only when the client is gone.
                tokio::spawn(async move {
                    drop(sender.send(CommandExit { id, status: exit.await }).await);
                });
            }
        }
    }

    pub(super) async fn answer_wait(&mut self, exit: CommandExit) {
        let CommandExit { id, status } = exit;
        if let Some(fault) = self.pending_waits.remove(&id.to_string()) {
            self.send_response(&id, Ok(status), fault).await;
        }
    }

    pub(super) async fn on_cancel_request(&mut self, id: &Value) {
        match self.contract.agent_request_method(id).unwrap_or_default().to_owned().as_str() {
            "session/request_permission" | "elicitation/create" => {
                self.add_to_log("< takes its question back");
            }
            // A client can stop waiting for a command; every other request is answered at once.
            "terminal/wait_for_exit" if self.pending_waits.remove(&id.to_string()).is_some() => {
                self.send_response(id, Err(error(-32800, "Request cancelled")), None).await;
            }
            _ => {}
        }
    }

    async fn send_response(&mut self, id: &Value, result: RpcResult, fault: Option<ResponseFault>) {
        let method = self.contract.agent_request_method(id).unwrap_or_default();
        let result = self.editor.take_replaced_result(method).map_or(result, Ok);
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        match (result, fault) {
            (_, Some(ResponseFault::Silence)) => return,
            (_, Some(ResponseFault::Null)) => response["result"] = Value::Null,
            (Ok(result), _) => response["result"] = result,
            (Err(error), _) => response["error"] = error,
        }
        let line = response.to_string();
        if fault == Some(ResponseFault::Late) {
            return self.delayed.push(line);
        }
        self.send_line(&line).await;
        if fault == Some(ResponseFault::Twice) {
            self.send_line(&line).await;
        }
    }
}

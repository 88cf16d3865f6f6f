//! How the fake editor answers what the agent asks of it, well or badly.

use serde_json::{Value, json};

use super::editor::{Odd, Served, error};
use super::{Answered, End, FakeClient};

impl FakeClient {
    pub(super) async fn decide(&mut self, message: &Value) {
        let options = message["params"]["options"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&str> = options.iter().filter_map(|option| option["optionId"].as_str()).collect();
        let title = message["params"]["toolCall"]["title"].as_str().unwrap_or_default();
        let answer = self.answers.pop_front().unwrap_or_else(|| "allow_once".into());
        self.say(format!("? {title} [{}] -> {answer}", ids.join(", ")));
        let odd = Odd::parse(&answer);
        let answered = match (answer.as_str(), odd) {
            (_, Some(Odd::Error)) => Err(error(-32603, "the dialog broke")),
            ("cancelled", _) => Ok(json!({"outcome": {"outcome": "cancelled"}})),
            (_, Some(_)) => Ok(json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})),
            (chosen, None) => Ok(json!({"outcome": {"outcome": "selected", "optionId": chosen}})),
        };
        self.answer(&message["id"], answered, odd).await;
    }

    /// Fills in a form: what is on offer into the property that offers it, anything else into the one that takes text.
    pub(super) async fn fill_in(&mut self, message: &Value) {
        self.check_offered(self.editor.unoffered_call("elicitation/create"));
        let params = &message["params"];
        let properties = params["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let choice = properties.iter().find(|(_, property)| property["oneOf"].is_array());
        let offered = choice.and_then(|(_, property)| property["oneOf"].as_array()).into_iter().flatten();
        let offered: Vec<&str> = offered.filter_map(|option| option["const"].as_str()).collect();
        let first = offered.first().copied().unwrap_or("declined");
        let answer = self.forms.pop_front().unwrap_or_else(|| first.to_owned());
        let asked = params["message"].as_str().unwrap_or_default();
        self.say(format!("? form {asked} [{}] -> {answer}", offered.join(", ")));
        let odd = Odd::parse(&answer);
        let words = properties.iter().find(|(_, property)| property.get("oneOf").is_none());
        let filled = if offered.contains(&answer.as_str()) { choice } else { words.or(choice) };
        let content = filled.map(|(name, _)| json!({ name: answer })).unwrap_or_default();
        let answered = match (answer.as_str(), odd) {
            (_, Some(Odd::Error)) => Err(error(-32603, "the dialog broke")),
            ("declined", _) => Ok(json!({"action": "decline"})),
            ("cancelled", _) => Ok(json!({"action": "cancel"})),
            (_, Some(_)) => Ok(json!({"action": "accept", "content": {}})),
            (_, None) => Ok(json!({"action": "accept", "content": content})),
        };
        self.answer(&message["id"], answered, odd).await;
    }

    pub(super) async fn serve(&mut self, method: &str, message: &Value) {
        self.check_offered(self.editor.unoffered_call(method));
        let odd = self.editor.take_odd(method);
        let id = &message["id"];
        if let Some(odd @ (Odd::Error | Odd::Null | Odd::Silence)) = odd {
            self.say(format!("> {method} -> {}", odd.name()));
            return self.answer(id, Err(error(-32603, "the editor broke")), Some(odd)).await;
        }
        let (line, served) = self.editor.serve(method, &message["params"]);
        match (line, odd) {
            (Some(line), None) => self.say(line),
            (line, Some(odd)) => {
                self.say(format!("{} -> {}", line.unwrap_or(format!("> {method}")), odd.name()));
            }
            (None, None) => {}
        }
        match served {
            Served::Now(answered) => self.answer(id, answered, odd).await,
            Served::Later(ended) => {
                self.waiting.insert(id.to_string(), odd);
                let (told, id) = (self.ended.clone(), id.clone());
                // Nobody hears it when the client is gone.
                tokio::spawn(async move { drop(told.send((id, ended.await)).await) });
            }
        }
    }

    pub(super) async fn tell_end(&mut self, (id, status): End) {
        if let Some(odd) = self.waiting.remove(&id.to_string()) {
            self.answer(&id, Ok(status), odd).await;
        }
    }

    pub(super) async fn hear_taken_back(&mut self, id: &Value) {
        match self.contract.asked(id).unwrap_or_default().to_owned().as_str() {
            "session/request_permission" | "elicitation/create" => self.say("< takes its question back"),
            // A client that waits for a command can stop to wait; everything else is done at once.
            "terminal/wait_for_exit" if self.waiting.remove(&id.to_string()).is_some() => {
                self.answer(id, Err(error(-32800, "Request cancelled")), None).await;
            }
            _ => {}
        }
    }

    async fn answer(&mut self, id: &Value, answered: Answered, odd: Option<Odd>) {
        let method = self.contract.asked(id).unwrap_or_default();
        let answered = self.editor.take_misshapen(method).map_or(answered, Ok);
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        match (answered, odd) {
            (_, Some(Odd::Silence)) => return,
            (_, Some(Odd::Null)) => response["result"] = Value::Null,
            (Ok(result), _) => response["result"] = result,
            (Err(error), _) => response["error"] = error,
        }
        let line = response.to_string();
        if odd == Some(Odd::Late) {
            return self.late.push(line);
        }
        self.send_line(&line).await;
        if odd == Some(Odd::Twice) {
            self.send_line(&line).await;
        }
    }
}

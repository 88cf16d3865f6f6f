//! Announces the results of tasks to the user and the model.

use crow_acp::{PromptResult, ResponseSender, TurnScope};
use crow_core::{SessionUpdate, TurnEnd, to_sentence};

use crate::session::{DriverState, SessionDriver, WaitingPrompt};
use crate::turn_job::TurnWork;

impl SessionDriver {
    /// Looks for tasks that ended while the session was closed; the user gets a notice, the model the result with the
    /// next prompt.
    pub(super) fn announce_pending_mail(&self) {
        let (children, client, id) = (self.children.clone(), self.client.clone(), self.id.clone());
        tokio::spawn(async move {
            let count_text = match children.recover_tasks().await {
                0 => return,
                1 => "A task ended while this session was closed".to_owned(),
                n => format!("{n} tasks ended while this session was closed"),
            };
            client.send_update(
                &id,
                SessionUpdate::Notice(format!(
                    "{count_text}. The model gets the result with your next prompt."
                )),
            );
        });
    }

    /// Starts a turn for new mail, unless a turn is running, which finds it.
    pub(super) fn on_mail(&mut self) {
        if matches!(self.state, DriverState::Idle(_))
            && self.close_responders.is_empty()
            && self.children.has_pending_mail()
        {
            let (client, id) = (self.client.clone(), self.id.clone());
            let answer = ResponseSender::new(move |result: Result<PromptResult, _>| {
                if let Ok(TurnEnd::Failed(failure)) | Err(failure) = result.map(|result| result.end) {
                    client.send_update(&id, SessionUpdate::Notice(to_sentence(&failure.message)));
                }
            });
            self.begin_or_wait(WaitingPrompt {
                prompt_id: None,
                work: TurnWork::Mail,
                turn_scope: TurnScope::WithoutTasks,
                answer,
            });
        }
    }
}

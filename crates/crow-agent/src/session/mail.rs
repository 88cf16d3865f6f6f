//! Announces the results of tasks to the user and the model.

use crow_acp::{PromptResult, ResponseSender, TurnScope};
use crow_core::{SessionUpdate, TurnEnd, to_sentence};

use crate::session::{DriverState, SessionDriver, WaitingPrompt};
use crate::turn_job::TurnWork;

impl SessionDriver {
    /// Looks for tasks that ended while the session was closed or go on elsewhere; the user gets a notice, the model the
    /// results with the next prompt or when they come.
    pub(super) fn announce_pending_mail(&self) {
        let (children, client, id) = (self.children.clone(), self.client.clone(), self.id.clone());
        tokio::spawn(async move {
            let recovered = children.recover_tasks().await;
            let ended = match recovered.n_deliveries {
                0 => None,
                1 => Some("A task ended while this session was closed".to_owned()),
                n => Some(format!("{n} tasks ended while this session was closed")),
            };
            let ended = ended.map(|text| format!("{text}. The model gets the result with your next prompt."));
            let resumed = match recovered.n_resumed {
                0 => None,
                1 => Some(
                    "A task on another machine is taken up again. The model gets its result when it ends."
                        .to_owned(),
                ),
                n => Some(format!(
                    "{n} tasks on other machines are taken up again. The model gets their results when they end."
                )),
            };
            for text in ended.into_iter().chain(resumed) {
                client.send_update(&id, SessionUpdate::Notice(text));
            }
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

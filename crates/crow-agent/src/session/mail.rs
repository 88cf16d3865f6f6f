//! What came of tasks, on its way to the person and to the model.

use crow_acp::{Answer, Until};
use crow_core::{TurnEnd, Update};

use crate::session::{Session, State, Waiting};
use crate::turn_job::Work;

impl Session {
    /// Looks for what came of tasks while nobody had the session open; the person hears of it, the model with the next
    /// prompt.
    pub(super) fn look_for_mail(&self) {
        let (children, client, id) = (self.children.clone(), self.client.clone(), self.id.clone());
        tokio::spawn(async move {
            let told = match children.recover().await {
                0 => return,
                1 => "A task ended while this session was closed".to_owned(),
                n => format!("{n} tasks ended while this session was closed"),
            };
            client.tell(&id, Update::Notice(format!("{told}; the model hears of it with your next prompt.")));
        });
    }

    /// Has the model hear of what came into the mailbox, unless a turn runs, which finds it there.
    pub(super) fn on_mail(&mut self) {
        if matches!(self.state, State::Idle(_)) && self.closing.is_empty() && self.children.has_news() {
            let (client, id) = (self.client.clone(), self.id.clone());
            let answer = Answer::new(move |end| {
                if let Ok(TurnEnd::Failed(failure)) | Err(failure) = end {
                    client.tell(&id, Update::Notice(failure.sentence));
                }
            });
            self.begin_or_wait(Waiting { ticket: None, work: Work::Mail, until: Until::Answered, answer });
        }
    }
}

//! The terminal while another program has it: an editor, or the shell after Ctrl-Z.

use std::{io, time::Instant};

use super::AppLoop;
use crate::{
    app::{event::AppEvent, run::tasks::ClientHost, update::update},
    screen::InputReader,
};

impl<H: ClientHost> AppLoop<H> {
    /// Runs the editor, which has the terminal meanwhile.
    pub(super) fn edit_text(&mut self, text: String) -> io::Result<()> {
        self.release_terminal()?;
        self.tasks.edit_text(text);
        Ok(())
    }

    /// Waits until an open editor has left the terminal, and stores what was written; a request to end ends it.
    pub(in crate::app::run) async fn wait_for_editor(&mut self) -> io::Result<()> {
        if self.input.is_some() {
            return Ok(());
        }
        let mut is_ending = false;
        let closed = loop {
            tokio::select! {
                biased;
                () = self.terminate.cancelled(), if !is_ending => {
                    is_ending = true;
                    self.tasks.end_editor();
                }
                event = self.events.recv() => if let None | Some(AppEvent::EditorClosed(_)) = event {
                    break event;
                }
            }
        };
        for event in closed.into_iter().chain([AppEvent::Terminate]) {
            for command in update(&mut self.state, event, Instant::now()) {
                self.execute(command)?;
            }
        }
        Ok(())
    }

    /// Stops the process until the shell continues it.
    pub(super) fn stop_process(&mut self) -> io::Result<()> {
        self.release_terminal()?;
        let stopped = crow_process::suspend_process();
        self.take_terminal()?;
        stopped
    }

    fn release_terminal(&mut self) -> io::Result<()> {
        self.screen.suspend()?;
        self.input = None;
        Ok(())
    }

    pub(super) fn take_terminal(&mut self) -> io::Result<()> {
        if self.input.is_none() {
            self.screen.resume()?;
            // The window has the title from before.
            self.title.clear();
            self.input = Some(InputReader::start(&self.tty)?);
        }
        Ok(())
    }
}

//! Why a request of the workflow ends before its work is done.

use crow_core::{Failure, TurnEnd};

/// The early end of a request.
#[derive(Debug)]
pub enum WorkflowExit {
    /// The request was refused, for a reason that the user reads.
    Refused(String),
    /// The turn ended: the user cancelled it, or a hook rejected the prompt.
    Ended(TurnEnd),
    /// The turn failed, such as by an error of the store.
    Failed(Failure),
}

impl From<Failure> for WorkflowExit {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl WorkflowExit {
    /// Converts the end of a turn that a hook may have ended.
    pub(crate) fn unless_ended(end: Option<TurnEnd>) -> Result<(), Self> {
        end.map_or(Ok(()), |end| Err(Self::Ended(end)))
    }
}

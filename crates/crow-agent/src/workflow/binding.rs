//! The feature that a session is bound to, as stored.

use crow_core::SessionId;
use crow_speckit::WorkflowCommand;
use crow_store::{SpeckitRow, StoreError};
use crow_workflow::FeatureBinding;

use crate::runtime::AgentRuntime;

/// Reads the feature that a session is bound to.
pub(super) async fn feature_binding(
    runtime: &AgentRuntime,
    session: &SessionId,
) -> Result<Option<FeatureBinding>, StoreError> {
    let row = runtime.store.speckit_state(session).await?;
    Ok(row.map(|SpeckitRow { project_root, feature_dir, last_command, .. }| FeatureBinding {
        project_root,
        feature_dir,
        last_command: last_command.as_deref().and_then(WorkflowCommand::parse),
    }))
}

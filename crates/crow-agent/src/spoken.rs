//! What the person said, as the model gets it: images that are only named are read here.

use crow_acp::Spoken;
use crow_core::{Failure, FailureKind, Part, link};

/// Reads what has to be read of a prompt.
pub(crate) async fn parts(said: Vec<Spoken>) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::with_capacity(said.len());
    for spoken in said {
        parts.push(match spoken {
            Spoken::Part(part) => part,
            Spoken::ImageAt { uri } => image(uri).await?,
        });
    }
    Ok(parts)
}

async fn image(uri: String) -> Result<Part, Failure> {
    let refuse = |why: &str| {
        let why = format!("The image {uri} could not be read: {why}. Send its bytes instead.");
        Failure::new(FailureKind::InvalidValue, why)
    };
    let (path, _) = link::file(&uri).ok_or_else(|| refuse("only file:// addresses are"))?;
    let read = tokio::task::spawn_blocking(move || crow_tools::read_image(path.as_ref())).await;
    read.map_err(|error| refuse(&error.to_string()))?.map_err(|why| refuse(&why))
}

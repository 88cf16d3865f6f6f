//! Converts a prompt for the model: images given by path are read here, images on the web become links.

use crow_acp::PromptBlock;
use crow_core::{ContentPart, Failure, FailureKind, escape_hidden_start, link, read_data_url};

use crate::read::read_image as read_image_file;

/// Characters of an address in a message: a `data:` address may be megabytes long.
const URI_CHARS_MAX: usize = 200;

/// Loads the content of a prompt.
pub async fn load_prompt_parts(content: Vec<PromptBlock>) -> Result<Vec<ContentPart>, Failure> {
    let mut parts = Vec::with_capacity(content.len());
    for block in content {
        parts.push(match block {
            PromptBlock::Part(part) => part,
            PromptBlock::ImageUri { uri, mime } => match web_image(uri, mime) {
                Ok(link) => link,
                Err(uri) => read_image(uri).await?,
            },
        });
    }
    Ok(parts)
}

/// Converts an image on the web into a link, which is fetched later; returns any other address unchanged.
fn web_image(uri: String, mime: String) -> Result<ContentPart, String> {
    let mime = if link::is_web_image(&uri, Some(&mime)) { mime } else { link::ANY_IMAGE.to_owned() };
    match link::is_web_image(&uri, Some(&mime)) {
        true => Ok(ContentPart::Link { uri, name: String::new(), mime: Some(mime) }),
        false => Err(uri),
    }
}

async fn read_image(uri: String) -> Result<ContentPart, Failure> {
    let to_failure = |reason: &str| {
        let uri = escape_hidden_start(&uri, URI_CHARS_MAX);
        let reason = format!("could not read the image {uri}: {reason}; attach its content instead");
        Failure::new(FailureKind::InvalidValue, reason)
    };
    if let Some(image) = read_data_url(&uri) {
        return image.map_err(|problem| to_failure(&format!("it {problem}")));
    }
    let (path, _) = link::parse_file_link(&uri)
        .ok_or_else(|| to_failure("only file://, data:, https:// and http:// addresses are supported"))?;
    let read_result = tokio::task::spawn_blocking(move || read_image_file(path.as_ref())).await;
    read_result.map_err(|error| to_failure(&error.to_string()))?.map_err(|reason| to_failure(&reason))
}

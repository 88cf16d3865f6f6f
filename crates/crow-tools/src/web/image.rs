//! An image that a prompt links by its address, fetched as with `web_fetch`.

use crow_core::{ContentPart, image_type};
use tokio_util::sync::CancellationToken;

use super::{address::WebAddress, context::WebContext, fetch::status_text};
use crate::{
    read::{IMAGE_BYTES_MAX, image_part},
    tool_error::{CANCELLED, ToolError},
};

impl WebContext {
    /// Fetches an image. Its bytes decide about its type, not the server's content type.
    pub(crate) async fn fetch_image(
        &self,
        url: &str,
        cancel: &CancellationToken,
    ) -> Result<ContentPart, ToolError> {
        let address = WebAddress::parse(url, &self.client.private_hosts)?;
        let fetched = cancel.run_until_cancelled(self.with_timeout(self.image_at(&address))).await;
        fetched.unwrap_or_else(|| Err(ToolError(CANCELLED.to_owned())))
    }

    async fn image_at(&self, address: &WebAddress) -> Result<ContentPart, ToolError> {
        let response = self.client.get(address).await?;
        let (status, content_type) = (response.status(), response.content_type());
        if !status.is_success() {
            return Err(ToolError(format!("the server answered {}", status_text(status))));
        }
        let body = response.read_body(IMAGE_BYTES_MAX).await?;
        if image_type(&body.bytes).is_none() {
            let declared_type = if content_type.is_empty() { "not given" } else { &content_type };
            let reason = format!("it is not a PNG, JPEG, GIF or WebP (its content type is {declared_type})");
            return Err(ToolError(reason));
        }
        if body.is_truncated {
            return Err(ToolError(format!("the image has more than {IMAGE_BYTES_MAX} bytes")));
        }
        image_part(&body.bytes).map_err(ToolError)
    }
}

//! An image that a prompt names by its address, fetched as `web_fetch` does.

use crow_core::{ContentPart, image_type};
use tokio_util::sync::CancellationToken;

use super::{WebContext, address::WebAddress, fetch::status_text};
use crate::{
    read::{IMAGE_BYTES_MAX, image_part},
    tool::{CANCELLED, ToolError},
};

impl WebContext {
    /// Fetches an image. What its server calls it does not count, its bytes do.
    pub(crate) async fn fetch_image(
        &self,
        url: &str,
        cancel: &CancellationToken,
    ) -> Result<ContentPart, ToolError> {
        let address = WebAddress::parse(url, &self.network.own)?;
        let fetched = cancel.run_until_cancelled(self.with_timeout(self.image_at(&address))).await;
        fetched.unwrap_or_else(|| Err(ToolError(CANCELLED.to_owned())))
    }

    async fn image_at(&self, address: &WebAddress) -> Result<ContentPart, ToolError> {
        let answer = self.network.get(address).await?;
        let (status, content_type) = (answer.status(), answer.content_type());
        if !status.is_success() {
            return Err(ToolError(format!("the server answered {}", status_text(status))));
        }
        let body = answer.read_body(IMAGE_BYTES_MAX).await?;
        if image_type(&body.bytes).is_none() {
            let named = if content_type.is_empty() { "nothing" } else { &content_type };
            let why = format!("its bytes are no PNG, JPEG, GIF or WebP (its server calls it {named})");
            return Err(ToolError(why));
        }
        if body.is_cut {
            return Err(ToolError(format!("the image has more than {IMAGE_BYTES_MAX} bytes")));
        }
        image_part(&body.bytes).map_err(ToolError)
    }
}

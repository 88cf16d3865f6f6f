//! What a reply costs. Pure: tokens and prices in, an amount out; it knows neither where prices come from nor what
//! becomes of the amount.

use crow_core::TokenUsage;

use crate::ModelPrice;

/// Billionths of a dollar that a token costs for each dollar that a million of them costs.
const BILLIONTHS: f64 = 1_000.0;

/// Puts a price on what a reply took, unless its provider has said what it cost.
pub(crate) fn apply_price(usage: TokenUsage, price: Option<ModelPrice>) -> TokenUsage {
    TokenUsage { cost: usage.cost.or_else(|| price?.cost_for(usage)), ..usage }
}

impl ModelPrice {
    /// What so many tokens cost, in billionths of a US dollar; nothing where the price is none.
    pub fn cost_for(self, usage: TokenUsage) -> Option<u64> {
        // Whatever a server says, each token is paid for once.
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let parts = [
            (usage.input - cached - written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, self.cache_written.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        if parts.iter().any(|(_, dollars)| !dollars.is_finite() || *dollars < 0.0) {
            return None;
        }
        let cost: f64 = parts.iter().map(|(n_tokens, dollars)| *n_tokens as f64 * dollars * BILLIONTHS).sum();
        // The conversion saturates.
        Some(cost.round() as u64)
    }
}

#[cfg(test)]
mod tests;

//! Well-known providers and the models to choose there: data and the choice of the newest model. Pure.

use std::cmp::Reverse;

use crow_model::{ListedModel, ModelApi, ModelPrice};

/// A provider that requires only a key.
pub(super) struct KnownProvider {
    pub(super) name: &'static str,
    pub(super) base_url: &'static str,
    pub(super) api: ModelApi,
    /// Variables of the environment that may hold its key.
    pub(super) key_variables: &'static [&'static str],
    /// Names of models to choose, the preferred first; `{version}` stands for a version, of which the newest wins.
    pub(super) families: &'static [&'static str],
}

/// Of several providers with keys, the first gives the default model.
pub(super) const KNOWN_PROVIDERS: [KnownProvider; 10] = [
    KnownProvider {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        api: ModelApi::MESSAGES,
        key_variables: &["ANTHROPIC_API_KEY"],
        families: &["claude-sonnet-{version}"],
    },
    KnownProvider {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        api: ModelApi::RESPONSES,
        key_variables: &["OPENAI_API_KEY"],
        families: &["gpt-{version}-sol", "gpt-{version}"],
    },
    KnownProvider {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        api: ModelApi::CHAT,
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        families: &["gemini-{version}-flash"],
    },
    KnownProvider {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        api: ModelApi::CHAT,
        key_variables: &["OPENROUTER_API_KEY"],
        families: &["anthropic/claude-sonnet-{version}"],
    },
    KnownProvider {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        api: ModelApi::CHAT,
        key_variables: &["XAI_API_KEY"],
        families: &["grok-{version}"],
    },
    KnownProvider {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        api: ModelApi::CHAT,
        key_variables: &["DEEPSEEK_API_KEY"],
        families: &["deepseek-v{version}-pro", "deepseek-chat"],
    },
    KnownProvider {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        api: ModelApi::CHAT,
        key_variables: &["MISTRAL_API_KEY"],
        families: &["mistral-large-{version}", "mistral-large-latest"],
    },
    KnownProvider {
        name: "zai",
        base_url: "https://api.z.ai/api/paas/v4",
        api: ModelApi::CHAT,
        key_variables: &["ZAI_API_KEY"],
        families: &["glm-{version}"],
    },
    KnownProvider {
        name: "dashscope",
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        api: ModelApi::CHAT,
        key_variables: &["DASHSCOPE_API_KEY"],
        families: &["qwen{version}-max", "qwen-max"],
    },
    KnownProvider {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        api: ModelApi::CHAT,
        key_variables: &["GROQ_API_KEY"],
        families: &["openai/gpt-oss-120b"],
    },
];

/// Facts about a model that its server does not report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KnownModel {
    /// Context window in tokens.
    pub(super) window: u64,
    pub(super) reads_images: bool,
    pub(super) price: Option<ModelPrice>,
}

/// A table with the columns that its second line names.
const KNOWN_MODELS: &str = include_str!("known_models.tsv");

/// The digits of a date, or of a year that begins one; no version has so many.
const DATE_DIGITS_MIN: usize = 4;

impl KnownProvider {
    /// Finds a provider by its name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.name == name)
    }

    /// Finds the provider at an address. Another server may have other models under the same names.
    pub(super) fn at(base_url: &str) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.base_url == base_url.trim_end_matches('/'))
    }

    /// Returns what is known of one of its models.
    pub(super) fn find_model(&self, model: &str) -> Option<KnownModel> {
        let model = model.strip_prefix("models/").unwrap_or(model);
        KNOWN_MODELS.lines().find_map(|line| {
            let mut columns = line.split('\t');
            let is_row = columns.next() == Some(self.name) && columns.next() == Some(model);
            if is_row { parse_known_model(columns) } else { None }
        })
    }

    /// Returns the newest model of the provider's families.
    pub(super) fn newest_model<'a>(&self, models: &[&'a ListedModel]) -> Option<&'a ListedModel> {
        // Among models with a date, a version such as 4.20 may be older than 4.7.
        let ranks: Vec<(ModelRank, &ListedModel)> = models
            .iter()
            .flat_map(|model| {
                let families = self.families.iter().enumerate();
                families.filter_map(|(n, family)| Some((ModelRank::new(model, family, n)?, *model)))
            })
            .collect();
        let are_dated = ranks.iter().all(|(rank, _)| rank.created.is_some());
        let without_date =
            |rank: ModelRank| ModelRank { created: rank.created.filter(|_| are_dated), ..rank };
        ranks
            .into_iter()
            .map(|(rank, model)| (without_date(rank), model))
            .max_by_key(|(rank, _)| rank.clone())
            .map(|(_, model)| model)
    }
}

/// The place of a model among those of its families; the greatest is chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ModelRank {
    has_version: bool,
    created: Option<u64>,
    version: Vec<u32>,
    /// Names with a date are the same models under a longer name.
    is_undated: bool,
    family: Reverse<usize>,
}

impl ModelRank {
    fn new(model: &ListedModel, family: &str, n: usize) -> Option<Self> {
        let name = model.id.strip_prefix("models/").unwrap_or(&model.id);
        let (created, family_rank) = (model.created, Reverse(n));
        let Some((before, after)) = family.split_once("{version}") else {
            let rank = Self {
                has_version: false,
                created,
                version: Vec::new(),
                is_undated: true,
                family: family_rank,
            };
            return (name == family).then_some(rank);
        };
        let text = name.strip_prefix(before)?.strip_suffix(after)?;
        let parts: Vec<&str> = text.split(['.', '-']).collect();
        let n_version = parts.iter().take_while(|part| part.len() < DATE_DIGITS_MIN).count();
        let numbers: Option<Vec<u32>> = parts.iter().map(|part| part.parse().ok()).collect();
        let version = numbers?.into_iter().take(n_version).collect();
        Some(Self {
            has_version: true,
            created,
            version,
            is_undated: n_version == parts.len(),
            family: family_rank,
        })
    }
}

fn parse_known_model<'a>(mut columns: impl Iterator<Item = &'a str>) -> Option<KnownModel> {
    let window = columns.next()?.parse().ok()?;
    let reads_images = columns.next()? == "yes";
    let mut dollars = columns.map(|column| column.parse::<f64>().ok());
    let (input, output) = (dollars.next().flatten(), dollars.next().flatten());
    let (cached, cache_written) = (dollars.next().flatten(), dollars.next().flatten());
    let price = input.zip(output).map(|(input, output)| ModelPrice { input, output, cached, cache_written });
    Some(KnownModel { window, reads_images, price })
}

#[cfg(test)]
mod tests {
    use crow_model::ListedModel;
    use expect_test::expect;

    use super::{KNOWN_MODELS, KNOWN_PROVIDERS, KnownProvider, parse_known_model};

    fn newest(provider: &str, models: &[(&str, u64)]) -> String {
        let models: Vec<ListedModel> = models
            .iter()
            .map(|&(id, created)| ListedModel {
                id: id.to_owned(),
                created: (created > 0).then_some(created),
                ..ListedModel::default()
            })
            .collect();
        let provider = KnownProvider::find(provider).unwrap();
        let newest = provider.newest_model(&models.iter().collect::<Vec<_>>());
        newest.map_or("none", |model| &model.id).to_owned()
    }

    #[test]
    fn newest_model_of_the_families_wins() {
        let table = [
            ("openai", vec![("davinci-002", 0), ("gpt-4-0613", 0), ("gpt-3.5-turbo", 0), ("gpt-5", 0)]),
            (
                "openai",
                vec![
                    ("gpt-6-sol", 0),
                    ("gpt-6.1-sol", 0),
                    ("gpt-6.1-sol-2026-10-01", 0),
                    ("gpt-5.6", 0),
                    ("gpt-9-mini", 0),
                ],
            ),
            ("openai", vec![("gpt-5.6", 0), ("gpt-5.6-sol", 0)]),
            ("openai", vec![("o3", 0), ("babbage-002", 0)]),
            (
                "anthropic",
                vec![
                    ("claude-sonnet-4-5-20250929", 0),
                    ("claude-sonnet-4-20250514", 0),
                    ("claude-opus-5", 0),
                ],
            ),
            (
                "gemini",
                vec![
                    ("models/gemini-3.8-flash", 0),
                    ("models/gemini-3.8-flash-lite", 0),
                    ("models/gemini-3-flash-preview", 0),
                ],
            ),
            ("xai", vec![("grok-4.20", 10), ("grok-4.7", 20), ("grok-4.20-reasoning", 30)]),
            ("xai", vec![("grok-4.6", 0), ("grok-4.7", 20)]),
            ("mistral", vec![("mistral-large-latest", 9), ("mistral-large-2512", 5), ("mistral-large-4", 7)]),
            ("deepseek", vec![("deepseek-chat", 0), ("deepseek-reasoner", 0)]),
        ];
        let lines: String = table
            .iter()
            .map(|(provider, models)| format!("{provider}: {}\n", newest(provider, models)))
            .collect();
        expect![[r#"
            openai: gpt-5
            openai: gpt-6.1-sol
            openai: gpt-5.6-sol
            openai: none
            anthropic: claude-sonnet-4-5-20250929
            gemini: models/gemini-3.8-flash
            xai: grok-4.7
            xai: grok-4.7
            mistral: mistral-large-4
            deepseek: deepseek-chat
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn table_of_models_is_complete() {
        for line in KNOWN_MODELS.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let provider = columns.next().unwrap();
            assert!(KnownProvider::find(provider).is_some(), "{line}");
            assert_eq!(columns.clone().count(), 7, "{line}");
            assert!(parse_known_model(columns.skip(1)).is_some(), "{line}");
        }
        let known = KNOWN_PROVIDERS[0].find_model("claude-sonnet-5-5").unwrap();
        assert_eq!((known.window, known.reads_images, known.price.unwrap().output), (1_000_000, true, 10.0));
        assert_eq!(KNOWN_PROVIDERS[0].find_model("gpt-5"), None);
    }
}

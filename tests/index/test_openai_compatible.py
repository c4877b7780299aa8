"""An endpoint may be slow, busy, wrong or hostile; what it says is checked."""

import json
import math
import socket
import traceback
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from perdure.errors import EndpointError, InvalidValueError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.openai_embedder import Endpoint, OpenAIEmbedder
from tests.index import endpoints
from tests.index.endpoints import DIMENSION, Answer, Server, says, serving

KEY = "sk-very-secret-1234"
TEXTS = ["tabs", "rivers", "moths"]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    """Return the list of all waits; none of them takes any time."""
    return []


@pytest.fixture
def endpoint(server: Server, waits: list[float]) -> Endpoint:
    return Endpoint(server.base_url, KEY, timeout=5, sleep=waits.append)


@pytest.fixture
def embedder(endpoint: Endpoint) -> OpenAIEmbedder:
    return OpenAIEmbedder(endpoint, "small")


def refusal(embedder: OpenAIEmbedder) -> str:
    """Return what the error says, all of which may be logged."""
    with pytest.raises(EndpointError) as caught:
        embedder.embed_texts(TEXTS)
    answer = "".join(traceback.format_exception(caught.value))
    assert KEY not in answer
    assert "Fix: " in str(caught.value)
    return str(caught.value)


def data(*embeddings: object) -> bytes:
    rows = [{"index": at, "embedding": each} for at, each in enumerate(embeddings)]
    return json.dumps({"data": rows}).encode()


# ---------------------------------------------------------------- asking
def test_it_asks_for_the_embeddings_of_a_model(embedder: OpenAIEmbedder, server: Server) -> None:
    embedder.embed_texts(TEXTS)

    assert server.paths == ["/v1/embeddings"]
    assert server.keys == [f"Bearer {KEY}"]
    assert server.asked == [{"model": "small", "input": TEXTS, "encoding_format": "float"}]


def test_without_a_key_none_is_sent(server: Server) -> None:
    OpenAIEmbedder(Endpoint(f"{server.base_url}/"), "small").embed_texts(TEXTS)

    assert server.paths == ["/v1/embeddings"]
    assert server.keys == [None]


def test_a_dimension_that_is_wanted_is_asked_for(endpoint: Endpoint, server: Server) -> None:
    embedder = OpenAIEmbedder(endpoint, "small", dimension=DIMENSION)

    assert embedder.dimension == DIMENSION
    assert server.asked == []
    embedder.embed_texts(TEXTS)
    assert server.asked[0]["dimensions"] == DIMENSION


def test_many_texts_are_sent_in_batches_and_each_only_once(
    endpoint: Endpoint, server: Server
) -> None:
    texts = [f"note {number}" for number in range(10)]

    vectors = OpenAIEmbedder(endpoint, "small", batch=4).embed_texts([*texts, *texts])

    assert [len(asked["input"]) for asked in server.asked] == [4, 4, 2]
    assert vectors[:10] == vectors[10:]


def test_an_empty_text_is_sent_as_a_space(embedder: OpenAIEmbedder, server: Server) -> None:
    embedder.embed_texts(["", "tabs"])

    assert server.asked[0]["input"] == [" ", "tabs"]


def test_parameters_need_no_request(embedder: OpenAIEmbedder, server: Server) -> None:
    assert embedder.parameters == {
        "model": "small",
        "endpoint": server.base_url,
        "dimension": None,
    }
    assert server.asked == []


def test_nobody_sees_the_key(embedder: OpenAIEmbedder, endpoint: Endpoint) -> None:
    assert KEY not in f"{endpoint!r} {endpoint} {embedder!r} {embedder} {embedder.parameters}"


# ---------------------------------------------------------------- answers
def test_vectors_are_in_the_order_of_the_texts_whatever_the_order_of_the_answer(
    embedder: OpenAIEmbedder, server: Server
) -> None:
    server.answers.append(endpoints.backwards)

    vectors = embedder.embed_texts(TEXTS)

    for vector, expected in zip(
        vectors, HashingEmbedder(DIMENSION).embed_texts(TEXTS), strict=True
    ):
        assert vector == pytest.approx(expected)


def test_vectors_are_brought_to_unit_length(embedder: OpenAIEmbedder, server: Server) -> None:
    server.answers.append(says(data([3, 4], [0, -1e-9], [1e200, 1e200])))

    vectors = embedder.embed_texts(TEXTS)

    assert vectors == [[0.6, 0.8], [0, -1], pytest.approx([math.sqrt(0.5)] * 2)]


def third(embedding: object) -> bytes:
    """Return an answer of which only the third embedding may be wrong."""
    return data([1.0], [1.0], embedding)


def indexed(index: object) -> bytes:
    """Return an answer of which only the third index may be wrong."""
    return third([1.0]).replace(b'"index": 2', f'"index": {json.dumps(index)}'.encode())


GARBAGE = {
    "nothing": b"",
    "a web page": b"<html>Welcome to the hotel</html>",
    "no UTF-8": b"\xff\xfe",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "too deep": b"[" * 100_000,
    "null as data": b'{"data": null}',
    "numbers as data": b'{"data": [1, 2, 3]}',
    "an object as data": b'{"data": {"0": [1]}}',
    "an error": b'{"error": {"message": "no"}}',
    "none": data(),
    "one too few": data([1.0], [1.0]),
    "one too many": data([1.0], [1.0], [1.0], [1.0]),
    "an empty embedding": third([]),
    "null as embedding": third(None),
    "base64": third("AAAAAA=="),
    "a matrix": third([[1.0]]),
    "a text as number": third(["1.0"]),
    "true as number": third([True]),
    "null as number": third([None]),
    "not a number": third([math.nan]),
    "infinity": third([math.inf]),
    "too large a float": third([1.5]).replace(b"1.5", b"1e999"),
    "too large a number": third([10**400]),
    "no direction": third([0.0]),
    "another dimension": third([1.0, 2.0]),
    "too many dimensions": third([1.0] * 65_537),
    "an index twice": indexed(1),
    "an index too high": indexed(3),
    "a negative index": indexed(-1),
    "a text as index": indexed("2"),
    "a float as index": indexed(2.0),
    "a list as index": indexed([2]),
    "true as index": third([1.0]).replace(b'"index": 1', b'"index": true'),
    "no index": third([1.0]).replace(b'"index": 2, ', b""),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_an_error_and_not_asked_for_again(
    embedder: OpenAIEmbedder, server: Server, content: bytes
) -> None:
    server.answers.append(says(content))

    assert server.base_url in refusal(embedder)
    assert len(server.asked) == 1


def test_garbage_does_not_settle_the_dimension(embedder: OpenAIEmbedder, server: Server) -> None:
    server.answers.append(says(data([1.0], [1.0], [1.0, 2.0])))
    refusal(embedder)

    assert embedder.dimension == DIMENSION


def test_another_dimension_than_before_is_an_error(
    embedder: OpenAIEmbedder, server: Server
) -> None:
    embedder.embed_texts(TEXTS)
    server.answers.append(says(data([1.0], [1.0], [1.0])))

    assert f"[1] numbers where {DIMENSION} are expected" in refusal(embedder)


def test_another_dimension_than_wanted_is_an_error(endpoint: Endpoint) -> None:
    assert "where 8 are" in refusal(OpenAIEmbedder(endpoint, "small", dimension=8))


# ---------------------------------------------------------------- trouble
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_endpoint_is_asked_again_after_ever_longer_waits(
    embedder: OpenAIEmbedder, server: Server, waits: list[float], status: int
) -> None:
    server.answers.extend([says(b"busy", status)] * 3)

    assert len(embedder.embed_texts(TEXTS)) == 3
    assert waits == [1, 2, 4]


def test_after_five_attempts_it_gives_up(
    embedder: OpenAIEmbedder, server: Server, waits: list[float]
) -> None:
    server.answers.extend([says(b"busy", 503)] * 9)

    assert "status 503" in refusal(embedder)
    assert waits == [1, 2, 4, 8]
    assert len(server.asked) == 5


def test_a_single_text_is_sent_once(
    embedder: OpenAIEmbedder, server: Server, waits: list[float]
) -> None:
    server.answers.extend([says(b"busy", 503)] * 9)

    with pytest.raises(EndpointError, match="status 503"):
        embedder.embed_texts(["what was it?"])

    assert waits == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("asked_for", "waited"),
    [("7", 7), ("86400", 60), ("-1", 1), ("soon", 1), ("Wed, 21 Oct 2026 07:28:00 GMT", 1)],
)
def test_it_waits_as_long_as_the_endpoint_asks_for_within_reason(
    embedder: OpenAIEmbedder, server: Server, waits: list[float], asked_for: str, waited: float
) -> None:
    server.answers.append(says(b"", 429, Retry_After=asked_for))

    embedder.embed_texts(TEXTS)

    assert waits == [waited]


@pytest.mark.parametrize(
    ("status", "fix"),
    [(400, "model"), (401, "API key"), (403, "API key"), (404, "base URL"), (413, "fewer texts")],
)
def test_a_refusal_is_final_and_says_how_to_mend_it(
    embedder: OpenAIEmbedder, server: Server, waits: list[float], status: int, fix: str
) -> None:
    server.answers.append(says(f"no: {KEY}".encode(), status, reason=f"No {KEY}"))

    answer = refusal(embedder)

    assert f"status {status}" in answer
    assert fix in answer
    assert waits == []


def test_the_key_is_sent_nowhere_else(embedder: OpenAIEmbedder, server: Server) -> None:
    with serving() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            server.answers.append(says(b"", status, Location=elsewhere.base_url))
            assert f"status {status}" in refusal(embedder)

        assert elsewhere.paths == []


@pytest.mark.parametrize(
    "answer",
    [
        endpoints.breaks_off,
        endpoints.breaks_off_a_chunk,
        endpoints.hangs_up,
        endpoints.is_no_server,
    ],
)
def test_a_connection_that_breaks_is_tried_again(
    embedder: OpenAIEmbedder, server: Server, waits: list[float], answer: Answer
) -> None:
    server.answers.append(answer)

    assert len(embedder.embed_texts(TEXTS)) == 3
    assert waits == [1]


def test_an_endpoint_that_is_not_there_is_an_error(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    nobody = Endpoint(f"http://127.0.0.1:{port}/v1", KEY, sleep=waits.append)

    assert "can't be reached" in refusal(OpenAIEmbedder(nobody, "small"))
    assert waits == []


def test_an_endpoint_that_never_answers_is_an_error(server: Server, waits: list[float]) -> None:
    server.answers.extend([endpoints.never] * 5)
    impatient = Endpoint(server.base_url, KEY, timeout=0.05, sleep=waits.append)

    assert "did not answer in time" in refusal(OpenAIEmbedder(impatient, "small"))


def test_an_answer_that_drips_is_cut_off(server: Server, waits: list[float]) -> None:
    server.answers.extend([endpoints.drips] * 5)
    seconds = count()
    patient = Endpoint(
        server.base_url, KEY, timeout=20, sleep=waits.append, clock=lambda: float(next(seconds))
    )

    assert "did not answer in time" in refusal(OpenAIEmbedder(patient, "small"))


def test_an_answer_without_end_is_cut_off(
    embedder: OpenAIEmbedder, server: Server, waits: list[float]
) -> None:
    server.answers.append(endpoints.floods)

    assert "longer than 64 MB" in refusal(embedder)
    assert waits == []


# ---------------------------------------------------------------- settings
@pytest.mark.parametrize(
    "url",
    [
        "",
        "/v1",
        "example.org",
        "file:///etc/passwd",
        "ftp://example.org",
        "http://",
        "http://[",
        "https://example.org:port/v1",
        "https://example.org/v1?key=1",
        "https://example.org/v1#1",
    ],
)
def test_an_invalid_endpoint_is_refused(url: str) -> None:
    with pytest.raises(InvalidValueError, match="https://host/v1"):
        Endpoint(url)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidValueError, match="API key") as caught:
        Endpoint(f"https://me:{KEY}@example.org/v1")

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r\nX-Evil: 1", f"{KEY} ", f"{KEY}é"])
def test_an_invalid_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidValueError, match="API key") as caught:
        Endpoint("https://example.org/v1", key)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("settings", [{"batch": 0}, {"batch": 513}, {"dimension": 0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(settings))):
        OpenAIEmbedder(Endpoint("https://example.org/v1"), "small", **settings)

"""Requests of somebody who means harm, over the wire, to a service with keys and pictures.

None is answered with 5xx, none makes the process end or grow, and nothing of what they carry is in
an answer, the log, or the audit trail.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import re
import struct
import zlib
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from faircal.production.serving.access import KeyRing
from tests.production.serving.running import say

D = 128
ARROW = "application/vnd.apache.arrow.stream"
#: Numbers and bytes that are nowhere unless something of a request is.
MARK = 0.73219456
SECRET = b"BiometricSecret!"
REST = 0.187744140625  # no rounding writes it otherwise; a time would have to be this by chance
FACE = [MARK, *[REST] * (D - 1)]
GOOD = json.dumps(FACE)
#: Bytes by which the process may grow; one body may have 64 MiB.
GROWTH = 600 * 1024 * 1024
POSTS = (
    "/v1/verify", "/v1/verify/batch", "/v1/templates", "/v1/templates/anna/verify",
    "/v1/identify", "/v1/feedback", "/v1/model",
)  # fmt: skip
GETS = (
    "/v1/templates", "/v1/templates/anna", "/v1/decisions", "/v1/decisions/x", "/v1/model",
    "/v1/monitor", "/metrics",
)  # fmt: skip
#: What may be answered: that the request was wrong.
WRONG = frozenset(range(400, 500))
#: Or nothing: the line was cut.
CUT = WRONG | {0}


class Case(NamedTuple):
    """A request: its first bytes, what follows, and what may be answered."""

    head: bytes
    parts: tuple[bytes, ...] = ()
    codes: frozenset[int] = WRONG


def http(method, path, body=b"", *, key="{admin}", kind="application/json", more=(), length=None):
    """Return the bytes of a request; {admin} and so on become keys when it is sent."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {key}"] if key is not None else []
    lines += [f"Content-Type: {kind}"] if kind is not None else []
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    head = "\r\n".join([*lines, *more, "", ""]).encode("utf-8", "surrogateescape")
    return Case(head, (body,) if body else ())


def post(path, body, **how):
    return http("POST", path, body if isinstance(body, bytes) else body.encode(), **how)


def pair(left, right=GOOD, more=""):
    return f'{{"left": {left}, "right": {right}{more}}}'


def sent(data):
    return json.dumps({"image": base64.b64encode(data).decode()})


# ------------------------------------------------------------------------ the cases


def wrong_json():
    """Bodies that no route takes, to all routes."""
    deep = 100_000
    for body in (
        b"", b"{", b"null", b"[]", b'"text"', b"7", b"\xff\xfe{}", b"\xef\xbb\xbf{", b"{}garbage",
        b'{"left": "\xff"}', b'{"left": "\\ud800"}', b'{"\\u0000": 1}', b"[" * deep,
        b"[" * deep + b"]" * deep, b'{"a":' * 5000 + b"1" + b"}" * 5000,
        pair(GOOD, more=', "extra": 1').encode(), pair(GOOD).encode("utf-16"),
        pair(GOOD).replace('"', "'").encode(), gzip.compress(pair(GOOD).encode()),
        b"\x80\x04\x95pickle", b" " * 2_000_000, b'{"' + b"k" * 300_000 + b'": 1}',
        b'{"__proto__": {"a": 1}, "constructor": 7}', b"<?xml version='1.0'?><a/>",
    ):  # fmt: skip
        for path in POSTS:
            yield post(path, body)


def wrong_vectors():
    """Embeddings that can't be, wherever one can be sent."""
    rest = ",".join([str(REST)] * (D - 1))
    firsts = (
        "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "null", "true", "false", f'"{MARK}"',
        "[]", "{}", f"[{MARK}]", "9" * 400, "9" * 5000, "1e39", '"\\u0000"', "0x10", "01", "+1",
        "nan", "1_000", "1e", "--1",
    )  # fmt: skip
    vectors = [f"[{first},{rest}]" for first in firsts]
    vectors += ["[]", "{}", "null", "true", "7", f'"{MARK}"', "[[1,2],[3,4]]", "[[]]", "[{}]"]
    vectors += [json.dumps(v) for v in ([0] * D, [-0.0] * D, [1e-30] * D, [1e30] * D)]
    vectors += [json.dumps(v) for v in (FACE[:-1], [*FACE, 1.0], [FACE], FACE * 200)]
    for vector in vectors:
        yield post("/v1/verify", pair(vector))
        yield post("/v1/verify", pair(GOOD, vector))
    for vector in vectors[::3]:
        yield post("/v1/verify/batch", f'{{"left": [{vector}], "right": [{GOOD}]}}')
        yield post("/v1/verify/batch", f'{{"pairs": [{pair(GOOD, vector)}]}}')
        yield post("/v1/templates", f'{{"id": "x", "embedding": {vector}}}')
        yield post("/v1/identify", f'{{"embedding": {vector}}}')
        yield post("/v1/templates/anna/verify", f'{{"embedding": {vector}}}')


def wrong_fields():
    for more in (
        ', "prior": 0', ', "prior": 1', ', "prior": "0.5"', ', "prior": 1e-300', ', "prior": true',
        ', "prior": NaN', ', "prior": [0.5]', ', "left_group": 7', ', "left_group": ["a"]',
        f', "left_group": "{"x" * 5000}"', ', "left_group": "\\u0007"', ', "left": [1]',
    ):  # fmt: skip
        yield post("/v1/verify", pair(GOOD, more=more))
    face = f'"embedding": {GOOD}'
    for name in ('""', "7", "null", "[]", '"a\\u0000b"', '"\\ud800"', '"\\n"', f'"{"a" * 201}"'):
        yield post("/v1/templates", f'{{"id": {name}, {face}}}')
        yield post("/v1/verify", pair(f'{{"template": {name}}}'))
        yield post("/v1/verify/batch", f'{{"left": [{name}], "right": [{GOOD}]}}')
        yield post("/v1/feedback", f'{{"decision": {name}, "genuine": true}}')
    for value in ("1", '"true"', "null", "[]"):
        yield post("/v1/templates", f'{{"id": "x", {face}, "replace": {value}}}')
        yield post("/v1/feedback", f'{{"decision": "x", "genuine": {value}}}')
    for value in ("0", "-1", "101", "1e2", "2.5", '"5"', "true", "null", "9" * 30):
        yield post("/v1/identify", f'{{{face}, "limit": {value}}}')
        if value != "null":
            yield post("/v1/identify", f'{{{face}, "enrolled_prior": {value}}}')
    for body in ("[]", '{"left": []}', '{"left": [], "right": []}', '{"pairs": []}',
                 '{"pairs": {}}', '{"pairs": [1]}', '{"pairs": [{}]}', '{"pairs": [null]}',
                 f'{{"pairs": [{pair(GOOD)}], "left": [{GOOD}]}}',
                 f'{{"left": [{GOOD}], "right": [{GOOD}, {GOOD}]}}',
                 f'{{"left": [{GOOD}, "anna"], "right": [{GOOD}, {GOOD}]}}',
                 f'{{"left": [{GOOD}], "right": [{GOOD}], "left_group": ["a", "b"]}}'):  # fmt: skip
        yield post("/v1/verify/batch", body)
    for path in ('"/etc/passwd"', "7", '"../m.faircal"', '["/etc/passwd"]', '{"a": 1}'):
        yield post("/v1/model", f'{{"path": {path}}}')
    yield post("/v1/templates", f'{{"id": "x", {face}, "image": "AAAA"}}')
    yield post("/v1/feedback", '{"decision": "nobody", "genuine": true}')
    yield post("/v1/verify", pair('{"template": "nobody"}'))
    yield post("/v1/verify", pair('{"template": "../../../etc/passwd"}'))
    yield post("/v1/verify", pair('{"template": "x\' OR 1=1 --"}'))
    yield post("/v1/verify", pair('{"path": "/etc/passwd"}'))


def wrong_addresses():
    names = (
        "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "../../etc/passwd", "%00", "%0d%0a",
        "a%00b", "..\\..\\windows", "%5c%5chost", "//etc/passwd", "a" * 201, "%ff%fe", "%c0%ae",
        "%", "%zz", "'%20OR%201=1--", "%22;DROP%20TABLE%20templates", "%e2%80%ae", "~root",
        "%f0%9f%98%80" * 201, ".", "nobody/verify",
    )  # fmt: skip
    for name in names:
        yield http("GET", f"/v1/templates/{name}")
        yield http("DELETE", f"/v1/templates/{name}")
        yield http("GET", f"/v1/decisions/{name}")
        yield post(f"/v1/templates/{name}/verify", f'{{"embedding": {GOOD}}}')
        yield http("GET", f"/static/{name}")
    for query in ("limit=0", "limit=-1", "limit=abc", "limit=99999999999", "limit=1e3", "limit=",
                  "limit=%00", "limit=٣", "after=%00", "after=" + "a" * 300):  # fmt: skip
        yield http("GET", f"/v1/templates?{query}")
        yield http("GET", f"/v1/decisions?{query}")
        yield http("GET", f"/v1/decisions?format=csv&{query}")
    yield http("GET", "/v1/decisions?after=nobody")
    for path in ("//", "/v1", "/v1/", "/v1/verify/", "/..", "/.git/config", "/v1/verify%00",
                 "/openapi.json/..", "/docs", "/static/", "/static/../app.py", "http://a/b",
                 "/%0d%0aSet-Cookie:a", "/v2/verify", "/v1/templates/", "*"):  # fmt: skip
        yield http("GET", path)
    for path in ("/v1/verify", "/healthz", "/v1/templates"):
        for method in ("PUT", "PATCH", "TRACE", "CONNECT", "PROPFIND", "OPTIONS"):
            yield http(method, path)


def wrong_keys():
    for path in GETS:
        for key in (None, "", "fck_guess", "{revoked}"):
            yield http("GET", path, key=key)
    for path in POSTS:
        for key in (None, "fck_guess", "{revoked}", "{admin}x", "x" * 5000, "\udcff\udcfe"):
            yield post(path, pair(GOOD), key=key)
    yield http("DELETE", "/v1/templates/anna", key=None)
    yield http("DELETE", "/v1/templates/anna", key="{verify}")
    yield post("/v1/templates", f'{{"embedding": {GOOD}}}', key="{verify}")
    yield post("/v1/verify", pair(GOOD), key="{enrol}")
    yield post("/v1/model", "{}", key="{verify}")
    yield http("GET", "/v1/decisions", key="{enrol}")
    yield http("GET", "/v1/templates", key="{verify}")
    for header in ("Authorization: Basic YTpi", "Authorization: {admin}", "Authorization:",
                   "X-API-Key: guess", "X-API-Key:", "Cookie: key={admin}"):  # fmt: skip
        yield post("/v1/verify", pair(GOOD), key=None, more=(header,))
    yield post("/v1/verify?key={admin}", pair(GOOD), key=None)


def wrong_heads():
    body = pair(GOOD).encode()
    for more in (
        "Content-Encoding: gzip", "Content-Encoding: br", "Content-Encoding: identity, gzip",
        "Expect: the-moon",
    ):  # fmt: skip
        case = post("/v1/verify", gzip.compress(body), more=(more,))
        yield case
    for kind in ("text/plain", "", "application/x-www-form-urlencoded", "application/json5",
                 "multipart/form-data; boundary=x", "application/octet-stream", ARROW):  # fmt: skip
        yield post("/v1/verify", body, kind=kind)
    yield post("/v1/verify", body, kind=None)
    for length in ("99999999999999999999", "999999999", "-1", "1e3", "0x10", "", "5, 6", "+5"):
        yield post("/v1/verify", body, length=length)._replace(codes=CUT)
    yield post("/v1/verify", body, more=("Content-Length: 5",))._replace(codes=CUT)
    yield post("/v1/verify", body, more=("Transfer-Encoding: chunked",))._replace(codes=CUT)
    yield post("/v1/verify", body, more=("Transfer-Encoding: gzip",))._replace(codes=CUT)
    yield post("/v1/verify", body, length=10)
    yield http("GET", "/v1/templates/anna", more=("X: " + "a" * 100_000,))._replace(codes=CUT)
    yield http("GET", "/" + "a" * 100_000)._replace(codes=CUT)
    yield http("GET", "/v1/model", more=tuple(f"X{n}: a" for n in range(20_000)))._replace(
        codes=CUT
    )
    chunked = post("/v1/verify", b"", length="").head.replace(
        b"Content-Length: ", b"Transfer-Encoding: chunked"
    )
    huge = (b"10000\r\n" + b" " * 65536 + b"\r\n",) * 500
    for parts in (huge, (b"zz\r\n",), (b"-1\r\n",), (b"ffffffffffffffffff\r\n",)):
        yield Case(chunked, parts, CUT)
    for line in (
        b"GET / nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n", b"\r\n\r\nGET\r\n\r\n",
        b"GET /v1/model HTTP/1.1\r\n:\r\n\r\n",
        b"GET /v1/model HTTP/1.1\r\nA b: c\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n",
        b"POST /v1/verify HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n{\"a\":",
    ):  # fmt: skip
        yield Case(line, (), CUT)


def many():
    """Much of it: batches that are too many, or would become too much."""
    yield post("/v1/verify/batch", '{"left": [' + "[],[[[]]]," * 3_000_000 + '1], "right": []}')
    yield post("/v1/verify/batch", '{"left": [' + '{"a":1},' * 4_000_000 + '1], "right": []}')
    yield post("/v1/verify/batch", '{"left": [' + "0.5," * 9_000_000 + '1], "right": []}')
    yield post("/v1/verify/batch", b" " * (64 * 1024 * 1024 + 1))
    ids = '["anna",' + '"b",' * 10_001 + '"c"]'
    yield post("/v1/verify/batch", f'{{"left": {ids}, "right": {ids}}}')
    yield post("/v1/verify", pair("[" + "0.5," * 1_000_000 + "1]"))
    yield post("/v1/identify", f'{{"embedding": [{"7," * 500_000}1]}}')


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def vectors(rows=3, kind=None, d=D):
    flat = pa.array(np.full(rows * d, MARK, np.float32)).cast(kind or pa.float32(), safe=False)
    return pa.FixedSizeListArray.from_arrays(flat, d)


def wrong_arrow():
    fine = pa.table({"left": vectors(), "right": vectors()})
    good = stream(fine)
    names = pa.array(["anna"] * 3)
    nested = vectors(1)
    for _ in range(60):
        nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), nested)
    lists = pa.array([[MARK] * D, [MARK] * 3, [MARK] * D], pa.list_(pa.float32()))
    holes = pa.array([[MARK] * (D - 1) + [None]] * 3, pa.list_(pa.float32(), D))
    words = pa.array([f"w{n}" for n in range(300_000)])
    bomb = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), words)
    tables = [
        {"left": vectors()}, {"left": vectors(), "right": vectors(), "more": names},
        {"left": vectors(), "right": vectors(d=64)}, {"left": vectors(d=64), "right": vectors()},
        {"left": vectors(kind=pa.int32()), "right": vectors()},
        {"left": pa.array([1.0] * 3), "right": vectors()}, {"left": nested, "right": vectors(1)},
        {"left": pa.nulls(3), "right": vectors()}, {"left": lists, "right": vectors()},
        {"left": holes, "right": vectors()}, {"left": bomb, "right": vectors()},
        {"left": pa.array(["a\0b", "anna", "x"]), "right": vectors()},
        {"left": pa.array(["anna", None, "anna"]), "right": vectors()},
        {"left": pa.array(["a" * 10_000] * 3), "right": vectors()},
        {"left": vectors(), "right": pa.array([b"x"] * 3)},
        {"left": vectors(), "right": vectors(), "left_group": pa.array([1, 2, 3])},
        {"left": vectors(0), "right": vectors(0)},
        {"left": vectors(d=1).take([0, 1, 2]), "right": vectors(d=1)},
        {"left": pa.array([[np.nan] * D] * 3, pa.list_(pa.float32(), D)), "right": vectors()},
        {"left": pa.array([[np.inf] * D] * 3, pa.list_(pa.float64(), D)), "right": vectors()},
        {"left": pa.array([[0] * D] * 3, pa.list_(pa.float16(), D)), "right": vectors()},
        {"left": pa.array([[1e300] * D] * 3, pa.list_(pa.float64(), D)), "right": vectors()},
        {"left": pa.array([[]] * 3, pa.list_(pa.float32())), "right": vectors()},
        {"left": pa.array([{"a": MARK}] * 3), "right": vectors()},
        {"left": pa.array([{}] * 3, pa.struct([])), "right": vectors()},
    ]  # fmt: skip
    for table in tables:
        yield post("/v1/verify/batch", stream(pa.table(table)), kind=ARROW)
    twice = pa.Table.from_arrays([vectors(), vectors(), vectors()], ["left", "right", "right"])
    yield post("/v1/verify/batch", stream(twice), kind=ARROW)
    empty = pa.Table.from_arrays([], [])
    yield post("/v1/verify/batch", stream(empty), kind=ARROW)
    many = pa.table({"left": vectors(10_001, d=4), "right": vectors(10_001, d=4)})
    yield post("/v1/verify/batch", stream(many), kind=ARROW)
    for codec in ("lz4", "zstd"):
        zeros = pa.table({"left": vectors(9000), "right": vectors(9000)})
        yield post("/v1/verify/batch", stream(zeros, compression=codec), kind=ARROW)
    for cut in (0, 1, 4, 8, 100, len(good) // 2):
        yield post("/v1/verify/batch", good[:cut], kind=ARROW)
    for body in (b"ARROW1\0\0", b"\xff" * 1000, b"\xff\xff\xff\xff\xff\xff\xff\x7f",
                 struct.pack("<iI", -1, 2**31 - 1) + bytes(64), b"{}", pair(GOOD).encode(),
                 struct.pack("<iI", -1, 64) + b"\xff" * 64, SECRET * 100):  # fmt: skip
        yield post("/v1/verify/batch", body, kind=ARROW)
    # Bytes turned over: whatever comes of it is an answer, a right one where only numbers changed.
    rng = np.random.default_rng(0)
    for _ in range(150):
        body = bytearray(good)
        for place in rng.integers(0, 900, rng.integers(1, 4)):
            body[place] = rng.integers(0, 256)
        yield post("/v1/verify/batch", bytes(body), kind=ARROW)._replace(codes=WRONG | {200})


def chunk(kind, data):
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def png(width, height, *chunks, data=b"\0" * 1000):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = b"".join(chunks) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + body


def noise(size=(64, 64), kind="PNG"):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    found = io.BytesIO()
    Image.fromarray(pixels).save(found, kind)
    return found.getvalue()


def wrong_pictures():
    text = chunk(b"zTXt", b"k\0\0" + zlib.compress(b"x" * 50_000_000))
    pictures = [
        b"", SECRET, SECRET * 1000, b"%!PS-Adobe-3.0\n" + SECRET, b"GIF89a" + SECRET,
        b"II*\0" + bytes(100), b"<svg xmlns='http://www.w3.org/2000/svg'/>", noise()[:-400],
        noise(kind="JPEG")[:300], noise(kind="GIF"), noise(kind="TIFF"), noise(), noise((1, 1)),
        png(40_000, 25_000), png(2**31 - 1, 2**31 - 1), png(0, 0), png(64, 64, text), png(64, 64),
        b"RIFF\xff\xff\xff\x7fWEBPVP8 " + SECRET, b"BM" + b"\xff" * 60,
        b"\xff\xd8\xff\xe0" + SECRET,
        b"P6 99999 99999 255\n" + SECRET, SECRET * 600_000,
    ]  # fmt: skip
    for picture in pictures:
        yield post("/v1/templates", sent(picture))
        yield post("/v1/verify", pair(sent(picture), sent(picture)))
    for value in ('"%%%"', '"AAA"', "7", "null", "[]", '"AAAA====AAAA"', '"ÄÖÜ"', '"\\ud800"',
                  '"/etc/passwd"', '"file:///etc/passwd"', '"http://127.0.0.1/"', '{"a": 1}',
                  '"data:image/png;base64,AAAA"'):  # fmt: skip
        yield post("/v1/identify", f'{{"image": {value}}}')
        yield post("/v1/verify", pair(f'{{"image": {value}}}'))


def wrong_forms():
    """The page's form."""
    kind = "multipart/form-data; boundary=x"
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    fields = {"left_kind": "numbers", "right_kind": "numbers", "left_numbers": GOOD}
    fields |= {"right_numbers": "NaN", "key": "{admin}"}
    whole = "".join(part.format(*each) for each in fields.items())
    for body in ("", "--x", "--x--\r\n", whole, whole + "--x--\r\n", "--y\r\n\r\n--y--",
                 part.format("a", "b") * 1000 + "--x--\r\n"):  # fmt: skip
        yield post("/", body, kind=kind)
    yield post("/", whole, kind="multipart/form-data")
    yield post("/", whole, kind="application/json")
    yield post("/", whole + "--x--\r\n", kind=kind, more=("Origin: http://evil.example",))
    yield post("/", whole + "--x--\r\n", kind=kind, more=("Sec-Fetch-Site: cross-site",))
    yield http("GET", "/live", key=None)
    yield http("GET", "/card", key="guess")


GROUPS = (
    wrong_json, wrong_vectors, wrong_fields, wrong_addresses, wrong_keys, wrong_heads, many,
    wrong_arrow, wrong_pictures, wrong_forms,
)  # fmt: skip


# ------------------------------------------------------------------------ the service


class Attacked:
    """A service, its keys, and all that it has answered."""

    def __init__(self, running, keys, database):
        self.running, self._keys, self.database = running, keys, database
        self.before, self.told = running.memory(), bytearray()

    def send(self, case):
        head, *parts = (self._with_keys(part) for part in (case.head, *case.parts))
        status, body = say(self.running.port, head, parts)
        self.told += body
        return status, body

    def _with_keys(self, part):
        if len(part) > 100_000:
            return part
        for name, key in self._keys.items():
            part = part.replace(b"{%s}" % name.encode(), key.encode())
        return part


@pytest.fixture(scope="module")
def attacked(spawner, postgres, fitted_model, tmp_path_factory):
    """A service over PostgreSQL, which refuses more (such as NUL in a text) than SQLite."""
    pytest.importorskip("dlib")
    folder = tmp_path_factory.mktemp("attacked")
    fitted_model.save(folder / "m.faircal")
    ring = KeyRing.at(folder / "keys.json")
    keys = {name: ring.add(name, [name]) for name in ("verify", "enrol", "admin")}
    keys["revoked"] = ring.add("revoked", ["admin"])
    ring.remove("revoked")
    database = postgres.empty()
    words = [folder / "m.faircal", "--keys", folder / "keys.json", "--database", database]
    with spawner.start(*words, "--network", "dlib", log=folder / "log") as running:
        yield Attacked(running, keys, database)


def traces():
    """Return what may be nowhere: of numbers, of bytes, and of these in base64."""
    number = np.float32(MARK).tobytes()
    yield from (b"73219456", b"0.1877441", number * 2, np.float64(MARK).tobytes(), SECRET)
    for shift in range(3):  # wherever in the base64 it begins
        yield base64.b64encode(b"x" * shift + SECRET)[4:-4]


def trail(database):
    """Return all that a database holds beside templates."""
    import psycopg

    rows = []
    with contextlib.closing(psycopg.connect(database)) as connection:
        for table in ("decisions", "states", "meta", "removed"):
            rows += connection.execute(f"SELECT * FROM faircal.{table}").fetchall()  # noqa: S608
    cells = [cell for row in rows for cell in row]
    return b"\n".join(
        bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()
        for cell in cells
    )


def test_there_are_hundreds_of_them():
    quick = [group for group in GROUPS if group not in (many, wrong_pictures)]
    found = {hash((case.head, case.parts)) for group in quick for case in group()}
    assert len(found) > 800


@pytest.mark.parametrize("group", GROUPS)
def test_no_harm_is_done_by(attacked, group):
    for number, case in enumerate(group()):
        status, body = attacked.send(case)
        assert status in case.codes, (number, case.head[:300], case.parts[:1], status, body[:300])
        if 400 <= status < 500 and body.startswith(b"{") and body != b"{}":
            assert set(json.loads(body)) == {"error"}
    good = post("/v1/verify", pair(GOOD))
    status, body = attacked.send(good)
    assert (status, json.loads(body)["same"]) == (200, True)


def test_after_all_that_it_is_alive_small_and_knows_nothing(attacked):
    """Runs last: what the others sent has left no trace."""
    for case in (http("GET", "/healthz"), http("GET", "/readyz"), http("GET", "/metrics")):
        assert attacked.send(case)[0] == 200
    assert attacked.running.alive()
    assert attacked.running.memory() - attacked.before < GROWTH
    assert attacked.running.end() == 0
    said = attacked.running.said()
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert re.search(r"POST /v1/verify 4\d\d", said)
    kept = trail(attacked.database)
    assert b"verify" in kept
    for trace in traces():
        for where, text in (("log", said.encode()), ("answers", attacked.told), ("trail", kept)):
            assert trace not in text, (where, trace)

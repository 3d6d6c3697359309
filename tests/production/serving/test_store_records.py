"""Ids and vectors at the door, keys of encryption, URLs."""

from __future__ import annotations

import base64
import sys

import numpy as np
import pytest

from faircal._base.errors import DataError, MissingExtraError, ParameterError, StorageError
from faircal.production.serving.store import open_store, read_key
from faircal.production.serving.store.records import (
    MOST_DIMENSIONS,
    TemplateCipher,
    check_id,
    check_vector,
)

KEY = bytes(range(32))


@pytest.mark.parametrize("name", ["a", " ", "x" * 200, "../../etc/passwd", "日本", "' OR 1=1"])
def test_printable_ids_are_taken(name):
    assert check_id(name) == name


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\0b", "\ud800", "\u200b", 7, None, b"a"])
def test_other_ids_are_refused(name):
    with pytest.raises(ParameterError, match="printable text of 1 to 200 characters"):
        check_id(name)


@pytest.mark.parametrize(
    "vector",
    [[], [[1.0]], [np.nan, 1], [np.inf, 1], [0, 0], ["a"], 1.0, None, [1] * (MOST_DIMENSIONS + 1)],
)
def test_other_vectors_are_refused(vector):
    with pytest.raises(DataError, match="vector: expected"):
        check_vector(vector)


def test_an_error_never_tells_a_vector():
    with pytest.raises(DataError) as caught:
        check_vector([0.123456, np.nan])
    assert "0.12" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", ":memory:", "sqlite://", "sqlite:///", "mysql://u:secret@h/d", "sqlite://host/x.db"]
)
def test_other_urls_are_refused(url):
    with pytest.raises(ParameterError, match="expected a path, sqlite:///PATH") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_bad_postgresql_url_is_refused_without_its_password():
    with pytest.raises(ParameterError, match="expected postgresql://") as caught:
        open_store("postgresql://u:secret@h/d?nonsense=1")
    assert "secret" not in str(caught.value)


def test_paths_and_urls_of_sqlite_name_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("a/x.db", "sqlite:///a/x.db", f"sqlite:///{tmp_path}/a/x.db"):
        store = open_store(url)
        store.enrol("anna", [1, 2], replace=True)
        assert store.count() == 1
        store.close()
    assert [path.name for path in tmp_path.rglob("*.db")] == ["x.db"]


def test_without_the_extra_postgresql_says_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "faircal.production.serving.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'faircal\[postgres\]'"):
        open_store("postgresql://localhost/x")


def test_without_the_extra_encryption_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'faircal\[serve\]'"):
        TemplateCipher(KEY)


def test_what_is_sealed_opens_only_where_it_belongs_and_unchanged():
    cipher = TemplateCipher(KEY)
    sealed = cipher.encrypt(b"secret", "templates:anna")
    assert b"secret" not in sealed
    assert sealed != cipher.encrypt(b"secret", "templates:anna")
    assert cipher.decrypt(sealed, "templates:anna") == b"secret"
    changed = bytes([sealed[0] ^ 1]) + sealed[1:]
    for other, belongs in (
        (sealed, "templates:ben"),
        (changed, "templates:anna"),
        (sealed[:-1], "templates:anna"),
        (b"", "templates:anna"),
    ):
        with pytest.raises(StorageError, match="can't be decrypted"):
            cipher.decrypt(other, belongs)
    with pytest.raises(StorageError, match="templates:anna can't be decrypted"):
        TemplateCipher(bytes(32)).decrypt(sealed, "templates:anna")


def test_aes_gcm_is_what_an_independent_implementation_reads():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    sealed = TemplateCipher(KEY).encrypt(b"secret", "templates:anna")
    nonce, text, tag = sealed[:12], sealed[12:-16], sealed[-16:]
    reader = Cipher(algorithms.AES256(KEY), modes.GCM(nonce, tag)).decryptor()
    reader.authenticate_additional_data(b"templates:anna")
    assert reader.update(text) + reader.finalize() == b"secret"


@pytest.mark.parametrize("raw", [KEY, KEY.hex().encode() + b"\n", base64.b64encode(KEY) + b"\n"])
def test_a_key_is_read_raw_hexadecimal_or_base64(tmp_path, raw):
    (tmp_path / "key").write_bytes(raw)
    assert read_key(tmp_path / "key") == KEY


@pytest.mark.parametrize("raw", [b"", b"short", KEY + b"x", b"\xff" * 64, KEY.hex().encode() * 2])
def test_another_key_file_is_refused(tmp_path, raw):
    (tmp_path / "key").write_bytes(raw)
    with pytest.raises(ParameterError, match="openssl rand -hex 32"):
        read_key(tmp_path / "key")

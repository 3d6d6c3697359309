"""Where weights are looked for, and what is said where they are not found; nothing is fetched."""

from __future__ import annotations

import hashlib
import socket
import sys
from pathlib import Path

import pytest

from faircal._base.errors import DataError, MissingExtraError, ModelFileError
from faircal._base.files import file_digest
from faircal.embedding.detectors import DETECTORS
from faircal.embedding.networks import NETWORKS, open_network
from faircal.embedding.weights import Weights, cache_folder, require

CONTENT = b"weights"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_net(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("somebody wants to use the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("FAIRCAL_WEIGHTS", str(folder))
    return folder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a folder for weights in it."""
    home = tmp_path / "site" / "weights_of_a_test"
    (home / "data").mkdir(parents=True)
    (home / "__init__.py").write_text("raise ImportError('nobody should import it')\n")
    monkeypatch.syspath_prepend(home.parent)
    return home / "data"


def write(folder, content=CONTENT, name="net.bin"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def weights(sha256=SHA256, package="weights_of_a_test"):
    return Weights("net.bin", sha256, "the moon", "CC0", package, "data")


# -------------------------------------------------------------------- where


def test_in_the_cache_folder(cache):
    path = write(cache)
    assert weights(package=None).find() == path


def test_in_an_installed_package(package):
    path = write(package)
    assert weights().find() == path
    assert "weights_of_a_test" not in sys.modules


def test_a_package_before_the_cache(package, cache):
    write(cache, b"another")
    path = write(package)
    assert weights().find() == path


def test_a_package_without_the_file(package, cache):
    path = write(cache)
    assert weights().find() == path


def test_a_package_that_is_not_installed(cache):
    path = write(cache)
    assert weights(package="no_such_package_anywhere").find() == path


def test_a_given_file_before_all(package, cache, tmp_path):
    write(package)
    write(cache)
    given = write(tmp_path, name="mine.bin")
    assert weights().find(given) == given


def test_the_cache_folder(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("FAIRCAL_WEIGHTS", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/faircal/weights"
    monkeypatch.delenv("FAIRCAL_WEIGHTS")
    assert cache_folder() == tmp_path / "xdg/faircal/weights"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/faircal/weights"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == tmp_path / "home/.cache/faircal/weights"


def test_looking_makes_no_folder(cache):
    with pytest.raises(MissingExtraError):
        weights().find()
    assert not cache.exists()


# -------------------------------------------------------------------- what is refused


def test_another_file(cache):
    path = write(cache, b"another")
    with pytest.raises(ModelFileError) as caught:
        weights().find()
    found = hashlib.sha256(b"another").hexdigest()
    assert str(caught.value) == (
        f"{path}: expected SHA-256 {SHA256}, found {found}; "
        "it is damaged or another file: get it again (the moon)"
    )


def test_a_given_file_is_verified_too(tmp_path):
    with pytest.raises(ModelFileError, match=f"expected SHA-256 {SHA256}"):
        weights().find(write(tmp_path, b"another"))


def test_any_file_where_no_checksum_is_known(cache):
    path = write(cache, b"another")
    assert weights(sha256=None).find() == path
    assert file_digest(path) == hashlib.sha256(b"another").hexdigest()


def test_not_here_says_what_to_get_from_where_to_where(cache):
    with pytest.raises(MissingExtraError) as caught:
        weights(package=None).find(option="--weights")
    assert str(caught.value) == (
        f"net.bin is needed and not here: get the moon (licence: CC0, SHA-256 {SHA256}) and put "
        f"it into {cache}, or name it with --weights FILE"
    )


@pytest.mark.parametrize("kind", ["nothing", "folder"])
def test_a_given_file_that_is_not_there(tmp_path, cache, kind):
    write(cache)  # is no help: another was asked for
    given = tmp_path / "mine.bin"
    if kind == "folder":
        given.mkdir()
    with pytest.raises(DataError) as caught:
        weights().find(given)
    assert str(caught.value).startswith(f"{given}: no such file of weights; ")


@pytest.mark.parametrize("name", ["facenet-vggface2", "facenet-webface", "arcface"])
def test_the_papers_networks_say_what_to_get(name, cache):
    known = NETWORKS[name]
    pytest.importorskip(known.needs[0])
    with pytest.raises(MissingExtraError) as caught:
        open_network(name)
    said = str(caught.value)
    for words in (known.weights.file, known.weights.origin, known.weights.licence, str(cache)):
        assert words in said
    assert "--weights FILE" in said
    assert "\n" not in said


def test_what_is_in_packages_is_not_asked_to_be_named_with_weights(monkeypatch, cache):
    """A detector has no --weights."""
    pytest.importorskip("dlib")
    for kind in DETECTORS.values():
        for each in kind.weights:
            monkeypatch.setattr(type(each), "_installed", lambda self: None)
    with pytest.raises(MissingExtraError) as caught:
        DETECTORS["dlib"]("cpu")
    assert "not here: pip install 'faircal[embed]' (licence: " in str(caught.value)
    assert "--weights" not in str(caught.value)


def test_checksums_are_checksums():
    every = [known.weights for known in NETWORKS.values()]
    every += [each for kind in DETECTORS.values() for each in kind.weights]
    for each in every:
        assert each.sha256 is None or (len(each.sha256) == 64 and int(each.sha256, 16))
        assert each.licence
        assert each.origin
        assert Path(each.file).name == each.file


# -------------------------------------------------------------------- packages


def test_a_package_that_is_there():
    require("json", "embed", "this test")


def test_a_package_that_is_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError) as caught:
        require("onnxruntime", "embed", "this test")
    assert str(caught.value) == (
        "this test needs onnxruntime, which is not installed: pip install 'faircal[embed]'"
    )

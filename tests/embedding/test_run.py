"""Batches on several threads, and the store that they fill: the same numbers, whatever happens."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.embedding import run
from faircal.embedding.run import PictureFiles, PictureStatus, VectorStore, fill_store

N = 23


@pytest.fixture(scope="module")
def folder(tmp_path_factory, save_picture):
    """23 pictures of noise: one shows nobody, one is black, one is text, one is not there."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for row in range(N):
        pixels = rng.integers(1, 256, (8, 8, 3), dtype=np.uint8)
        if row == 3:
            pixels[0, 0] = (0, 0, 255)
        save_picture(root / f"{row:02}.png", pixels * (row != 7))
    (root / "11.png").write_text("no picture")
    (root / "13.png").unlink()
    return root


STATES = np.full(N, PictureStatus.DONE, np.uint8)
STATES[[3, 7, 11, 13]] = (
    PictureStatus.NO_FACE,
    PictureStatus.NO_VECTOR,
    PictureStatus.UNREADABLE,
    PictureStatus.ABSENT,
)
DONE = STATES == PictureStatus.DONE


@pytest.fixture
def pictures(folder):
    return PictureFiles(folder, [f"{row:02}.png" for row in range(N)])


def store_at(path, n=N, **settings):
    return VectorStore(path / "store", settings, n)


@pytest.fixture
def expected(pictures, means, marked, tmp_path):
    """What comes of it, one picture at a time."""
    store = store_at(tmp_path / "expected")
    fill_store(pictures, means(), marked, store, jobs=1, batch=1)
    return np.array(store.vectors)


# -------------------------------------------------------------------- the work


def test_vectors_by_hand(folder, expected):
    image = pytest.importorskip("PIL.Image")
    for row in np.flatnonzero(DONE):
        with image.open(folder / f"{row:02}.png") as picture:
            pixels = np.asarray(picture, dtype=np.float64)
        quarters = pixels.reshape(2, 4, 2, 4, 3).mean(axis=(1, 3)).transpose(2, 0, 1).ravel()
        np.testing.assert_allclose(expected[row], quarters, rtol=1e-5)
    assert not expected[~DONE].any()


@pytest.mark.parametrize("jobs", [1, 2, 5, None])
@pytest.mark.parametrize("batch", [1, 4, 23, 100])
def test_the_same_whatever_the_jobs_and_the_batch(
    pictures, means, marked, tmp_path, expected, jobs, batch
):
    store, network = store_at(tmp_path), means()
    fill_store(pictures, network, marked, store, jobs=jobs, batch=batch)
    np.testing.assert_array_equal(store.state, STATES)
    np.testing.assert_array_equal(store.vectors, expected)
    assert network.faces == DONE.sum() + 1  # the black one was tried
    assert max(network.sizes) <= batch


def test_the_same_in_another_order(pictures, means, marked, tmp_path, expected):
    order = np.random.default_rng(1).permutation(N)
    turned = PictureFiles(pictures.root, [pictures.paths[row] for row in order])
    store = store_at(tmp_path)
    fill_store(turned, means(), marked, store, jobs=3, batch=4)
    np.testing.assert_array_equal(store.state, STATES[order])
    np.testing.assert_array_equal(store.vectors, expected[order])


def test_a_network_that_is_not_parallel_is_called_by_one_at_a_time(
    pictures, means, marked, tmp_path, expected
):
    inside, most = [], []

    class Alone(means):
        parallel = False

        def run(self, faces):
            inside.append(threading.get_ident())
            most.append(len(inside))
            try:
                return super().run(faces)
            finally:
                inside.pop()

    store = store_at(tmp_path)
    fill_store(pictures, Alone(), marked, store, jobs=4, batch=2)
    assert max(most) == 1
    np.testing.assert_array_equal(store.vectors, expected)


def test_progress_counts_pictures(pictures, means, marked, tmp_path):
    told = []
    fill_store(
        pictures,
        means(),
        marked,
        store_at(tmp_path),
        jobs=2,
        batch=5,
        progress=lambda *words: told.append(words),
    )
    assert {(what, total) for what, _, total, _ in told} == {("embedding", N)}
    counts = [done for _, done, _, _ in told]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, N)
    assert told[-1][3].endswith(" images/s")


def test_nothing_to_do(pictures, means, marked, tmp_path):
    store = store_at(tmp_path)
    fill_store(pictures, means(), marked, store)
    network = means()
    fill_store(pictures, network, marked, store)
    assert network.sizes == []


def test_threads_leave_warnings_as_they_were(pictures, means, marked, tmp_path):
    before = list(warnings.filters)
    try:
        fill_store(pictures, means(), marked, store_at(tmp_path), jobs=8, batch=1)
        assert list(warnings.filters) == before
    finally:
        warnings.filters[:] = before


def test_threads_get_one_core_each_for_pytorch(pictures, means, marked, tmp_path):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []

    class Looks(means):
        def run(self, faces):
            seen.append(torch.get_num_threads())
            return super().run(faces)

    try:
        fill_store(pictures, Looks(), marked, store_at(tmp_path), jobs=2, batch=4)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2  # that of this thread is as it was
    finally:
        torch.set_num_threads(before)


# -------------------------------------------------------------------- boxes


@pytest.fixture
def two_in_one(tmp_path, save_picture):
    """A picture of 40 × 80 pixels, red on the left, green on the right."""
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[:, :40, 0], pixels[:, 40:, 1] = 200, 100
    save_picture(tmp_path / "a.png", pixels)
    return tmp_path


def colours(store):
    """Return red and green of the first quarter of each vector."""
    return np.round(store.vectors[:, [0, 4]]).tolist()


def test_a_box_says_which_part(two_in_one, means, blind, tmp_path):
    boxes = np.array([[0, 0, 40, 40], [40, 0, 80, 40], [np.nan] * 4, [50, 10, 50, 30]], float)
    pictures = PictureFiles(two_in_one, ["a.png"] * 4, boxes)
    assert [pictures.box(row) is None for row in range(4)] == [False, False, True, True]
    store = store_at(tmp_path, 4)
    fill_store(pictures, means(), blind, store, jobs=1)
    assert colours(store)[:2] == [[200, 0], [0, 100]]
    whole = np.array(colours(store)[2:])  # its left quarters are red, but for the border
    assert (whole[:, 0] > 150).all()
    assert (whole[:, 1] < 30).all()


def test_a_box_says_which_face(astronaut, hopper, dlib_detector, means, save_picture, tmp_path):
    missing = len(hopper) - len(astronaut)
    both = np.hstack([np.pad(astronaut, ((0, missing), (0, 0), (0, 0))), hopper])
    save_picture(tmp_path / "both.png", both)
    small, large = dlib_detector(astronaut)[0].box, dlib_detector(hopper)[0].box
    large = tuple(side + 512 * (i % 2 == 0) for i, side in enumerate(large))
    boxes = np.array([small, large, [np.nan] * 4, [0, 300, 60, 360]])
    store = store_at(tmp_path, 4)
    pictures = PictureFiles(tmp_path, ["both.png"] * 4, boxes)
    fill_store(pictures, means(size=112), dlib_detector, store, jobs=1)
    assert store.state.tolist() == [PictureStatus.DONE] * 3 + [PictureStatus.NO_FACE]
    apart = np.linalg.norm(store.vectors[:3, None] - store.vectors[None, :3], axis=2)
    assert apart[1, 2] < 0.4 * apart[0, 1]  # the largest unless told
    assert apart[0, 2] > 0.6 * apart[0, 1]


@pytest.mark.parametrize("box", [(900, 900, 950, 950), (-80, 10, -40, 50), (80, 40, 90, 50)])
def test_a_box_outside_its_picture_shows_no_face(two_in_one, means, marked, tmp_path, box):
    """And the pictures after it are embedded all the same."""
    boxes = np.array([box, [0, 0, 40, 40]], float)
    store = store_at(tmp_path, 2)
    pictures = PictureFiles(two_in_one, ["a.png"] * 2, boxes)
    fill_store(pictures, means(), marked, store, jobs=1, batch=1)
    assert store.state.tolist() == [PictureStatus.NO_FACE, PictureStatus.DONE]


# -------------------------------------------------------------------- stopping and going on


@pytest.mark.parametrize("failure", [RuntimeError("the network failed"), KeyboardInterrupt()])
@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failure_of_the_network_spoils_nothing(
    pictures, means, marked, tmp_path, expected, failure, jobs
):
    network = means()
    network.fail_after, network.failure = 3, failure
    with pytest.raises(type(failure)):
        fill_store(pictures, network, marked, store_at(tmp_path), jobs=jobs, batch=4)
    store = store_at(tmp_path)  # as a new process would
    left = store.to_do
    assert 0 < len(left) <= N
    again = means()
    fill_store(pictures, again, marked, store, jobs=jobs, batch=4)
    assert (
        again.faces
        == np.isin(left, np.flatnonzero(DONE | (STATES == PictureStatus.NO_VECTOR))).sum()
    )
    np.testing.assert_array_equal(store.vectors, expected)
    np.testing.assert_array_equal(store.state, STATES)


def test_what_has_ended_is_kept_when_another_fails():
    """Of batches that end together, a failure must not throw away the others."""
    ended = [threading.Event() for _ in range(8)]

    def work(rows):
        number = int(rows[0])
        if number == 7:
            for event in ended[:7]:
                assert event.wait(10)
            ended[7].set()
            raise RuntimeError("the last one failed")
        ended[number].set()
        return rows, np.ones(1, np.uint8), None

    coming = run._side_by_side(work, [np.array([number]) for number in range(8)], 4)
    seen = [int(next(coming)[0][0])]
    assert ended[7].wait(10)
    with pytest.raises(RuntimeError, match="the last one failed"):
        for rows, _, _ in coming:
            seen.append(int(rows[0]))
    assert sorted(seen) == list(range(7))


def test_an_interrupt_while_progress_is_told(pictures, means, marked, tmp_path, expected):
    def stop(what, done, total, label):
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill_store(pictures, means(), marked, store_at(tmp_path), jobs=2, batch=4, progress=stop)
    store = store_at(tmp_path)
    assert int((store.state == PictureStatus.TO_DO).sum()) == N - 8
    fill_store(pictures, means(), marked, store, jobs=2, batch=4)
    np.testing.assert_array_equal(store.vectors, expected)


def test_a_failure_ends_the_threads(pictures, means, marked, tmp_path):
    before = threading.active_count()
    network = means()
    network.fail_after = 1
    with pytest.raises(RuntimeError):
        fill_store(pictures, network, marked, store_at(tmp_path), jobs=4, batch=1)
    assert threading.active_count() == before
    assert len(network.sizes) == 1


def test_few_batches_are_under_way(pictures, means, marked, tmp_path):
    """Millions of pictures must not wait in memory."""
    under_way = []

    def work(rows):
        under_way.append(rows)
        return rows, np.zeros(len(rows), np.uint8), None

    batches = [np.arange(1)] * 100
    coming = run._side_by_side(work, batches, 2)
    next(coming)
    assert len(under_way) <= 2 * 2 + 1
    coming.close()
    assert len(under_way) < 20


# -------------------------------------------------------------------- the store


def rows(*numbers):
    return np.array(numbers, np.intp)


def put(store, numbers, vectors, states=None):
    states = (
        np.full(len(numbers), PictureStatus.DONE, np.uint8) if states is None else np.array(states)
    )
    store.put(rows(*numbers), states.astype(np.uint8), np.array(vectors, np.float32))


def test_what_is_put_is_there_later(tmp_path):
    store = store_at(tmp_path, 4)
    assert store.vectors is None
    assert store.to_do.tolist() == [0, 1, 2, 3]
    put(store, [2, 0], [[1, 2]], [PictureStatus.DONE, PictureStatus.NO_FACE])
    assert store.to_do.tolist() == [1, 3]
    store.put(rows(1), np.array([PictureStatus.ABSENT], np.uint8), None)
    again = store_at(tmp_path, 4)
    assert again.to_do.tolist() == [1, 3]  # an unreadable picture may have been mended
    assert again.state.tolist() == [
        PictureStatus.NO_FACE,
        PictureStatus.ABSENT,
        PictureStatus.DONE,
        PictureStatus.TO_DO,
    ]
    assert again.vectors.tolist() == [[0, 0], [0, 0], [1, 2], [0, 0]]
    again.remove()
    assert not (tmp_path / "store").exists()


def test_other_settings_are_refused(tmp_path):
    put(store_at(tmp_path, 2, network="a"), [0], [[1.0]])
    with pytest.raises(ParameterError) as caught:
        store_at(tmp_path, 2, network="b")
    assert "other settings or pictures" in str(caught.value)
    assert "--restart" in str(caught.value)
    assert store_at(tmp_path, 2, network="a").to_do.tolist() == [1]
    anew = VectorStore(tmp_path / "store", {"network": "b"}, 2, restart=True)
    assert anew.to_do.tolist() == [0, 1]
    assert anew.vectors is None


def test_the_order_of_settings_does_not_matter(tmp_path):
    put(VectorStore(tmp_path / "s", {"a": 1, "b": [2]}, 2), [0], [[1.0]])
    assert VectorStore(tmp_path / "s", {"b": [2], "a": 1}, 2).to_do.tolist() == [1]


@pytest.mark.parametrize("file", ["state.npy", "vectors.npy"])
@pytest.mark.parametrize("content", [b"", b"no array"])
def test_a_damaged_store_says_how_to_begin_anew(tmp_path, file, content):
    """As after a loss of power."""
    put(store_at(tmp_path, 50), list(range(50)), np.ones((50, 8)))
    path = tmp_path / "store" / file
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        store_at(tmp_path, 50)
    assert str(path) in str(caught.value)
    assert "--restart" in str(caught.value)
    assert VectorStore(tmp_path / "store", {}, 50, restart=True).to_do.size == 50


def test_vectors_that_are_cut_off_are_not_taken_for_zeros(tmp_path):
    """They are marked as done, and would be written as they are."""
    put(store_at(tmp_path, 50), list(range(50)), np.ones((50, 8)))
    path = tmp_path / "store/vectors.npy"
    path.write_bytes(path.read_bytes()[:-64])
    try:
        store = store_at(tmp_path, 50)
    except DataError as error:
        assert "--restart" in str(error)
    else:
        assert np.asarray(store.vectors)[store.state == PictureStatus.DONE].all()


def test_reasons_are_words():
    assert [state.reason for state in PictureStatus if state > PictureStatus.DONE] == [
        "no face found",
        "picture cannot be read",
        "picture not found",
        "the network gave no usable vector",
    ]

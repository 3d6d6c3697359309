"""What runs the documentation: blocks, gaps, numbers, figures."""

from __future__ import annotations

import pytest

from pages.comparing import differences, is_shown
from pages.parsing import Page, PageError
from pages.running import run
from pages.writing import written


@pytest.fixture
def page(tmp_path):
    """Return a function that makes a page of a text."""

    def make(text):
        path = tmp_path / "page.md"
        path.write_text(text, encoding="utf-8")
        return Page.read(path)

    return make


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "folder"
    made.mkdir()
    return made


class TestParsing:
    def test_blocks(self, page):
        found = page(
            "# A\n\n```sh\nls\n```\n\n??? note\n\n    ```python\n    if 1:\n        2\n    ```\n\n"
            '```toml title="a/b.toml"\nx = 1\n```\n\n<!-- python\n3\n-->\n'
        ).blocks
        assert [(b.language, b.text, b.title) for b in found] == [
            ("sh", "ls\n", None),
            ("python", "if 1:\n    2\n", None),
            ("toml", "x = 1\n", "a/b.toml"),
            ("python", "3\n", None),
        ]
        assert [b.is_run for b in found] == [True, True, False, True]

    def test_a_fence_in_a_longer_fence_is_text(self, page):
        (block,) = page('````text title="x.md"\n```sh\nls\n```\n````\n').blocks
        assert block.text == "```sh\nls\n```\n"

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("```\nls\n```\n", "no language"),
            ("```bash\nls\n```\n", "'bash'"),
            ("```sh\nls\n", "never ends"),
            ("```text\nls\n```\n", "no block before"),
            ("```sh\nls\n```\n\n```text\na\n```\n\n```text\nb\n```\n", "no block before"),
        ],
    )
    def test_what_nobody_knows_is_refused(self, page, text, why):
        with pytest.raises(PageError, match=why):
            page(text)

    def test_images(self, page):
        found = page("![one\ntwo](images/a.png) ![far](https://x.org/b.png)").images
        assert [(i.alt, i.target) for i in found] == [("one\ntwo", "images/a.png")]


class TestComparing:
    @pytest.mark.parametrize(
        ("printed", "shown"),
        [
            ("a  b\n", "a b"),
            ("0.5812 of 1,000", "0.58 of 1,000"),
            ("FPR 101 %", "FPR 100 %"),
            ("x 0.0031", "x 0.004"),
            ("──────── a", "─────────── a"),
            ("a\nb\nc\nd", "a\n…\nd"),
            ("a b c a b d", "… a b d"),
            ("written: /tmp/x1/y", "written: …/y"),
            ("a\nb", "a\n…"),
            ("[a] b", "[…] b"),
            ("", ""),
        ],
    )
    def test_the_same(self, printed, shown):
        assert is_shown(printed, shown)

    @pytest.mark.parametrize(
        ("printed", "shown"),
        [
            ("a b", "a c"),
            ("a b", "a"),
            ("a", "a b"),
            ("FPR 104 %", "FPR 100 %"),
            ("3 people", "4 people"),
            ("x 0.0031", "x 0.0045"),
            ("-0.5", "0.5"),
            ("a\nb\nc", "a\n…\nd"),
            ("a b c a b", "… a b d"),
            ("", "a"),
            ("a", ""),
        ],
    )
    def test_not_the_same(self, printed, shown):
        assert not is_shown(printed, shown)


class TestRunning:
    def test_names_and_variables_carry_over(self, page, folder):
        made = page(
            "```sh\nA=1; cd /; sleep 60 &\n```\n```python\nimport os\nx = 2\n```\n"
            '```text title="sub/data.txt"\nhello\n```\n'
            '```sh\necho $A "$PWD" ~\n```\n```python\nprint(x, os.listdir("sub"))\n'
            'os.system("echo child")\n```\n'
        )
        *_, shell, python = run(made, folder)
        assert shell.text == f"1 / {folder}\n"
        assert python.text == "2 ['data.txt']\nchild\n"

    @pytest.mark.parametrize(
        "block",
        ["```sh\nfalse\n```\n", "```sh\nfalse | cat\n```\n", "```python\n1 / 0\n```\n"],
    )
    def test_an_error_ends_it(self, page, folder, block):
        with pytest.raises(PageError, match=r"page\.md:1: failed"):
            run(page(block + block), folder)

    def test_so_does_time(self, page, folder):
        with pytest.raises(PageError, match="took longer than 1 s"):
            run(page("```sh\nsleep 60\n```\n"), folder, timeout=1)

    def test_what_differs_is_found_and_written(self, page, folder):
        made = page(
            "```sh\necho 1; echo 2\n```\n\n```text\n1\n3\n```\n\n    ```python\n    print(5)\n"
            "    ```\n\n    ```text\n    4\n    ```\n\n```sh\necho 6\n```\n\n```text\n…\n7\n```\n"
        )
        found = differences(made, run(made, folder))
        assert [f.printed for f in found] == ["1\n2\n", "5\n", "6\n"]
        text, left = written(made, found)
        assert text == made.text.replace("1\n3\n", "1\n2\n").replace("    4\n", "    5\n")
        assert [f.printed for f in left] == ["6\n"]


def test_pictures(tmp_path, folder, page):
    image = pytest.importorskip("PIL.Image")
    from pages import figures

    made = page("![A black square](images/a.png)")
    image.new("L", (40, 30), 0).save(folder / "a.png")
    ((shown, file),) = figures.made(made, folder).items()
    assert shown == tmp_path / "images" / "a.png"
    assert not figures.is_shown(shown, file)
    figures.put(shown, file)
    assert figures.is_shown(shown, file)
    for size, grey in (((40, 30), 20), ((60, 30), 0)):
        image.new("L", size, grey).save(shown)
        assert not figures.is_shown(shown, file)


def test_a_picture_with_a_longer_bar_is_another(tmp_path):
    image = pytest.importorskip("PIL.Image")
    from pages import figures

    files = {}
    for height in (200, 201, 204):
        drawn = image.new("L", (800, 600), 255)
        drawn.paste(0, (300, 500 - height, 360, 500))
        files[height] = tmp_path / f"{height}.png"
        drawn.save(files[height])
    assert figures.is_shown(files[200], files[201])
    assert not figures.is_shown(files[200], files[204])

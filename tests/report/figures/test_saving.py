"""Files and pages: whole, the same bytes each time, nothing fetched, Matplotlib only to draw."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import threading
from xml.dom.minidom import parseString

import pytest

import faircal
from faircal.report.figures import FprCurves, Panels, RocCurves, save, svg


def parsed(page):
    return parseString(page).documentElement  # noqa: S318 - our own


@pytest.fixture
def figure(four):
    return FprCurves(four.audit().curves)


@pytest.fixture
def panels(four):
    curves = four.audit().curves
    return Panels([FprCurves(curves), RocCurves(curves)], key="both", title="Both")


class TestSave:
    def test_three_files(self, figure, tmp_path):
        from PIL import Image

        paths = save(figure, tmp_path / "new")
        names = ["fpr-by-group.pdf", "fpr-by-group.png", "fpr-by-group.csv"]
        assert [path.name for path in paths] == names
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
        assert paths[0].read_bytes().startswith(b"%PDF")
        with Image.open(paths[1]) as picture:
            assert picture.size == tuple(round(150 * inches) for inches in figure.size)
        with paths[2].open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == figure.table.column_names
        assert [float(row[2]) for row in rows] == figure.table["fpr"].to_pylist()

    def test_the_same_bytes_at_any_time(self, panels, tmp_path):
        first = [path.read_bytes() for path in save(panels, tmp_path / "a")]
        page = svg(panels)
        assert [path.read_bytes() for path in save(panels, tmp_path / "b")] == first
        assert svg(panels) == page
        for told in (b"CreationDate", b"ModDate", b"tIME", b"Date", b"atplotlib"):
            assert not any(told in written for written in (*first[:2], page.encode()))

    def test_columns_that_a_panel_lacks_are_empty(self, panels, tmp_path):
        with save(panels, tmp_path)[2].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {row["tpr"] == "" for row in rows if row["global_fpr"]} == {True}
        assert {row["global_fpr"] == "" for row in rows if row["tpr"]} == {True}

    def test_another_process_writes_the_same_bytes_and_needs_no_pyplot(self, tmp_path):
        script = """
            import sys, faircal
            from pathlib import Path
            from faircal.report.figures import Violins, save, svg
            print("matplotlib" in sys.modules, "PIL" in sys.modules)
            score, genuine = [0.9, 0.2, 0.7, 0.1, 0.3], [1, 0, 1, 0, 0]
            found = faircal.audit(score=score, genuine=genuine, groups=list("AABBB"))
            figure, folder = Violins(found.curves), sys.argv[1]
            save(figure, folder)
            Path(folder, "x.svg").write_text(svg(figure))
            print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
        """
        script = "\n".join(line.strip() for line in script.splitlines())
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / "a")]
        said = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
        assert said.stdout.splitlines() == ["False False", "True False"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["", str(tmp_path / "b")])
            exec(script, {})  # noqa: S102 - the same in this process
        written = [
            {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
            for name in ("a", "b")
        ]
        assert len(written[0]) == 4
        assert written[0] == written[1]

    def test_a_folder_that_cannot_be(self, figure, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(faircal.FairCalError, match="output folder"):
            save(figure, tmp_path / "file")


class TestSvg:
    def test_it_is_one_element_with_words(self, panels):
        root = parsed(svg(panels))
        assert root.tagName == "svg"
        assert root.getAttribute("role") == "img"
        assert root.getAttribute("aria-label") == panels.words
        box = root.getAttribute("viewBox").split()
        assert box[2:] == [root.getAttribute("width"), root.getAttribute("height")]

    def test_text_is_text_and_nothing_is_fetched(self, figure):
        page = svg(figure)
        texts = parsed(page).getElementsByTagName("text")
        written = [text.firstChild.data.strip() for text in texts]
        assert "global FPR (%)" in written
        assert "A" in written
        assert "http" not in page
        assert "<style" not in page
        assert "<!--" not in page
        assert "sans-serif" in page
        assert set(re.findall(r"url\((.)", page)) <= {"#"}

    def test_every_reference_is_to_an_id_and_ids_are_the_figure_s_own(self, four):
        curves = four.audit().curves
        pages = [svg(FprCurves(curves, key=key)) for key in ("one", "two")]
        ids = [set(re.findall(r' id="([^"]+)"', page)) for page in pages]
        assert ids[0]
        assert not ids[0] & ids[1]
        for page, mine in zip(pages, ids, strict=True):
            assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page))
            for pair in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
                assert "".join(pair) in mine

    def test_words_are_escaped(self, scored):
        page = svg(FprCurves(scored(['" onload="x', "</svg>"]).audit().curves))
        root = parsed(page)
        assert not root.hasAttribute("onload")
        assert '" onload="x' in root.getAttribute("aria-label")

    def test_a_notebook_shows_it(self, figure, panels):
        assert figure._repr_svg_() == svg(figure)
        assert panels._repr_svg_() == svg(panels)


class TestMatplotlib:
    def test_without_it_there_is_one_line(self, figure, panels, monkeypatch, tmp_path):
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        line = r"^figures need matplotlib: pip install 'faircal\[figures\]'$"
        for call in (figure.plot, panels.plot, lambda: svg(figure), lambda: save(figure, tmp_path)):
            with pytest.raises(faircal.MissingExtraError, match=line):
                call()
        assert not list(tmp_path.iterdir())
        assert len(figure.table)
        assert figure.words

    def test_threads(self, four):
        import matplotlib

        before, pages = dict(matplotlib.rcParams), {}
        curves = four.audit().curves

        def draw(i):
            pages[i] = svg(FprCurves(curves))

        threads = [threading.Thread(target=draw, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(pages) == 4
        assert len(set(pages.values())) == 1
        assert dict(matplotlib.rcParams) == before

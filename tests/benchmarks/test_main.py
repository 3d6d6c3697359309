"""The command: what runs, what is kept, and with what status it ends."""

from __future__ import annotations

import pytest

from benchmarks import kept
from benchmarks.__main__ import main
from benchmarks.page import page
from benchmarks.parts import PARTS, Measured, chosen


@pytest.fixture
def bench(tmp_path, guarded):
    """Run the command on figures made by hand; its files are in `tmp_path`."""

    def run(*words, value=10.0, names=("speed-up",), broken=(), others=0.0):
        asked = []

        def measure(name, quick):
            asked.append((name, quick))
            if name in broken:
                raise RuntimeError(f"{name}: ended with 1")
            return Measured([guarded(value, name=figure) for figure in names], others)

        files = [tmp_path / name for name in ("results.json", "benchmarks.md", "growth.png")]
        return main(words, measure, *files), asked

    return run


def test_words_choose_and_long_parts_want_their_whole_name():
    assert chosen(["fit", "pairs"]) == ["fit", "pairs"]
    assert chosen(["training"]) == ["training_limit", "training_ftc", "training_agenda"]
    assert chosen(["stream"]) == ["stream"]
    assert chosen(["reproduce"]) == ["reproduce"]
    assert chosen([]) == [name for name, part in PARTS.items() if not part.long]
    with pytest.raises(ValueError, match="nothing"):
        chosen(["nothing"])


def test_an_unknown_word_is_wrong_usage(bench, capsys):
    with pytest.raises(SystemExit) as ended:
        bench("nothing")
    assert ended.value.code == 2
    assert "no part 'nothing'" in capsys.readouterr().err


def test_the_first_run_is_new_and_keeps_nothing(bench, tmp_path, capsys):
    assert bench("fit") == (0, [("fit", False)])
    assert "new" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_accepted_figures_are_what_later_runs_are_held_to(bench, tmp_path, capsys):
    assert bench("fit", "--accept", value=10.0)[0] == 0
    assert (tmp_path / "benchmarks.md").read_text("utf-8") == page(
        kept.read(tmp_path / "results.json")
    )
    assert bench("fit", value=7.1)[0] == 0
    capsys.readouterr()
    assert bench("fit", value=6.9)[0] == 1
    assert "slower" in capsys.readouterr().out
    assert bench("fit", names=("another",))[0] == 1
    assert "missing" in capsys.readouterr().out


def test_a_loss_can_be_accepted(bench):
    bench("fit", "--accept", value=10.0)
    assert bench("fit", "--accept", value=1.0)[0] == 0
    assert bench("fit", value=1.0)[0] == 0


def test_accepting_a_part_leaves_the_others_as_they_are(bench, tmp_path):
    bench("fit", "pairs", "--accept", value=10.0)
    bench("pairs", "--accept", value=20.0)
    parts = kept.read(tmp_path / "results.json")
    assert {name: part.figures[0].value for name, part in parts.items()} == {
        "fit": 10.0,
        "pairs": 20.0,
    }


def test_a_part_that_breaks_fails_the_run_and_not_the_others(bench, tmp_path, capsys):
    bench("fit", "--accept", value=10.0)
    status, asked = bench("fit", "pairs", "--accept", value=20.0, broken=("fit",))
    assert (status, [name for name, _ in asked]) == (1, ["fit", "pairs"])
    assert "ended with 1" in capsys.readouterr().out
    parts = kept.read(tmp_path / "results.json")
    assert [parts[name].figures[0].value for name in ("fit", "pairs")] == [10.0, 20.0]


def test_a_disturbed_run_is_neither_kept_nor_passed(bench, tmp_path, capsys):
    bench("fit", "--accept", value=10.0, others=0.09)
    before = (tmp_path / "results.json").read_bytes()
    assert bench("fit", "--accept", value=300.0, others=0.5)[0] == 1
    assert "others used 50% of the processors" in capsys.readouterr().out
    assert (tmp_path / "results.json").read_bytes() == before
    assert bench("fit", value=10.0, others=0.5)[0] == 1


def test_trying_out_compares_and_keeps_nothing(bench, tmp_path, capsys):
    bench("fit", "--accept", value=10.0)
    before = (tmp_path / "results.json").read_bytes()
    assert bench("fit", "--quick", value=1.0) == (0, [("fit", True)])
    assert "slower" not in capsys.readouterr().out
    assert (tmp_path / "results.json").read_bytes() == before
    with pytest.raises(SystemExit):
        bench("fit", "--quick", "--accept")


def test_another_machine_is_noted(bench, monkeypatch, capsys):
    bench("fit", "--accept")
    here = kept.machine()
    monkeypatch.setattr("benchmarks.kept.machine", lambda: {**here, "cpu": "another"})
    assert bench("fit")[0] == 0
    assert "measured on another machine" in capsys.readouterr().out


def test_every_part_names_a_module_and_a_function():
    from pathlib import Path

    import benchmarks

    for part in PARTS.values():
        module, function = part.where.split(":")
        text = (Path(benchmarks.__file__).parent / f"{module}.py").read_text("utf-8")
        assert f"def {function}(quick: bool) -> list[Figure]:" in text

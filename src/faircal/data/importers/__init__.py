r"""From the layouts in which owners ship their data to dataset folders, a function a layout.

Examples
--------
>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as home:
...     scores = Path(home) / "scores-dev"
...     _ = scores.write_text("ann ann probe1 0.9\nann bob probe2 0.1\n")
...     imported = read_bob(scores)
...     folder = imported.save(Path(home) / "data")
...     print(sorted(path.name for path in folder.iterdir()), imported.counts["pairs"])
['dataset.json', 'images.csv', 'pairs.csv'] 2
"""

from faircal.data.importers.base import Import
from faircal.data.importers.bfw import read_bfw
from faircal.data.importers.bob import read_bob
from faircal.data.importers.folders import read_folder
from faircal.data.importers.ijbc import read_ijbc
from faircal.data.importers.pair_lists import read_lfw, read_rfw

__all__ = ["Import", "read_bfw", "read_bob", "read_folder", "read_ijbc", "read_lfw", "read_rfw"]

"""The pictures of a page are those that it makes."""

from __future__ import annotations

import shutil
from pathlib import Path

from pages.parsing import Page

#: Pictures are compared in so many fields, across and down.
FIELDS = (40, 30)
#: Largest difference of a field, of 255 levels of grey: another digit in a label makes 10, a bar or
#: line that is 1 % longer some 25.
CLOSE = 15.0


def made(page: Page, folder: Path) -> dict[Path, Path]:
    """Return where the page shows a picture, and the file that running it left."""
    found = {}
    for image in page.images:
        files = sorted(folder.rglob(Path(image.target).name))
        if files:
            found[page.path.parent / image.target] = files[0]
    return found


def is_shown(shown: Path, file: Path) -> bool:
    """Whether two pictures show the same."""
    import numpy as np
    from PIL import Image

    if not shown.exists():
        return False
    with Image.open(shown) as one, Image.open(file) as two:
        wide, high = one.size
        if abs(wide - two.width) > 0.02 * wide or abs(high - two.height) > 0.02 * high:
            return False
        grey = [
            np.asarray(each.convert("L").resize(FIELDS, Image.Resampling.BOX), float)
            for each in (one, two)
        ]
    return bool(np.abs(grey[0] - grey[1]).max() < CLOSE)


def put(shown: Path, file: Path) -> None:
    """Put a picture where the page shows it."""
    shown.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, shown)

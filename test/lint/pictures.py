# SPDX-License-Identifier: ISC
"""The pictures of the page in the documents are those of the page as it is: doc/images/page.sha256 has the sums of the
files that they were made of."""

import hashlib

from report import TOP, verdict

SUMS = TOP / "doc" / "images" / "page.sha256"
FOLDERS = ("src/admin/page/files", "src/admin/page/script")
PICTURES_LEAST = 4
LARGEST = 150000
ADVICE = "run make screenshots, and look at them"


def outdated():
    """Files that have changed since the pictures were made, and those that are new."""
    sums = dict(reversed(line.split()) for line in SUMS.read_text().splitlines())
    for name, expected in sums.items():
        path = TOP / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            yield f"{name} is not what the pictures are of: {ADVICE}"
    for path in sorted(path for folder in FOLDERS for path in (TOP / folder).iterdir()):
        name = str(path.relative_to(TOP))
        if name not in sums:
            yield f"{name} is not in {SUMS.name}: {ADVICE}"


def missing():
    """Too few pictures, or too large ones."""
    pictures = list(SUMS.parent.glob("page-*.png"))
    if len(pictures) < PICTURES_LEAST:
        yield f"{len(pictures)} pictures, at least {PICTURES_LEAST}"
    for path in pictures:
        if path.stat().st_size > LARGEST:
            yield f"{path.name}: {path.stat().st_size} bytes, at most {LARGEST}"


verdict(
    ("the pictures in the documents show the page as it is", list(outdated())),
    ("the documents have the pictures of the page", list(missing())),
)

# SPDX-License-Identifier: ISC
"""Files and commands that a document prints, for tests that run them as they are printed."""

import os
import re

FOLDER = os.path.join(os.path.dirname(__file__), *[".."] * 3, "doc")
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Document:
    """The blocks of code of a document. The first line of a block, a comment, is its name."""

    def __init__(self, name):
        self.blocks = {}
        with open(os.path.join(FOLDER, name)) as file:
            for block in BLOCK.findall(file.read()):
                first = block.split("\n", 1)[0]
                self.blocks[first.lstrip("#;- ").strip()] = block

    def text(self, name, replaced):
        """The block of this name; each key of the dict is replaced by its value."""
        text = self.blocks[name]
        for old, new in replaced.items():
            text = text.replace(old, str(new))
        return text

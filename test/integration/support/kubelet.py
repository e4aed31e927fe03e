# SPDX-License-Identifier: ISC
"""A volume of a ConfigMap or a Secret, written as kubelet's atomic writer does.

    pgusher.ini -> ..data/pgusher.ini
    ..data      -> ..2026_11_23_15_04_05.000000001
    ..2026_11_23_15_04_05.000000001/pgusher.ini
"""

import os
import shutil

from support.process import own


class Volume:
    """A directory in which ..data is swapped by one rename. The names of the files never change
    while their keys exist."""

    def __init__(self, path, files):
        self.path = path
        self._written = 0
        os.mkdir(path)
        own(path)
        self.update(files)

    def file(self, name):
        """The path by which a container knows a file."""
        return os.path.join(self.path, name)

    def update(self, files):
        """Replace all files by these: texts by name, which may have a folder in front."""
        self._written += 1
        old = os.path.realpath(self.file("..data"))
        new = f"..2026_11_23_15_04_05.{self._written:09}"
        os.mkdir(self.file(new))
        own(self.file(new))
        for name, text in files.items():
            path = self.file(os.path.join(new, name))
            if not os.path.isdir(os.path.dirname(path)):
                os.mkdir(os.path.dirname(path))
                own(os.path.dirname(path))
            with open(path, "w") as file:
                file.write(text)
            own(path)
        os.symlink(new, self.file("..data_tmp"))
        os.rename(self.file("..data_tmp"), self.file("..data"))
        visible = {name.split("/")[0] for name in files}
        for name in visible:
            if not os.path.islink(self.file(name)):
                os.symlink(os.path.join("..data", name), self.file(name))
        for name in os.listdir(self.path):
            if not name.startswith("..") and name not in visible:
                os.unlink(self.file(name))
        if self._written > 1:
            shutil.rmtree(old)

# SPDX-License-Identifier: ISC
"""A terminal of tmux, with a shell or a program in it: keys to press, a screen to look at."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess

from support.process import drop_folder, has_ended, make_folder, wait_until
from support.servers.pooler import binary

TMUX = shutil.which("tmux")

# The shell's, so that its end tells that the command before has ended.
PROMPT = "READY>"


def program():
    """The path of pgusher-top, or None if it was not built."""
    path = binary() + "-top"
    return path if os.access(path, os.X_OK) else None


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, width=100, height=24, term="screen-256color", locale="C.UTF-8", **environment):
        self.folder = make_folder("pgusher-tmux-")
        self.socket = os.path.join(self.folder, "tmux")
        self.errors = os.path.join(self.folder, "stderr")
        variables = {
            "PATH": os.environ["PATH"], "HOME": self.folder, "LC_ALL": locale, "TERM": term,
            "PS1": PROMPT, "ASAN_OPTIONS": "detect_leaks=1",
            # pgusher-top has one thread. ncurses allocates memory and changes errno when it handles Ctrl-Z.
            "TSAN_OPTIONS": "report_bugs=0", **environment,
        }
        shell = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), "sh", "-i"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, shlex.join(shell))
        wait_until(lambda: PROMPT in self.screen(), what="the shell")

    def tmux(self, *arguments, check=True):
        """Run a command of tmux; returns its output."""
        done = subprocess.run(
            [TMUX, "-u", "-S", self.socket, *map(str, arguments)],
            env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, check=check, timeout=20,
        )
        return done.stdout.decode(errors="replace")

    def type(self, command):
        """Type a command for the shell."""
        self.tmux("send-keys", "-l", command)
        self.tmux("send-keys", "Enter")

    def start(self, *arguments):
        """Start pgusher-top in the shell. Its errors go to a file, so that none is on the screen."""
        self.type(f"clear; {shlex.join([program(), *map(str, arguments)])} 2>{self.errors}")
        return self

    def press(self, *keys):
        """Press keys, by tmux's names."""
        for key in keys:
            self.tmux("send-keys", key)

    def screen(self, *options):
        """The text that is shown; with -e with its attributes."""
        return self.tmux("capture-pane", "-p", *options)

    def lines(self):
        """The lines that are shown."""
        return self.screen().splitlines()

    def wait(self, text, timeout=15):
        """Wait until the text is shown; returns the screen."""
        def shown():
            screen = self.screen()
            return screen if text in screen else None

        try:
            return wait_until(shown, timeout, repr(text), 0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}\n{self.said()}") from None

    def wait_gone(self, text, timeout=15):
        """Wait until the text is not shown any more; returns the screen."""
        wait_until(lambda: text not in self.screen(), timeout, f"no {text!r}", 0.05)
        return self.screen()

    def resize(self, width, height):
        """Change the size."""
        self.tmux("resize-window", "-x", width, "-y", height)

    def wait_prompt(self, timeout=15):
        """Wait until the program has ended, and the shell asks for a command."""
        wait_until(
            lambda: self.screen().rstrip().endswith(PROMPT), timeout, "the prompt", 0.05
        )

    def status(self):
        """The exit status of the program that has ended."""
        self.wait_prompt()
        self.type("echo status=$?.")
        return wait_until(
            lambda: re.search(r"status=(\d+)\.", self.screen()), 15, "the exit status"
        ).group(1)

    def processes(self):
        """The processes of pgusher-top in this terminal."""
        tty = self.tmux("display-message", "-p", "#{pane_tty}").strip().removeprefix("/dev/")
        done = subprocess.run(
            ["ps", "-o", "pid=,comm=", "-t", tty], capture_output=True, text=True, check=False
        )
        lines = (line.split() for line in done.stdout.splitlines())
        return [int(pid) for pid, name in lines if name.startswith("pgusher-top")]

    def said(self):
        """What the program has written to stderr."""
        try:
            with open(self.errors, errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def hang_up(self):
        """Close the terminal, which ends the server of tmux and all in it."""
        self.tmux("kill-server", check=False)

    def close(self):
        """End the programs and the terminal. The kernel sends a SIGCONT when a terminal hangs up, by which
        LeakSanitizer can lose the SIGSTOP that it waits for: a program that ends then never does.
        """
        if "READY" in self.tmux("list-sessions", "-F", "READY", check=False):
            processes = self.processes()
            for number in (signal.SIGCONT, signal.SIGTERM):
                for process in processes:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, number)
            wait_until(lambda: all(map(has_ended, processes)), what="the end of pgusher-top")
        self.hang_up()
        said = self.said()
        drop_folder(self.folder)
        assert "Sanitizer" not in said and "runtime error" not in said, said

# SPDX-License-Identifier: ISC
"""Every setting and every key of an entry has a test of its effect.

A test names what it shows: `@pytest.mark.setting("pool_mode", "databases.pool_mode")` above one of
test/integration, or `# setting: NAME NAME` on a line within; `/* setting: NAME */` above one of
test/unit. And doc/differences.md has the settings that PgBouncer does not have.
"""

import ast
import re

from report import TOP, read, sources, verdict

# Settings still without a test. Add none; remove a name with its test.
AWAITED = set()

KEY = re.compile(r"\{\"(\w+)\", ENTRY_\w+, FIELD\(\w+\),")
COMMENT = re.compile(r"\s*# setting: ([\w. ]+)$")
UNIT_MARK = re.compile(r"/\* setting: ([\w. ]+) \*/\s+static void test_")


def settings():
    """The name of each setting."""
    text = read("include/config/settings.def").split("*/", 2)[2]
    for row in re.split(r"^SETTING\(", text, flags=re.M)[1:]:
        yield row.split(",", 1)[0]


def keys():
    """The name of each key of [databases] and [users]."""
    for section in ("database", "user"):
        for name in KEY.findall(read(f"src/config/{section}_config.c")):
            yield f"{section}s.{name}"


def is_mark(decorator):
    """Whether it is pytest.mark.setting(...)."""
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.setting"


def lines_of(test):
    """The first and the last line of a test, with its decorators."""
    return min([test.lineno, *(each.lineno for each in test.decorator_list)]), test.end_lineno


def marks_of_module(text):
    """Each mark of a module of test/integration: its line, and the name it has."""
    lines = text.splitlines()
    for test in ast.parse(text).body:
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        for decorator in filter(is_mark, test.decorator_list):
            for name in decorator.args:
                yield decorator.lineno, ast.literal_eval(name)
        first, last = lines_of(test)
        for number in range(first, last + 1):
            found = COMMENT.match(lines[number - 1])
            for name in found.group(1).split() if found else []:
                yield number, name


def marks():
    """Each mark: its place, and the name it has."""
    for path in sorted((TOP / "test/integration").glob("test_*.py")):
        for line, name in marks_of_module(path.read_text()):
            yield f"{path.relative_to(TOP)}:{line}", name
    for path in sources("test/unit"):
        for found in UNIT_MARK.findall(read(path)):
            for name in found.split():
                yield str(path), name


def settings_of_pgbouncer():
    """The keys of SETTINGS in test_console.py."""
    for statement in ast.parse(read("test/integration/test_console.py")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SETTINGS":
            return {ast.literal_eval(key) for key in statement.value.keys}
    return set()


def settings_of_the_table():
    """The names in the first column of the table of settings in doc/differences.md."""
    table = read("doc/differences.md").split("| Setting that PgBouncer", 1)[1].split("\n\n", 1)[0]
    for line in table.splitlines():
        yield from re.findall(r"`(\w+)`", line.split("|")[1] if line.startswith("|") else "")


KNOWN = [*settings(), *keys()]
MARKS = list(marks())
TESTED = {name for _, name in MARKS}

untested = [
    f"{name}: no test shows what it does"
    for name in KNOWN
    if name not in TESTED | AWAITED
]
unknown = [f"{place}: there is no setting {name}" for place, name in MARKS if name not in KNOWN]
settled = [
    f"{name}: {'has its test now' if name in TESTED else 'there is no such setting'}"
    for name in sorted(AWAITED)
    if name in TESTED or name not in KNOWN
]

theirs = settings_of_pgbouncer()
named = set(settings_of_the_table())
undescribed = [
    f"{name}: not in the table of doc/differences.md"
    for name in settings()
    if name not in theirs | named
]
misplaced = [
    f"{name}: in the table of doc/differences.md, and no setting of pgusher's own"
    for name in sorted(named)
    if name in theirs or f"databases.{name}" not in KNOWN and name not in KNOWN
]

verdict(
    ("there are settings and keys to look at", [] if len(KNOWN) > 100 else ["too few were found"]),
    ("every setting has a test of what it does", untested),
    ("tests name settings that exist", unknown),
    ("no test is awaited that is there", settled),
    ("doc/differences.md has every setting that PgBouncer does not have", undescribed),
    ("doc/differences.md has no other setting in its table", misplaced),
)

# SPDX-License-Identifier: ISC
"""A plugin of pytest that runs a failed test once more, since a busy machine can delay any test.

A test that passes at its second try is printed at the end of the run, in a line
`RETRIED TEST (REASON)`; test/verdict.sh collects these lines and limits their number. Tests with the
marker `once` have no second try: they choose at random what they do, so a second try would hide a fault.
"""

import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test, and run it again if it fails. Report the second try only if it passes."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed and not item.get_closest_marker("once"):
        item._initrequest()
        again = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in again):
            reports = again
            reports[0].first_try = failed[0].longreprtext
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


_retried = []


def pytest_runtest_logreport(report):
    """Keep the reports of retried tests. The main process receives those of all workers."""
    if hasattr(report, "first_try"):
        _retried.append(report)


def pytest_terminal_summary(terminalreporter):
    """Print the failures of the first tries, and one line for each test."""
    if not _retried or hasattr(terminalreporter.config, "workerinput"):
        return
    terminalreporter.section("passed only at the second try")
    for report in _retried:
        terminalreporter.write_line(report.first_try)
    for report in _retried:
        reason = report.first_try.splitlines()[-1]
        terminalreporter.write_line(f"RETRIED {report.nodeid} ({reason})")
